"""What a cluster has left for pods: what its nodes offer, less what the pods on them request.

Kept up to date change by change, so that a large cluster costs what happens in it. Nodes that take no pods do not
count, nor do the pods on them: cordoned ones, control-plane nodes, and those with a taint of Kubernetes itself (not
ready, unreachable, under pressure).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from stowplan.objects import quantity, requests
from stowplan.objects.changes import Change, Put
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.scores.normalization import Bounds

OWN_TAINTS = ("node.kubernetes.io/", "node-role.kubernetes.io/")  # prefixes
KEEPS_OFF = ("NoSchedule", "NoExecute")


class Measure(msgspec.Struct, frozen=True):
    """A score of this name: what is left of a resource, in cores or whole units, or as a share of all there is."""

    name: str
    resource: str
    bounds: Bounds
    share: bool = False


SHARE = Bounds(0.0, 1.0)
CORES = Bounds(0.0, 100.0)
BYTES = Bounds(1e9, 100e9)


def usual(cores: Bounds = CORES, memory: Bounds = BYTES) -> tuple[Measure, ...]:
    """The four scores of OCM's proposal."""
    return (
        Measure("cpuratio", "cpu", SHARE, share=True),
        Measure("memratio", "memory", SHARE, share=True),
        Measure("cpu", "cpu", cores),
        Measure("mem", "memory", memory),
    )


class Usage:
    """The nodes and pods of one cluster."""

    def __init__(self) -> None:
        self._offered: dict[str, dict[str, int]] = {}  # by node that takes pods
        self._taken: dict[str, Counter[str]] = {}  # by node, whatever it is
        self._pods: dict[str, tuple[str, Mapping[str, int]]] = {}  # by uid: the node, and what the pod has of it

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, Put):
                self._put(change.object)
            elif isinstance(change.object, Pod):
                self._release(change.object.uid)
            else:
                self._offered.pop(change.object.name, None)

    def _put(self, found: object) -> None:
        if isinstance(found, Pod):
            self._release(found.uid)
            if found.node_name and not found.finished:
                self._take(found)
        elif isinstance(found, Node):
            self._offered.pop(found.name, None)
            if takes_pods(found):
                amounts = found.status.allocatable.items()
                self._offered[found.name] = {name: quantity.of(name, text) for name, text in amounts}

    def _take(self, pod: Pod) -> None:
        amounts = {**requests.running(pod), "pods": 1}
        self._pods[pod.uid] = pod.node_name, amounts
        self._taken.setdefault(pod.node_name, Counter()).update(amounts)

    def _release(self, uid: str) -> None:
        node, amounts = self._pods.pop(uid, ("", {}))
        if node:
            self._taken[node].subtract(amounts)
            if not any(self._taken[node].values()):
                del self._taken[node]

    def left(self, resource: str) -> tuple[float, float]:
        """What is left of a resource, and all there is, in cores or whole units."""
        unit = 1000 if resource == "cpu" else 1
        offered = sum(amounts.get(resource, 0) for amounts in self._offered.values())
        free = sum(
            max(amounts.get(resource, 0) - self._taken.get(node, Counter())[resource], 0)
            for node, amounts in self._offered.items()
        )
        return free / unit, offered / unit

    def measured(self, measures: Iterable[Measure]) -> dict[str, float]:
        """By score. A cluster without nodes that take pods has nothing left of anything."""
        found: dict[str, float] = {}
        for measure in measures:
            free, offered = self.left(measure.resource)
            found[measure.name] = (free / offered if offered else 0.0) if measure.share else free
        return found


def takes_pods(node: Node) -> bool:
    taints = (taint for taint in node.spec.taints if taint.effect in KEEPS_OFF)
    return not node.spec.unschedulable and not any(taint.key.startswith(OWN_TAINTS) for taint in taints)
