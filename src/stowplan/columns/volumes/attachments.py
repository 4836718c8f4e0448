"""Lookups of volume plugins: CSI drivers and attached volumes per node, and the nodes that can access a volume.

DerivedLookup    a value computed from all objects of a kind, cached until one of them changes
DriverColumns    CSINodes as columns: the limit of a driver's volumes, and which in-tree plugins are migrated
Attached         the volumes that a node's pods and VolumeAttachments use, computed only for nodes near a limit
VolumeReach      the nodes of a view that can access a volume, for many volumes at once
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.table import ABSENT
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.objects import csi_migration
from stowplan.objects.meta import Object
from stowplan.objects.pod_parts import Volume
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import NodeTerm
from stowplan.objects.shape import ATTACHABLE, claim_of
from stowplan.objects.storage import (
    CSINode,
    CSISource,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    not_found,
)
from stowplan.objects.volume_candidates import ReachableNodes

Kind = TypeVar("Kind", bound=Object)
Result = TypeVar("Result")
NO_LIMIT = -1
NOWHERE = -1


class DerivedLookup(Generic[Kind, Result]):
    """A value computed from all objects of a kind (and from the rows of the nodes)."""

    def __init__(self, kind: type[Kind], compute: Callable[[list[Kind], ClusterState], Result]) -> None:
        self._kind, self._compute = kind, compute
        self._of: tuple[object, object, int] = (None, None, -1)
        self._objects: list[Kind] = []
        self._result: Result

    def __call__(self, cluster: Cluster) -> Result:
        state = cluster._state
        # The array of live rows is a new one whenever the rows change.
        rows, version = state.table.live_rows(), state.store.version_of(self._kind)
        if self._of[0] is not state or self._of[1] is not rows or self._of[2] != version:
            objects = list(state.store.every(self._kind).values())
            # The comparison is cheap: objects that are still the same are identical.
            if self._of[0] is not state or self._of[1] is not rows or objects != self._objects:
                self._result, self._objects = self._compute(objects, state), objects
            self._of = (state, rows, version)
        return self._result


class DriverColumns:
    """CSINodes as columns over the rows of the table."""

    def __init__(self, csi_nodes: list[CSINode], state: ClusterState) -> None:
        self._capacity = state.table.capacity
        self._known: Bools = np.zeros(self._capacity, np.bool_)
        self._limits: dict[str, Ints] = {}
        self._migrated: dict[str, Bools] = {}
        for csi_node in csi_nodes:
            row = state.table.row_of.get(csi_node.name)
            if row is not None:
                self._add(csi_node, row)

    def _add(self, csi_node: CSINode, row: int) -> None:
        self._known[row] = True
        for driver in csi_node.spec.drivers:
            if driver.allocatable is not None and driver.allocatable.count is not None:
                column = self._limits.setdefault(driver.name, np.full(self._capacity, NO_LIMIT, np.int64))
                column[row] = driver.allocatable.count
        for plugin in csi_node.annotations.get(csi_migration.MIGRATED_PLUGINS, "").split(","):
            self._migrated.setdefault(plugin, np.zeros(self._capacity, np.bool_))[row] = True

    def known(self, nodes: Nodes) -> Bools:
        """True for nodes with a CSINode."""
        return nodes.pick(self._known)  # type: ignore[no-any-return]

    def limit(self, driver: str, nodes: Nodes) -> Ints | None:
        """Return the limit of a driver's volumes per node, `NO_LIMIT` without one; None if no node has a limit."""
        column = self._limits.get(driver)
        return None if column is None else nodes.pick(column)

    def migrated(self, kind: csi_migration.InTree, nodes: Nodes) -> Bools:
        """True for nodes whose kubelet uses the CSI driver for this in-tree plugin."""
        column = self._migrated.get(kind.name)
        return np.zeros(len(nodes), np.bool_) if column is None else nodes.pick(column)


# -- attached volumes


class AttachmentColumns:
    """VolumeAttachments by row, and their number as a column."""

    def __init__(self, attachments: list[VolumeAttachment], state: ClusterState) -> None:
        self.on: dict[int, list[VolumeAttachment]] = {}
        self.number: Ints = np.zeros(state.table.capacity, np.int64)
        for attachment in attachments:
            row = state.table.row_of.get(attachment.spec.node_name)
            if row is not None and attachment.spec.attacher:
                self.on.setdefault(row, []).append(attachment)
                self.number[row] += 1


def csi_volume(cluster: Cluster, pod: Pod, volume: Volume) -> CSISource | str | None:
    """Return the CSI volume of a pod's volume; None if there is none to count, a text if it cannot be determined.

    This is for nodes with a CSINode: on these nodes in-tree plugins are treated as migrated.
    """
    key = claim_of(pod, volume)
    if not key:
        kind = csi_migration.kind_of(volume)
        if kind is None or not kind.migrated:
            return None
        source = csi_migration.migrated_source(kind, volume, {})
        return f"converting volume({volume.name}) from inline to csi: {source}" if isinstance(source, str) else source
    claim = cluster.get(PersistentVolumeClaim, key)
    if claim is None:
        return f"looking up PVC {key}: {not_found('persistentvolumeclaim', key.partition('/')[2])}"
    if volume.ephemeral is not None and (problem := claim.not_made_for(pod)):
        return problem
    found = _source_of(cluster, claim)
    return found if isinstance(found, CSISource) and found.driver and found.volume_handle else None


def _source_of(cluster: Cluster, claim: PersistentVolumeClaim) -> CSISource | str | None:
    volume = cluster.get(PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _to_be_provisioned(cluster, claim)
    if volume.spec.csi is not None:
        return volume.spec.csi
    kind = csi_migration.kind_of(volume.spec)
    if kind is None or not kind.migrated:
        return None
    return csi_migration.migrated_source(kind, volume.spec, volume.labels)


def _to_be_provisioned(cluster: Cluster, claim: PersistentVolumeClaim) -> CSISource | None:
    """A volume that does not exist yet counts for the driver of its class, with a handle that no volume has."""
    storage_class = cluster.get(StorageClass, claim.storage_class) if claim.storage_class else None
    if storage_class is None:
        return None
    kind = csi_migration.IN_TREE.get(storage_class.provisioner)
    if kind is not None and not kind.migrated:
        return None
    return CSISource(storage_class.provisioner if kind is None else kind.driver, f"\0{claim.key}")


class Attached:
    """The volumes attached to nodes: a cheap upper bound of their number for all nodes, the volumes for one node."""

    def __init__(self) -> None:
        self._attachments = DerivedLookup(VolumeAttachment, AttachmentColumns)
        self._known: dict[int, tuple[object, int, int, set[CSISource]]] = {}

    def at_most(self, nodes: Nodes) -> Ints:
        """Return an upper bound: each mount and each VolumeAttachment counts as one volume."""
        mounts = nodes.used(ATTACHABLE)
        attachments: Ints = nodes.pick(self._attachments(nodes.cluster).number)
        return attachments if mounts is None else attachments + nodes.counts_of(mounts)

    def by_pods(self, nodes: Nodes, position: int) -> set[CSISource]:
        """Return the volumes of the pods on one node."""
        state, row = nodes.cluster._state, int(nodes.rows[position])
        stamp = (state, int(state.table.version[row]), state.store.version)
        known = self._known.get(row)
        if known is None or known[:3] != stamp:
            known = self._known[row] = (*stamp, set(self._sources(nodes.cluster, row)))
        return known[3]

    def _sources(self, cluster: Cluster, row: int) -> Iterator[CSISource]:
        for placed in cluster._state.pods_on[row].values():
            for volume in placed.shape.volumes:
                source = csi_volume(cluster, placed.pod, volume)
                if isinstance(source, CSISource):
                    yield source

    def by_attachments(self, nodes: Nodes, position: int) -> set[CSISource]:
        """Return the volumes of the VolumeAttachments of one node, without inline and in-tree volumes."""
        cluster = nodes.cluster
        found: set[CSISource] = set()
        for attachment in self._attachments(cluster).on.get(int(nodes.rows[position]), ()):
            name = attachment.spec.source.persistent_volume_name
            volume = None if name is None else cluster.get(PersistentVolume, name)
            if volume is not None and volume.spec.csi is not None:
                found.add(CSISource(attachment.spec.attacher, volume.spec.csi.volume_handle))
        return found


# -- access


class VolumeReach:
    """The nodes of a view that can access volumes, for very many volumes at once."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def of(self, target: ReachableNodes) -> Ints:
        """Return the positions of the nodes with access."""
        return np.flatnonzero(within(target.terms, self._nodes))

    def first(self, targets: Sequence[ReachableNodes]) -> Ints:
        """Return for each node the number of the first target that it can access, `NOWHERE` if there is none.

        Targets that require one value of a label are looked up by the node's value, for all nodes at once.
        """
        none = len(targets)
        best = np.full(len(self._nodes), none, np.int64)
        by_key: dict[str, list[int]] = {}
        by_terms: dict[tuple[NodeTerm, ...] | None, int] = {}
        for number, target in enumerate(targets):
            if target.key:
                by_key.setdefault(target.key, []).append(number)
            else:
                by_terms.setdefault(target.terms, number)
        for terms, number in by_terms.items():
            best[within(terms, self._nodes) & (best > number)] = number
        for key, numbers in by_key.items():
            best = np.minimum(best, self._first_of_label(key, numbers, targets))
        best[best == none] = NOWHERE
        return best

    def _first_of_label(self, key: str, numbers: list[int], targets: Sequence[ReachableNodes]) -> Ints:
        label = self._nodes.label(key)
        first = np.full(label.size, len(targets), np.int64)
        codes = [label.code(targets[number].value) or ABSENT for number in reversed(numbers)]
        first[codes] = numbers[::-1]  # for equal codes NumPy keeps the last assignment: the first in order
        first[ABSENT] = len(targets)
        return first[label.codes]


def within(terms: tuple[NodeTerm, ...] | None, nodes: Nodes) -> Bools:
    """True for nodes that meet one of the terms; None is met by all nodes."""
    return np.ones(len(nodes), np.bool_) if terms is None else nodes.matching_any(terms)
