"""NodeVolumeLimits: no more volumes of a CSI driver on a node than the driver says it can attach.

Most nodes are far from full, so volumes are first counted generously (every mount as a volume of its own); only where
that would be too many are the node's volumes looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.volumes.attachments import NO_LIMIT, Attached, DerivedLookup, DriverColumns, csi_volume
from stowplan.framework.interfaces import Wake
from stowplan.framework.verdict import SKIP, Reject, Skip
from stowplan.objects import csi_migration
from stowplan.objects.pod_parts import Volume
from stowplan.objects.pods import Pod
from stowplan.objects.storage import CSINode, CSISource, PersistentVolumeClaim, VolumeAttachment

REASON = "node(s) exceed max volume count"


class NodeVolumeLimits:
    reads = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode", "CSIDriver", "VolumeAttachment")
    local = "pods"

    def __init__(self) -> None:
        self._drivers = DerivedLookup(CSINode, DriverColumns)
        self._attached = Attached()

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Skip | None:  # noqa: ARG002
        return None if any(map(_may_count, pod.shape.volumes)) else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        wanted: dict[str, set[CSISource]] = {}
        rejected = np.zeros(len(nodes), np.bool_)
        for volume in pod.shape.volumes:
            source = csi_volume(nodes.cluster, pod, volume)
            if isinstance(source, CSISource):
                wanted.setdefault(source.driver, set()).add(source)
            elif source is not None:
                trouble = self._asked_for(volume, nodes) & ~rejected
                rejected |= trouble
                yield Reject(trouble, source, resolvable=False)
        too_many = np.zeros(len(nodes), np.bool_)
        for driver, volumes in wanted.items():
            too_many |= self._too_many(driver, volumes, nodes)
        yield Reject(too_many & ~rejected, REASON)

    def _asked_for(self, volume: Volume, nodes: Nodes) -> Bools:
        """Nodes for which it matters what CSI volume this is; a built-in disk has one only where there is a CSINode."""
        return (
            self._drivers(nodes.cluster).known(nodes)
            if csi_migration.kind_of(volume)
            else np.ones(len(nodes), np.bool_)
        )

    def _too_many(self, driver: str, wanted: set[CSISource], nodes: Nodes) -> Bools:
        limit = self._drivers(nodes.cluster).limit(driver, nodes)
        if limit is None:
            return np.zeros(len(nodes), np.bool_)
        too_many: Bools = (limit != NO_LIMIT) & (self._attached.at_most(nodes) + len(wanted) > limit)
        for position in np.flatnonzero(too_many).tolist():
            too_many[position] = self._after(driver, wanted, nodes, position) > int(limit[position])
        return too_many

    def _after(self, driver: str, wanted: set[CSISource], nodes: Nodes, position: int) -> int:
        """The driver's volumes on a node once the pod is there; 0 if it brings none, for then it is always welcome.

        A volume that is attached though no pod has it counts twice: kube-scheduler does not take it off what is new.
        """
        held = self._attached.by_pods(nodes, position)
        new = wanted - held
        if not new:
            return 0
        held = held | self._attached.by_attachments(nodes, position)
        return len(new) + sum(source.driver == driver for source in held)

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("CSINode", ("Add",))
        yield Wake("CSINode", ("Update",), hint="takes_more")
        yield Wake("Pod", ("Delete",), hint="had_volumes")
        yield Wake("PersistentVolumeClaim", ("Add",), hint="is_claimed")
        yield Wake("VolumeAttachment", ("Delete",), hint="may_have_been_counted")

    def takes_more(self, pod: Pod, old: CSINode | None, new: CSINode | None) -> bool:  # noqa: ARG002
        before, after = _limits(old), _limits(new)
        return any(limit > before.get(driver, 0) for driver, limit in after.items())

    def had_volumes(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:  # noqa: ARG002
        was_somewhere = old is not None and bool(old.node_name or old.nominated_node)
        return old is not None and was_somewhere and any(map(_may_count, old.shape.volumes))

    def is_claimed(self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:  # noqa: ARG002
        return new is not None and new.key in pod.shape.claims

    def may_have_been_counted(self, pod: Pod, old: VolumeAttachment | None, new: VolumeAttachment | None) -> bool:  # noqa: ARG002
        """An ephemeral volume is not looked at here: kube-scheduler leaves it out."""
        return old is not None and any(_may_be(volume, old.spec.attacher) for volume in pod.shape.volumes)


def _may_count(volume: Volume) -> bool:
    claimed = volume.persistent_volume_claim is not None or volume.ephemeral is not None
    return claimed or csi_migration.kind_of(volume) is not None


def _may_be(volume: Volume, driver: str) -> bool:
    kind = csi_migration.kind_of(volume)
    return volume.persistent_volume_claim is not None or (kind is not None and kind.driver == driver)


def _limits(csi_node: CSINode | None) -> dict[str, int]:
    drivers = () if csi_node is None else csi_node.spec.drivers
    return {driver.name: (driver.allocatable.count or 0) if driver.allocatable else 0 for driver in drivers}
