"""VolumeRestrictions: disks in the pod's spec, and ReadWriteOncePod claims, that another pod uses already.

Disks conflict on one node. A ReadWriteOncePod claim conflicts on every node, so the eviction of its user can help.

The result depends on how kube-scheduler counts claims in use. PreFilter counts each claim in use once, for any number
of pods. After that, every pod that is added or removed in a trial counts for each volume with the *name* of such a
claim, in any namespace. So of two pods that share a claim, the eviction of one is enough. Therefore `pre_filter` notes
its counts for `filter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.cause_texts import few
from stowplan.framework.causes import Cause, Detail, NodeCause
from stowplan.framework.decision import SKIP, Reject, RejectPod, Skip
from stowplan.framework.interfaces import Wake
from stowplan.objects.pods import Pod
from stowplan.objects.shape import disks
from stowplan.objects.storage import READ_WRITE_ONCE_POD, PersistentVolumeClaim, not_found
from stowplan.plugins.nodes.default import claim_causes
from stowplan.plugins.nodes.default.holders import holders

NAME = "VolumeRestrictions"
DISK_TAKEN = "node(s) had no available disk"
CLAIM_TAKEN = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


class VolumeRestrictions:
    reads = ("PersistentVolumeClaim",)
    ignores_requests = True

    def pre_filters_by_shape(self, pod: Pod) -> bool:
        return not pod.shape.volumes

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Skip | None:
        if not pod.shape.volumes:
            return SKIP
        exclusive: set[str] = set()
        for name in _claim_names(pod):
            claim = cluster.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
            if claim is None:
                return RejectPod((not_found("persistentvolumeclaim", name),), resolvable=False)
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.add(name)
        taken = _taken(exclusive, pod, cluster)
        cluster.notes[NAME] = (taken, _mounted(exclusive, cluster))
        return None if taken or _conflicting_disks(pod) else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        disk_taken = _disk_is_taken(pod, nodes)
        yield Reject(disk_taken, DISK_TAKEN)
        if self._conflicts(pod, nodes.cluster) > 0:
            yield Reject(~disk_taken, CLAIM_TAKEN)

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        modes: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for disk in sorted(_conflicting_disks(pod)):
            modes.setdefault(disk[:-1], []).append(disk)
        for disk, uses in modes.items():
            rows, count, pods = holders(nodes, uses)
            text = f"disk {' '.join(disk)} is used by {few(pods, count)}"
            details: dict[str, Detail] = {"disk": disk, "pods": tuple(pods), "count": count}
            yield NodeCause(rows, Cause("disk", text, details))
        if self._conflicts(pod, nodes.cluster) > 0:
            everywhere = np.ones(len(nodes), np.bool_)
            for name in sorted(_exclusive(pod, nodes.cluster)):
                key = f"{pod.namespace}/{name}"
                _, count, pods = holders(nodes.cluster.nodes, [("claim", key)])
                if count:
                    use = "uses" if count == 1 else "use"
                    text = f"claim {name} is for one pod at a time, and {few(pods, count)} {use} it"
                    details = {"claim": key, "pods": tuple(pods), "count": count}
                    yield NodeCause(everywhere, Cause("claim-in-use", text, details))

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:
        return claim_causes.problems(pod, cluster, claim_causes.MISSING)

    @staticmethod
    def _conflicts(pod: Pod, cluster: Cluster) -> int:
        """Return how many of the pod's claims are in use, as kube-scheduler counts them (below 0 in some trials)."""
        exclusive = _exclusive(pod, cluster)
        if NAME not in cluster.notes:  # the pre-filter is disabled
            return _taken(exclusive, pod, cluster)
        taken, mounted = cluster.notes[NAME]
        return int(taken + _mounted(exclusive, cluster) - mounted)

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Pod", ("Delete",), hint="pod_freed_volume")
        yield Wake("Node", ("Add",))
        yield Wake("PersistentVolumeClaim", ("Add",), hint="is_claimed")

    def pod_freed_volume(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:  # noqa: ARG002
        if old is None or old.namespace != pod.namespace:  # as in kube-scheduler, also for disks
            return False
        held = {disk for volume in old.shape.volumes for disk in disks(volume)}
        return not held.isdisjoint(_conflicting_disks(pod)) or not set(_claim_names(old)).isdisjoint(_claim_names(pod))

    def is_claimed(self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:  # noqa: ARG002
        return new is not None and new.namespace == pod.namespace and new.name in _claim_names(pod)


def _claim_names(pod: Pod) -> list[str]:
    """Return the claims that the pod names. The claim of an ephemeral volume cannot be another pod's."""
    mounted = (volume.persistent_volume_claim for volume in pod.shape.volumes)
    return [claim.claim_name for claim in mounted if claim is not None]


def _conflicting_disks(pod: Pod) -> set[tuple[str, ...]]:
    """Return the disks of other pods that this pod cannot share: one of both writes to the disk."""
    wanted = {disk for volume in pod.shape.volumes for disk in disks(volume)}
    if not wanted:
        return wanted
    both_ways = {(*disk[:-1], mode) for disk in wanted if disk[-1] == "rw" for mode in ("ro", "rw")}
    return both_ways | {(*disk[:-1], "rw") for disk in wanted}


def _disk_is_taken(pod: Pod, nodes: Nodes) -> Bools:
    taken = np.zeros(len(nodes), np.bool_)
    for disk in _conflicting_disks(pod):
        holders = nodes.used(disk)
        if holders is not None:
            taken |= nodes.counts_of(holders) > 0
    return taken


def _exclusive(pod: Pod, cluster: Cluster) -> set[str]:
    """Return the names of the pod's claims that only one pod may use."""
    claims = {name: cluster.get(PersistentVolumeClaim, f"{pod.namespace}/{name}") for name in _claim_names(pod)}
    return {name for name, claim in claims.items() if claim and READ_WRITE_ONCE_POD in claim.spec.access_modes}


def _taken(names: set[str], pod: Pod, cluster: Cluster) -> int:
    """Return how many of these claims are in use. Pods on deleted nodes do not count."""
    users = (cluster.used(("claim", f"{pod.namespace}/{name}")) for name in names)
    return sum(bool(cluster.nodes.counts_of(tally).any()) for tally in users if tally is not None)


def _mounted(names: set[str], cluster: Cluster) -> int:
    """Return how many volumes of pods on nodes have a claim of such a name, in any namespace."""
    tallies = (cluster.used(("claim-name", name)) for name in names)
    return sum(int(tally.sparse()[1].sum()) for tally in tallies if tally is not None)
