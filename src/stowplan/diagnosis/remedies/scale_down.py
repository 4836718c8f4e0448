"""A workload scaled down: which of its pods its controller deletes then, and to how many replicas.

Controllers delete pods first that do not run yet or are not ready. Of the others a ReplicaSet, also one of a
Deployment, takes those with the lowest deletion cost, so that an annotation tells it which; a Job the newest. A
StatefulSet deletes the highest ordinals, whatever they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from stowplan.columns.state import ClusterState
from stowplan.diagnosis.edits import Edit, Scale
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.remedy import ObjectChange, Operation, PatchObject
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Deployment, ReplicaSet, StatefulSet

SCALE_DOWN = "scale-down"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
COSTED = ("Deployment", "ReplicaSet", "ReplicationController")
NUMBER_OF = {**dict.fromkeys((*COSTED, "StatefulSet"), "replicas"), "Job": "parallelism"}
_TEMPLATE_HASH = "pod-template-hash"  # a label of every pod of a Deployment
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_ORDINAL, _COST = re.compile(r"-(\d+)$"), re.compile(r"0|-?[1-9]\d{0,9}", re.ASCII)
_LOWEST = -(2**31)
_EVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Workload:
    """What makes pods. `pods`: those of them that have a node. `start`: the lowest ordinal of a StatefulSet."""

    kind: str
    key: str
    replicas: int  # that it asks for; as many as have a node if that is not known
    pods: tuple[Pod, ...]
    start: int = 0


class Workloads:
    """The workloads of the pods on nodes, as far as they are known."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def name_of(self, pod: Pod) -> tuple[str, str] | None:
        """Return kind and key of what makes a pod: of a ReplicaSet's pod its Deployment, if it has one."""
        owner = pod.controller()
        if owner is None:
            return None
        key = f"{pod.namespace}/{owner.name}"
        if owner.kind != "ReplicaSet":
            return owner.kind, key
        known = self._state.store.get(ReplicaSet, key)
        above = None if known is None else known.controller()
        if above is not None:
            return above.kind, f"{pod.namespace}/{above.name}"
        ending = f"-{pod.labels.get(_TEMPLATE_HASH, '')}"
        if known is None and len(ending) > 1 and owner.name.endswith(ending):
            return "Deployment", f"{pod.namespace}/{owner.name.removesuffix(ending)}"
        return "ReplicaSet", key

    def of(self, pods: Sequence[Pod]) -> Workload | None:
        """Return the workload that makes all of these pods, and can be scaled; None if there is none such."""
        names = {self.name_of(pod) for pod in pods}
        found = next(iter(names)) if len(names) == 1 else None
        if found is None or found[0] not in NUMBER_OF:
            return None
        members = self._pods[found]
        if len({owner.uid for pod in members if (owner := pod.controller())}) != 1:
            return None  # a rollout: its ReplicaSets share what a Deployment scales down
        return Workload(*found, self._replicas(*found) or len(members), tuple(members), self._start(*found))

    def _start(self, kind: str, key: str) -> int:
        found = self._state.store.named(kind, key)
        ordinals = found.spec.ordinals if isinstance(found, StatefulSet) else None
        return 0 if ordinals is None else ordinals.start

    def _replicas(self, kind: str, key: str) -> int | None:
        found = self._state.store.named(kind, key)
        return found.spec.replicas if isinstance(found, (Deployment, ReplicaSet, StatefulSet)) else None

    @cached_property
    def _pods(self) -> dict[tuple[str, str], list[Pod]]:
        found: dict[tuple[str, str], list[Pod]] = {}
        for placed in self._state.pods.values():
            name = None if placed.pod.terminating else self.name_of(placed.pod)
            if name is not None:
                found.setdefault(name, []).append(placed.pod)
        return found


def scaled(workload: Workload, chosen: Iterable[Pod]) -> Edit | None:
    """Return the edit after which these pods are gone, and those that go before them; None if that is not certain."""
    order = _order(workload, {pod.uid for pod in chosen})
    return None if order is None else _to(workload, order, len(order))


def _to(workload: Workload, order: Sequence[Pod], number: int) -> Edit:
    """Return the edit after which the first of these pods are gone, so many."""
    left, field = _left(workload, order, number), NUMBER_OF[workload.kind]
    gone = order[: _certain(order, number) if workload.kind == "Job" else number]
    changes: list[ObjectChange] = list(_costs(workload, gone) if left and workload.kind in COSTED else ())
    changes.append(PatchObject(workload.kind, workload.key, (Operation("replace", f"/spec/{field}", left),)))
    number_text = f"from {workload.replicas} to {left} " + ("pods at a time" if field == "parallelism" else "replicas")
    scale = Scale(left, left + number, 1, lambda other: _to(workload, order, number + left - other))
    return Edit(
        SCALE_DOWN,
        f"scale {workload.kind} {workload.key} down {number_text}, without {_names(gone)}",
        tuple(changes),
        size=float(number),
        scale=scale,
        gone=tuple(pod.key for pod in gone),
    )


def _left(workload: Workload, order: Sequence[Pod], number: int) -> int:
    """Return the replicas without the first of these pods. A StatefulSet keeps the ordinals below the last."""
    if workload.kind != "StatefulSet":
        return len(workload.pods) - number
    return _ordinal(order[number - 1]) - workload.start if number else workload.replicas


def _ordinal(pod: Pod) -> int:
    match = _ORDINAL.search(pod.name)
    return -1 if match is None else int(match[1])


def _names(pods: Sequence[Pod]) -> str:
    more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
    return "pod " * (len(pods) == 1) + ", ".join(pod.key for pod in pods[:3]) + more


def _order(workload: Workload, chosen: set[str]) -> list[Pod] | None:
    """Return the pods that go until all chosen ones are gone, in the order of their controller."""
    if workload.kind in COSTED:
        last = max(_standing(pod) for pod in workload.pods if pod.uid in chosen)
        going = [pod for pod in workload.pods if pod.uid in chosen or _standing(pod) < last]
        return sorted(going, key=lambda pod: (_standing(pod), pod.uid in chosen, pod.key))
    if workload.kind == "StatefulSet":
        return _highest_first(workload, chosen)
    return _newest_first(workload, chosen)


def _highest_first(workload: Workload, chosen: set[str]) -> list[Pod] | None:
    found, end = {_ordinal(pod): pod for pod in workload.pods}, workload.start + workload.replicas
    if min(found) < workload.start or max(found) >= end or max(found) - min(found) + 1 > len(found):
        return None  # one is missing in between, or they count otherwise: what replicas mean then is not for us to say
    ordered = [found[ordinal] for ordinal in sorted(found, reverse=True)]
    return ordered[: 1 + max(at for at, pod in enumerate(ordered) if pod.uid in chosen)]


def _newest_first(workload: Workload, chosen: set[str]) -> list[Pod]:
    """Of pods that are equal those count as the first to go that need not: then it is certain that all others go."""

    ordered = sorted(workload.pods, key=lambda pod: (*_age(pod), pod.uid in chosen))
    return ordered[: 1 + max(at for at, pod in enumerate(ordered) if pod.uid in chosen)]


def _certain(order: Sequence[Pod], number: int) -> int:
    """Return how many of the first pods of a Job are sure to go: of equal pods any may stay."""
    while 0 < number < len(order) and _age(order[number - 1]) == _age(order[number]):
        number -= 1
    return number


def _age(pod: Pod) -> tuple[tuple[int, bool], float]:
    created = pod.metadata.creation_timestamp or _EVER
    return _standing(pod), -(created - _EVER).total_seconds()


def _standing(pod: Pod) -> tuple[int, bool]:
    """Return how far a pod has come; those with less go first."""
    ready = any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
    return _PHASES.get(pod.status.phase, 0), ready


def _costs(workload: Workload, gone: Sequence[Pod]) -> Iterable[PatchObject]:
    """Yield deletion costs that are lower than those of the pods that stay."""
    uids = {pod.uid for pod in gone}
    lowest = min((_cost(pod) for pod in workload.pods if pod.uid not in uids), default=0)
    path = pointer("metadata", "annotations", DELETION_COST)
    for pod in gone:
        if _cost(pod) >= lowest > _LOWEST:
            yield PatchObject("Pod", pod.key, (Operation("add", path, str(min(lowest - 1, -1))),))


def _cost(pod: Pod) -> int:
    text = pod.annotations.get(DELETION_COST, "0")
    return int(text) if _COST.fullmatch(text) else 0
