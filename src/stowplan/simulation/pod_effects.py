"""What changes of a cluster did to its pods: moved, started, waiting now, gone. Two states of the cluster are compared.

A controller makes another pod in the place of one that is gone. They are paired by the workload that they belong to:
first pods of the same name, as StatefulSets make them, then in the order of their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from enum import Enum

import msgspec

from stowplan.objects.pods import Pod


class GoneBy(Enum):
    """Why a pod is gone, in the words of its condition DisruptionTarget; otherwise it was deleted."""

    EVICTED = "EvictionByEvictionAPI"
    PREEMPTED = "PreemptionByScheduler"
    TAINT = "DeletionByTaintManager"
    NODE = "DeletionByPodGC"
    DELETED = ""


class WorkloadRef(msgspec.Struct, frozen=True, order=True):
    """What a pod belongs to: the controller above all others, or the pod itself if it has none."""

    kind: str
    key: str

    @property
    def name(self) -> str:
        return f"{self.kind.lower()} {self.key}"


class MovedPod(msgspec.Struct, frozen=True):
    """A pod that is gone from its node, and the one in its place. `to`: its node; None if it waits."""

    workload: WorkloadRef
    before: Pod
    after: Pod
    gone_by: GoneBy

    @property
    def to(self) -> str | None:
        return self.after.node_name or None


class GonePod(msgspec.Struct, frozen=True):
    """A pod that is gone, and no other is in its place. `lost`: nobody asked for that."""

    workload: WorkloadRef
    pod: Pod
    gone_by: GoneBy

    @property
    def lost(self) -> bool:
        """True for a pod that was disrupted, or whose node is gone, and that nobody makes again."""
        return self.gone_by is not GoneBy.DELETED and self.workload.kind != "DaemonSet"


class Effects(msgspec.Struct, frozen=True):
    """What is different.

    moved     pods in whose place another one got a node
    waiting   new pods without a node: in the place of one that is gone (`moved` has its node), or of a new workload
    started   pods that have a node now, and had none: they waited, or did not exist
    gone      pods without another one in their place
    pending   how many pods waited without the changes
    """

    moved: tuple[MovedPod, ...]
    waiting: tuple[Pod, ...]
    started: tuple[Pod, ...]
    gone: tuple[GonePod, ...]
    pending: int
    replaced: Mapping[str, MovedPod]  # by the uid of a waiting pod: the one that had a node
    workloads: Mapping[str, WorkloadRef]  # by the uid of every pod above

    @property
    def lost(self) -> list[GonePod]:
        return [each for each in self.gone if each.lost]


class PodsThen:
    """The pods of a cluster at one time, by uid."""

    def __init__(self, pods: Mapping[str, Pod]) -> None:
        self.by_uid = pods

    def but(self, others: PodsThen) -> list[Pod]:
        """Return the pods that are not among the others."""
        return [pod for uid, pod in self.by_uid.items() if uid not in others.by_uid]

    @property
    def pending(self) -> list[Pod]:
        return [pod for pod in self.by_uid.values() if pod.pending]


def workload_of(pod: Pod, sets: Mapping[str, str]) -> WorkloadRef:
    """Return what a pod belongs to. `sets`: the Deployment of each ReplicaSet that has one, by key."""
    owner = pod.controller()
    if owner is None:
        return WorkloadRef("Pod", pod.key)
    key = f"{pod.namespace}/{owner.name}"
    if owner.kind == "ReplicaSet" and key in sets:
        return WorkloadRef("Deployment", sets[key])
    return WorkloadRef(owner.kind, key)


def effects(
    before: PodsThen,
    after: PodsThen,
    sets: Mapping[str, str],
    gone_by: Mapping[str, str],
    nodes: Container[str],
    daemons: Container[str] = (),
) -> Effects:
    """Compare two states. `gone_by`: the reason for which pods were disrupted, by uid. `nodes`: those that are left.

    `daemons`: keys of pods of a DaemonSet that is not known.
    """
    gone, new = _by_workload(before.but(after), sets, daemons), _by_workload(after.but(before), sets, daemons)
    moved, left, added = list[MovedPod](), list[GonePod](), list[Pod]()
    for workload in sorted({*gone, *new}):
        pairs, without, more = _paired(gone.get(workload, ()), new.get(workload, ()))
        moved += (MovedPod(workload, old, made, _reason(gone_by, nodes, old)) for old, made in pairs)
        left += (GonePod(workload, each, _reason(gone_by, nodes, each)) for each in without)
        added += more
    late = [now for pod in before.pending if (now := after.by_uid.get(pod.uid)) is not None and now.node_name]
    lost_node = [each for each in moved if each.before.node_name]
    waited = [each for each in moved if not each.before.node_name]
    added += [each.after for each in waited if each.to is not None]
    told = [*(each.after for each in moved), *(each.pod for each in left), *added, *late]
    return Effects(
        moved=tuple(each for each in lost_node if each.to is not None),
        waiting=(*(each.after for each in lost_node if each.to is None), *(pod for pod in added if pod.pending)),
        started=(*(pod for pod in added if pod.node_name), *late),
        gone=tuple(left),
        pending=len(before.pending),
        replaced={each.after.uid: each for each in lost_node if each.to is None},
        workloads={pod.uid: workload_of(pod, sets) for pod in told},
    )


def _by_workload(pods: Iterable[Pod], sets: Mapping[str, str], daemons: Container[str]) -> dict[WorkloadRef, list[Pod]]:
    found: defaultdict[WorkloadRef, list[Pod]] = defaultdict(list)
    for pod in pods:
        workload = workload_of(pod, sets)
        if workload.kind == "Pod" and pod.key in daemons:
            workload = WorkloadRef("DaemonSet", pod.key)
        if not pod.finished:
            found[workload].append(pod)
    return found


def _reason(gone_by: Mapping[str, str], nodes: Container[str], pod: Pod) -> GoneBy:
    found = gone_by.get(pod.uid, "")
    if not found and pod.node_name and pod.node_name not in nodes:
        return GoneBy.NODE
    return GoneBy(found) if found in {each.value for each in GoneBy} else GoneBy.DELETED


def _paired(gone: Sequence[Pod], new: Sequence[Pod]) -> tuple[list[tuple[Pod, Pod]], list[Pod], list[Pod]]:
    """Return which new pod is in the place of which, the pods without one, and the pods that are more than before."""
    by_name = {pod.name: pod for pod in new}
    pairs = [(pod, by_name[pod.name]) for pod in gone if pod.name in by_name]  # those of StatefulSets, or applied again
    same = {pod.name for pod, _ in pairs}
    old = [pod for pod in gone if pod.name not in same]
    made = sorted((pod for pod in new if pod.name not in same), key=_most_settled)
    old.sort(key=lambda pod: (not pod.node_name, pod.name))  # those that had a node come first
    number = min(len(old), len(made))
    return [*pairs, *zip(old, made, strict=False)], old[number:], made[number:]


def _most_settled(pod: Pod) -> tuple[bool, str]:
    return not pod.node_name, pod.name
