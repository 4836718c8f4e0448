"""VolumeBinding: the pod's claims must be bound to volumes that the node can reach, or must be bindable there.

    bound claims        the volume must be reachable from the node
    unbound claims      of classes that wait for a pod: an existing volume that the node can reach, or one that can be
                        provisioned there (`columns/volumes/matching.py`)
    all other claims    should have been bound already: the pod waits

No eviction makes a volume reachable, so none of the reasons is resolvable; a node may have several.

When the node is chosen, the pod's unbound claims are assumed to be bound as planned (reserve). pre_bind writes it. The
pod waits until the volume controller has bound the claims (pre_bound): `columns/volumes/assumed.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.columns.volumes import assumed as assumed_claims
from stowplan.columns.volumes.attachments import DerivedLookup, DriverColumns, within
from stowplan.columns.volumes.matching import VolumePlan, VolumePlanner
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import SKIP, NotYet, Reject, RejectPod, Skip
from stowplan.framework.interfaces import Wake
from stowplan.objects import csi_migration, quantity
from stowplan.objects.actions import Patch
from stowplan.objects.pods import Pod
from stowplan.objects.shape import claim_of
from stowplan.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    node_terms,
    not_found,
)
from stowplan.plugins.nodes.default import claim_causes, volume_causes

NAME = "VolumeBinding"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NOT_YET_BOUND = "pod has unbound immediate PersistentVolumeClaims"


@dataclass
class PodClaims:
    """A pod's claims by their state; a claim that is mounted twice is listed twice."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    waiting: list[PersistentVolumeClaim] = field(default_factory=list)
    overdue: list[PersistentVolumeClaim] = field(default_factory=list)


class MadePlan:
    """The plan of the last filter call. It holds for the same pod until an object or a node changes."""

    __slots__ = ("_of", "_rows", "plan")

    def __init__(self, pod: Pod, plan: VolumePlan, nodes: Nodes) -> None:
        self.plan, self._rows, self._of = plan, nodes.rows, (pod, *_moment(nodes.cluster))

    def position(self, pod: Pod, node_name: str, cluster: Cluster) -> int | None:
        """Return the place of a node in the plan; None if the plan is not about it, or does not hold any more."""
        if self._of[0] is not pod or self._of[1:] != _moment(cluster):
            return None
        row = cluster.state.table.row_of.get(node_name)
        at = 0 if row is None else int(self._rows.searchsorted(row))
        return at if row is not None and at < len(self._rows) and self._rows[at] == row else None


def _moment(cluster: Cluster) -> tuple[ClusterState, int, int]:
    state = cluster.state
    return state, state.store.version, state.table.node_clock


class VolumeBinding:
    reads = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity")
    writes: ClassVar = {"PersistentVolume": ("patch",), "PersistentVolumeClaim": ("patch",)}
    configurable_at = ("preScore",)
    local = "node"
    skip_is_final = True
    scores_by_node = ignores_requests = True
    pre_bind_late = "binding volumes: context deadline exceeded"

    def __init__(self, bind_timeout_seconds: int = 600, shape: Sequence[Mapping[str, Any]] | None = None) -> None:
        """`bindTimeoutSeconds`: how long a pod waits for its volumes. `shape` belongs to a feature that is off."""
        self.pre_bind_timeout = bind_timeout_seconds
        self.shape = shape
        self.planner = VolumePlanner()
        self._made: MadePlan | None = None
        self._drivers = DerivedLookup(CSINode, DriverColumns)

    def pre_filters_by_shape(self, pod: Pod) -> bool:
        return not pod.shape.claims

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Skip | None:
        if not pod.shape.claims:
            return SKIP
        claims = _unusable(pod, cluster) or claims_of(pod, cluster)
        cluster.notes[NAME] = (cluster.state.store.version, claims)
        if isinstance(claims, str):
            return RejectPod((claims,), resolvable=False)
        return RejectPod((NOT_YET_BOUND,), resolvable=False) if claims.overdue else None

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        version, claims = nodes.cluster.notes.get(NAME, (-1, ""))
        if version != nodes.cluster.state.store.version or isinstance(claims, str):
            claims = claims_of(pod, nodes.cluster)
        if isinstance(claims, str):
            yield Reject(np.ones(len(nodes), np.bool_), claims, resolvable=False)
            return
        out_of_reach, gone = self._bound(claims.bound, nodes) if claims.bound else (None, None)
        plan = self.planner.plan(claims.waiting, nodes) if claims.waiting else None
        self._made = None if plan is None else MadePlan(pod, plan, nodes)
        no_volume, no_space = (None, None) if plan is None else (plan.no_volume, plan.no_space)
        reasons = ((out_of_reach, OUT_OF_REACH), (no_volume, NO_VOLUME), (no_space, NO_SPACE), (gone, VOLUME_GONE))
        for rejected, reason in reasons:
            if rejected is not None:
                yield Reject(rejected, reason, resolvable=False)

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        claims = claims_of(pod, nodes.cluster)
        if isinstance(claims, str):  # reached only if a configuration disables preFilter
            everywhere = np.ones(len(nodes), np.bool_)
            yield from (NodeCause(everywhere, cause) for cause in self.pod_causes(pod, nodes.cluster))
            return
        yield from volume_causes.of_bound(claims.bound, nodes, self._within_reach)
        yield from volume_causes.of_unbound(claims.waiting, nodes, self.planner)

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:
        return claim_causes.problems(pod, cluster, claim_causes.OF_BINDING)

    def score(self, pod: Pod, nodes: Nodes) -> None:  # noqa: ARG002
        """kube-scheduler scores storage only with a feature (StorageCapacityScoring) that is off."""
        return

    def _bound(self, claims: list[PersistentVolumeClaim], nodes: Nodes) -> tuple[Bools, Bools]:
        """Return the nodes that cannot reach a bound volume, and the nodes to reject for a volume that is missing."""
        out_of_reach, gone = np.zeros(len(nodes), np.bool_), np.zeros(len(nodes), np.bool_)
        for claim in claims:
            volume = nodes.cluster.get(PersistentVolume, claim.spec.volume_name)
            if volume is None:
                gone = ~out_of_reach
                break
            out_of_reach |= ~self._within_reach(volume, nodes)
        return out_of_reach, gone

    def _within_reach(self, volume: PersistentVolume, nodes: Nodes) -> Bools:
        reachable = within(volume.node_terms, nodes)
        kind = csi_migration.kind_of(volume.spec)
        if kind is None or not kind.migrated:
            return reachable
        moved = self._drivers(nodes.cluster).migrated(kind, nodes)
        if isinstance(csi_migration.migrated_source(kind, volume.spec, volume.labels), str):
            return reachable & ~moved  # a disk that the driver has no name for; an error to kube-scheduler
        return np.where(moved, within(node_terms(csi_migration.migrated_affinity(kind, volume)), nodes), reachable)

    # -- binding

    def reserve(self, pod: Pod, node_name: str, cluster: Cluster) -> RejectPod | None:
        """Assume that the pod's claims are bound as planned on the node."""
        if not pod.shape.claims:
            return None
        made, self._made = self._made, None
        at = None if made is None else made.position(pod, node_name, cluster)
        if made is not None and at is not None and len(set(pod.shape.claims)) == len(pod.shape.claims):
            return self._take(pod, made.plan, at, node_name, cluster)
        nodes = cluster.nodes
        place = nodes.position(node_name)
        here = nodes.where(np.array([] if place is None else [place], np.int64))
        claims = claims_of(pod, cluster)
        if isinstance(claims, str):
            return RejectPod((claims,), resolvable=False)
        # A claim that is mounted twice needs one volume only.
        plan = self.planner.plan(list({claim.key: claim for claim in claims.waiting}.values()), here)
        return self._take(pod, plan, 0, node_name, cluster)

    @staticmethod
    def _take(pod: Pod, plan: VolumePlan, at: int, node_name: str, cluster: Cluster) -> RejectPod | None:
        closed = plan.closed
        if closed is not None and closed[at : at + 1].any():
            return RejectPod((NO_VOLUME,), resolvable=False)
        assumed_claims.take(pod.uid, plan, at, node_name, cluster.state)
        return None

    def unreserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:  # noqa: ARG002
        cluster.state.assumed.release(pod.uid)

    def pre_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterator[Patch]:  # noqa: ARG002
        return assumed_claims.writes(pod.uid, cluster)

    def pre_bound(self, pod: Pod, node_name: str, cluster: Cluster) -> bool | NotYet | RejectPod:
        if not cluster.assumed.taken_by(pod.uid):
            return True
        here = cluster.nodes.where(cluster.nodes.name == node_name)
        if not len(here):
            gone = f'failed to get node "{node_name}": {not_found("node", node_name)}'
            return RejectPod((f"binding volumes: {gone}",))
        until = assumed_claims.unconfirmed(
            pod.uid, node_name, cluster, lambda volume: bool(self._within_reach(volume, here).all())
        )
        if isinstance(until, str):
            return RejectPod((f"binding volumes: {until}",))
        return NotYet(frozenset(until)) if until else True

    # -- requeueing

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("StorageClass", ("Add", "Update"), hint="topologies_changed")
        yield Wake("PersistentVolumeClaim", ("Add", "Update"), hint="is_claimed")
        yield Wake("PersistentVolume", ("Add", "Update"))
        yield Wake("Node", ("Add", "UpdateNodeLabel"))
        yield Wake("CSINode", ("Add", "Update"), hint="migrated_plugins_changed")
        yield Wake("CSIDriver", ("Update",), hint="capacity_unchecked_now")
        yield Wake("CSIStorageCapacity", ("Add", "Update"), hint="has_more_space")

    def topologies_changed(self, pod: Pod, old: StorageClass | None, new: StorageClass | None) -> bool:  # noqa: ARG002
        return new is not None and (old is None or old.allowed_topologies != new.allowed_topologies)

    def is_claimed(self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:  # noqa: ARG002
        return new is not None and new.key in pod.shape.claims

    def migrated_plugins_changed(self, pod: Pod, old: CSINode | None, new: CSINode | None) -> bool:  # noqa: ARG002
        if old is None or new is None:
            return new is not None
        return old.annotations.get(csi_migration.MIGRATED_PLUGINS, "") != new.annotations.get(
            csi_migration.MIGRATED_PLUGINS, ""
        )

    def capacity_unchecked_now(self, pod: Pod, old: CSIDriver | None, new: CSIDriver | None) -> bool:
        """True if the capacity of a driver is not checked any more; as in kube-scheduler, only of inline volumes."""
        if old is None or new is None or not old.spec.storage_capacity or new.spec.storage_capacity:
            return False
        return any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.shape.volumes)

    def has_more_space(self, pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> bool:  # noqa: ARG002
        if old is None or new is None:
            return new is not None
        before, after = old.limit, new.limit
        return after is not None and (before is None or quantity.value(after) > quantity.value(before))


def _unusable(pod: Pod, cluster: Cluster) -> str:
    """Return why one of the pod's claims cannot be used, or an empty text."""
    for volume in pod.shape.volumes:
        key = claim_of(pod, volume)
        if not key:
            continue
        name = key.partition("/")[2]
        claim = cluster.get(PersistentVolumeClaim, key)
        if claim is None and volume.ephemeral is not None:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        if claim is None:
            return not_found("persistentvolumeclaim", name)
        if claim.status.phase == "Lost":
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        if claim.terminating:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if volume.ephemeral is not None and (problem := claim.not_made_for(pod)):
            return problem
    return ""


def claims_of(pod: Pod, cluster: Cluster) -> PodClaims | str:
    """Return the pod's claims by their state, or what is wrong with one of them."""
    found = PodClaims()
    for key in pod.shape.claims:
        claim = cluster.get(PersistentVolumeClaim, key)
        if claim is None:
            return f'error getting PVC "{key}": {not_found("persistentvolumeclaims", key)}'
        storage_class = cluster.get(StorageClass, claim.storage_class) if claim.storage_class else None
        if claim.bound:
            found.bound.append(claim)
        elif storage_class is not None and storage_class.volume_binding_mode is None:
            return f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"'
        elif storage_class is not None and storage_class.waits and not claim.spec.volume_name:
            found.waiting.append(claim)
        else:
            found.overdue.append(claim)
    return found
