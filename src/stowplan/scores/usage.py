"""The free resources of a cluster: what its nodes offer, less what the pods on them request, or less what they use.

Requests are updated with each change; real usage comes with each question, from metrics-server (`node_metrics`). A node
that it has not measured counts as a node that is not there; if these are too many (it has just started, say), there are
no values by real usage at all. Nodes that accept no pods do not count, nor do the pods on
them: cordoned nodes, control-plane nodes, and nodes with a taint of Kubernetes itself (not ready, unreachable, under
pressure).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from stowplan.objects import quantity, requests
from stowplan.objects.changes import Change, Put
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.scores.node_metrics import UsedByNode
from stowplan.scores.normalization import Bounds

SYSTEM_TAINTS = ("node.kubernetes.io/", "node-role.kubernetes.io/")  # prefixes
BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
ENOUGH = 0.9  # the share of nodes that must be measured


class Measure(msgspec.Struct, frozen=True):
    """A score of this name: the free amount of a resource, in cores or whole units, or as a share of the total.

    `actual`: what is not used is free, whatever pods request.
    """

    name: str
    resource: str
    bounds: Bounds
    share: bool = False
    actual: bool = False


SHARE = Bounds(0.0, 1.0)
CORES = Bounds(0.0, 100.0)
BYTES = Bounds(1e9, 100e9)


def default_measures(cores: Bounds = CORES, memory: Bounds = BYTES) -> tuple[Measure, ...]:
    """The four scores of the proposal of OCM."""
    return (
        Measure("cpuratio", "cpu", SHARE, share=True),
        Measure("memratio", "memory", SHARE, share=True),
        Measure("cpu", "cpu", cores),
        Measure("mem", "memory", memory),
    )


def actual_measures(cores: Bounds = CORES, memory: Bounds = BYTES) -> tuple[Measure, ...]:
    """The same four scores, by real usage."""
    return tuple(
        msgspec.structs.replace(each, name=f"{each.name}-actual", actual=True)
        for each in default_measures(cores, memory)
    )


class Usage:
    """The nodes and pods of one cluster."""

    def __init__(self) -> None:
        self._allocatable: dict[str, dict[str, int]] = {}  # by node that accepts pods
        self._requested: dict[str, Counter[str]] = {}  # by node, of any kind
        self._pods: dict[str, tuple[str, Mapping[str, int]]] = {}  # by uid: the node, and the requests of the pod

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, Put):
                self._apply(change.object)
            elif isinstance(change.object, Pod):
                self._remove(change.object.uid)
            else:
                self._allocatable.pop(change.object.name, None)

    def _apply(self, found: object) -> None:
        if isinstance(found, Pod):
            self._remove(found.uid)
            if found.node_name and not found.finished:
                self._add(found)
        elif isinstance(found, Node):
            self._allocatable.pop(found.name, None)
            if accepts_pods(found):
                amounts = found.status.allocatable.items()
                self._allocatable[found.name] = {name: quantity.of(name, text) for name, text in amounts}

    def _add(self, pod: Pod) -> None:
        amounts = {**requests.running(pod), "pods": 1}
        self._pods[pod.uid] = pod.node_name, amounts
        self._requested.setdefault(pod.node_name, Counter()).update(amounts)

    def _remove(self, uid: str) -> None:
        node, amounts = self._pods.pop(uid, ("", {}))
        if node:
            self._requested[node].subtract(amounts)
            if not any(self._requested[node].values()):
                del self._requested[node]

    def free_and_total(self, resource: str, used: UsedByNode | None = None) -> tuple[float, float]:
        """The free and the total amount of a resource, in cores or whole units; `used`: by what nodes really use."""
        unit = 1000 if resource == "cpu" else 1
        if used is not None:
            measured = {node: each for node, each in self._allocatable.items() if resource in used.get(node, {})}
            total = sum(amounts.get(resource, 0) for amounts in measured.values())
            free = sum(max(amounts.get(resource, 0) - used[node][resource], 0) for node, amounts in measured.items())
            return free / unit, total / unit
        total = sum(amounts.get(resource, 0) for amounts in self._allocatable.values())
        free = sum(
            max(amounts.get(resource, 0) - self._requested.get(node, Counter())[resource], 0)
            for node, amounts in self._allocatable.items()
        )
        return free / unit, total / unit

    def unmeasured(self, used: UsedByNode) -> list[str]:
        """The nodes that accept pods, and that were not measured."""
        return sorted(self._allocatable.keys() - used.keys())

    def measured_share(self, resource: str, used: UsedByNode) -> float:
        """The share of the nodes that accept pods of which this resource was measured."""
        measured = sum(resource in used.get(node, {}) for node in self._allocatable)
        return measured / len(self._allocatable) if self._allocatable else 1.0

    def measured(self, measures: Iterable[Measure], used: UsedByNode | None = None) -> dict[str, float]:
        """The values by score. A cluster without nodes that accept pods has nothing free.

        `used`: what nodes really use, for measures of that. Without it, or if it lacks too many nodes, these measures
        have no values.
        """
        found: dict[str, float] = {}
        for measure in measures:
            if measure.actual and (used is None or self.measured_share(measure.resource, used) < ENOUGH):
                continue
            free, total = self.free_and_total(measure.resource, used if measure.actual else None)
            found[measure.name] = (free / total if total else 0.0) if measure.share else free
        return found


def accepts_pods(node: Node) -> bool:
    taints = (taint for taint in node.spec.taints if taint.effect in BLOCKING_EFFECTS)
    return not node.spec.unschedulable and not any(taint.key.startswith(SYSTEM_TAINTS) for taint in taints)
