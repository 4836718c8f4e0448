"""LeafNodeVolumeBinding: VolumeBinding, and what a pod's claims need on the leaf nodes of Kosmos.

    host nodes                          as VolumeBinding has it
    leaf nodes that stand for one node  the same, and any node will do for a pod none of whose claims is bound yet
    leaf nodes that stand for a cluster a bound volume, or an unbound claim, that has an owner (the annotation
                                        kosmos-io/cluster-owners) must have the node's cluster as its owner; a volume
                                        without an owner must name the node by its affinity; for another claim there
                                        must be a volume, or a class that provisions one

What is chosen on a leaf node is bound in its own cluster: nothing is reserved or written here. A configuration lists
this plugin instead of VolumeBinding.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import ClassVar

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.volumes.attachments import NOWHERE, within
from stowplan.columns.volumes.matching import NO_PROVISIONER
from stowplan.framework.cause_texts import few
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import Reject, RejectPod
from stowplan.objects.pods import Pod
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from stowplan.objects.taints import Taint
from stowplan.plugins.nodes.default.claim_causes import volume_missing
from stowplan.plugins.nodes.default.volume_binding import NO_VOLUME, OUT_OF_REACH, VOLUME_GONE, VolumeBinding, claims_of
from stowplan.plugins.nodes.leaf_nodes.columns import CLUSTER, HOST, LEAF_LABEL, LEAF_VALUE, ONE_NODE, LeafColumns
from stowplan.plugins.nodes.leaf_nodes.taint_toleration import LEAF_EFFECT, LEAF_KEY

OWNERS = "kosmos-io/cluster-owners"
LEAF_TAINT = Taint(LEAF_KEY, LEAF_EFFECT, "true")


class LeafNodeVolumeBinding(VolumeBinding):
    instead_of: ClassVar = dict.fromkeys(("preFilter", "filter", "reserve", "preBind"), "VolumeBinding")

    def __init__(self, bind_timeout_seconds: int = 600) -> None:
        super().__init__(bind_timeout_seconds)
        self._leaves = LeafColumns()

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        kinds, claims = self._leaves.kinds(nodes), claims_of(pod, nodes.cluster)
        if isinstance(claims, str) or not (kinds != HOST).any():
            yield from super().filter(pod, nodes)
            return
        ordinary = (kinds == HOST) | ((kinds == ONE_NODE) & bool(claims.bound))
        if ordinary.any():
            for reject in super().filter(pod, nodes.where(ordinary)):
                yield _spread(reject, ordinary)
        whole = kinds == CLUSTER
        if whole.any():
            for reject in self._on_clusters(claims.bound, claims.waiting, nodes.where(whole)):
                yield _spread(reject, whole)

    def _on_clusters(
        self, bound: list[PersistentVolumeClaim], waiting: list[PersistentVolumeClaim], nodes: Nodes
    ) -> Iterator[Reject]:
        """Yield the rejections of leaf nodes that stand for clusters."""
        out_of_reach, gone = np.zeros(len(nodes), np.bool_), np.zeros(len(nodes), np.bool_)
        for claim in bound:
            volume = nodes.cluster.get(PersistentVolume, claim.spec.volume_name)
            if volume is None:
                gone = ~out_of_reach
                break
            out_of_reach |= ~self._belongs(volume, nodes)
        yield Reject(out_of_reach, OUT_OF_REACH, resolvable=False)
        yield Reject(self._without_volume(waiting, nodes), NO_VOLUME, resolvable=False)
        yield Reject(gone, VOLUME_GONE, resolvable=False)

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        kinds, claims = self._leaves.kinds(nodes), claims_of(pod, nodes.cluster)
        if isinstance(claims, str) or not (kinds != HOST).any():
            yield from super().causes(pod, nodes)
            return
        whole = kinds == CLUSTER
        if not whole.all():
            for each in super().causes(pod, nodes.where(~whole)):
                yield NodeCause(_among(each.rows, ~whole), each.cause)
        if whole.any():
            there = nodes.where(whole)
            for each in chain(self._bound_elsewhere(claims.bound, there), self._not_made(claims.waiting, there)):
                yield NodeCause(_among(each.rows, whole), each.cause)

    def _bound_elsewhere(self, claims: list[PersistentVolumeClaim], nodes: Nodes) -> Iterator[NodeCause]:
        for claim in claims:
            volume = nodes.cluster.get(PersistentVolume, claim.spec.volume_name)
            if volume is None:
                yield NodeCause(np.ones(len(nodes), np.bool_), volume_missing(claim))
                continue
            owner = volume.annotations.get(OWNERS)
            whose = "names neither this node nor its cluster" if owner is None else f"belongs to cluster {owner}"
            text = f"volume {volume.name} of claim {claim.name} {whose}"
            details = {"volume": volume.name, "claim": claim.key, "cluster": owner}
            yield NodeCause(~self._belongs(volume, nodes), Cause("volume-affinity", text, details))

    def _not_made(self, claims: list[PersistentVolumeClaim], nodes: Nodes) -> Iterator[NodeCause]:
        rows = self._without_volume(claims, nodes)
        names = [claim.name for claim in claims]
        text = f"claim {few(names)}: the node's cluster has no volume, and would make none"
        yield NodeCause(rows, Cause("no-volume", text, {"claims": tuple(names)}))

    def _belongs(self, volume: PersistentVolume, nodes: Nodes) -> Bools:
        owner = volume.annotations.get(OWNERS)
        if owner is not None:
            return self._of_cluster(owner, nodes)
        if volume.spec.node_affinity is None:
            return np.zeros(len(nodes), np.bool_)
        return within(volume.node_terms, nodes)

    def _of_cluster(self, owner: str, nodes: Nodes) -> Bools:
        found: Bools = self._leaves.clusters(nodes) == self._leaves.code(owner)
        return found

    def _without_volume(self, claims: list[PersistentVolumeClaim], nodes: Nodes) -> Bools:
        """True for nodes where one of these claims finds no volume, and where none would be made."""
        found, others = np.zeros(len(nodes), np.bool_), []
        for claim in claims:
            if OWNERS in claim.annotations:
                found |= ~self._of_cluster(claim.annotations[OWNERS], nodes)
                found |= not _provisions(claim, nodes.cluster)
            else:
                others.append(claim)
        for claim, choice in self.planner.plan(others, nodes).chosen:
            if not _provisions(claim, nodes.cluster):
                found |= choice == NOWHERE
        return found

    def reserve(self, pod: Pod, node_name: str, cluster: Cluster) -> RejectPod | None:
        row = cluster.state.table.row_of.get(node_name)
        node = None if row is None else cluster.state.table.nodes[row]
        if node is not None and (node.labels.get(LEAF_LABEL) == LEAF_VALUE or LEAF_TAINT in node.taints):
            return None
        return super().reserve(pod, node_name, cluster)


def _provisions(claim: PersistentVolumeClaim, cluster: Cluster) -> bool:
    found = cluster.get(StorageClass, claim.storage_class) if claim.storage_class else None
    return found is not None and found.provisioner not in NO_PROVISIONER


def _spread(reject: Reject, where: Bools) -> Reject:
    """Return a rejection of some nodes as one of all nodes."""
    return Reject(_among(reject.rows, where), reject.reason, resolvable=reject.resolvable)


def _among(rows: Bools, where: Bools) -> Bools:
    """Return rows of some nodes as rows of all nodes."""
    found = np.zeros(len(where), np.bool_)
    found[where] = rows
    return found
