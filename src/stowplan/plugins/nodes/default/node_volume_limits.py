"""NodeVolumeLimits: a node has at most as many volumes of a CSI driver as the driver can attach.

Most nodes are far below the limit. So volumes are first overestimated (every mount as a volume of its own), and the
volumes of a node are only looked at one by one if the estimate is above the limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.volumes.attachments import NO_LIMIT, Attached, DerivedLookup, DriverColumns, csi_volume
from stowplan.framework.causes import Cause, Detail, NodeCause
from stowplan.framework.decision import SKIP, Reject, Skip
from stowplan.framework.interfaces import Wake
from stowplan.objects import csi_migration
from stowplan.objects.pod_parts import Volume
from stowplan.objects.pods import Pod
from stowplan.objects.storage import CSINode, CSISource, PersistentVolumeClaim, VolumeAttachment
from stowplan.plugins.nodes.default import claim_causes

REASON = "node(s) exceed max volume count"


class NodeVolumeLimits:
    reads = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode", "CSIDriver", "VolumeAttachment")
    local = "pods"
    pre_filters_by_shape = ignores_requests = True

    def __init__(self) -> None:
        self._drivers = DerivedLookup(CSINode, DriverColumns)
        self._attached = Attached()

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Skip | None:  # noqa: ARG002
        return None if any(map(_may_count, pod.shape.volumes)) else SKIP

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        wanted: dict[str, set[CSISource]] = {}
        for volume in pod.shape.volumes:
            source = csi_volume(nodes.cluster, pod, volume)
            if isinstance(source, CSISource):
                wanted.setdefault(source.driver, set()).add(source)
            elif source is not None:
                known = next(claim_causes.of_volume(pod, volume, nodes.cluster), None)
                yield NodeCause(self._needs_source(volume, nodes), known or Cause("volume-source", source))
        for driver, volumes in wanted.items():
            limit = self._drivers(nodes.cluster).limit(driver, nodes)
            if limit is None:
                continue
            rows = self._too_many(driver, limit, volumes, nodes)
            if rows.any():
                here = np.flatnonzero(rows).tolist()
                counts = [self._count_with_pod(driver, volumes, nodes, position) for position in here]
                allows, would_be = _range(limit[rows].tolist()), _range(counts)
                text = f"{driver} attaches at most {allows} volumes to the node; with the pod it would have {would_be}"
                details: dict[str, Detail] = {"driver": driver, "limit": allows, "withThePod": would_be}
                yield NodeCause(rows, Cause("volume-limit", text, details))

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        wanted: dict[str, set[CSISource]] = {}
        rejected = np.zeros(len(nodes), np.bool_)
        for volume in pod.shape.volumes:
            source = csi_volume(nodes.cluster, pod, volume)
            if isinstance(source, CSISource):
                wanted.setdefault(source.driver, set()).add(source)
            elif source is not None:
                unknown = self._needs_source(volume, nodes) & ~rejected
                rejected |= unknown
                yield Reject(unknown, source, resolvable=False)
        for driver, volumes in wanted.items():
            limit = self._drivers(nodes.cluster).limit(driver, nodes)
            if limit is not None:
                too_many = self._too_many(driver, limit, volumes, nodes) & ~rejected
                rejected |= too_many
                yield Reject(too_many, REASON)

    def _needs_source(self, volume: Volume, nodes: Nodes) -> Bools:
        """Return the nodes that need the volume's CSI source; for an in-tree disk, those with a CSINode."""
        return (
            self._drivers(nodes.cluster).known(nodes)
            if csi_migration.kind_of(volume)
            else np.ones(len(nodes), np.bool_)
        )

    def _too_many(self, driver: str, limit: Ints, wanted: set[CSISource], nodes: Nodes) -> Bools:
        too_many: Bools = (limit != NO_LIMIT) & (self._attached.at_most(nodes) + len(wanted) > limit)
        for position in np.flatnonzero(too_many).tolist():
            too_many[position] = self._count_with_pod(driver, wanted, nodes, position) > int(limit[position])
        return too_many

    def _count_with_pod(self, driver: str, wanted: set[CSISource], nodes: Nodes, position: int) -> int:
        """Return the driver's volumes on a node with the pod; 0 if the pod adds none, which is always allowed.

        A volume that is attached and not used by any pod counts twice, as in kube-scheduler.
        """
        held = self._attached.by_pods(nodes, position)
        new = wanted - held
        if not new:
            return 0
        held = held | self._attached.by_attachments(nodes, position)
        return len(new) + sum(source.driver == driver for source in held)

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("CSINode", ("Add",))
        yield Wake("CSINode", ("Update",), hint="limit_raised")
        yield Wake("Pod", ("Delete",), hint="pod_had_volumes")
        yield Wake("PersistentVolumeClaim", ("Add",), hint="is_claimed")
        yield Wake("VolumeAttachment", ("Delete",), hint="may_have_been_counted")

    def limit_raised(self, pod: Pod, old: CSINode | None, new: CSINode | None) -> bool:  # noqa: ARG002
        before, after = _limits(old), _limits(new)
        return any(limit > before.get(driver, 0) for driver, limit in after.items())

    def pod_had_volumes(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:  # noqa: ARG002
        had_node = old is not None and bool(old.node_name or old.nominated_node)
        return old is not None and had_node and any(map(_may_count, old.shape.volumes))

    def is_claimed(self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:  # noqa: ARG002
        return new is not None and new.key in pod.shape.claims

    def may_have_been_counted(self, pod: Pod, old: VolumeAttachment | None, new: VolumeAttachment | None) -> bool:  # noqa: ARG002
        """True if one of the pod's volumes may be of the attachment's driver. Ephemeral volumes are ignored, as in
        kube-scheduler.
        """
        return old is not None and any(_may_be(volume, old.spec.attacher) for volume in pod.shape.volumes)


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(most) if least == most else f"{least} to {most}"


def _may_count(volume: Volume) -> bool:
    claimed = volume.persistent_volume_claim is not None or volume.ephemeral is not None
    return claimed or csi_migration.kind_of(volume) is not None


def _may_be(volume: Volume, driver: str) -> bool:
    kind = csi_migration.kind_of(volume)
    return volume.persistent_volume_claim is not None or (kind is not None and kind.driver == driver)


def _limits(csi_node: CSINode | None) -> dict[str, int]:
    drivers = () if csi_node is None else csi_node.spec.drivers
    return {driver.name: (driver.allocatable.count or 0) if driver.allocatable else 0 for driver in drivers}
