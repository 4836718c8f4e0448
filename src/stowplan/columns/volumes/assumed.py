"""Volume bindings of assumed pods: assumed at reserve, written at pre-bind, and waited for until they are complete.

All of it is in the assumed objects (`assumed_objects.py`): volumes bound to claims, and claims with a selected node. So
after a restart a decision goes on from what the objects say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from stowplan.columns.assumed_objects import Ref, ref
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.columns.volumes.matching import VolumePlan
from stowplan.objects import volume_assignments
from stowplan.objects.actions import Patch
from stowplan.objects.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim, not_found

Reaches: TypeAlias = Callable[[PersistentVolume], bool]  # True if the pod's node can access the volume


def take(holder: str, plan: VolumePlan, position: int, node_name: str, state: ClusterState) -> None:
    """Assume the bindings that are planned for a node."""
    for claim, volume in plan.bindings(position):
        state.assumed.take(holder, volume_assignments.bound_to_claim(volume, claim))
    for claim in plan.provisions(position):
        state.assumed.take(holder, volume_assignments.with_selected_node(claim, node_name))


def writes(holder: str, cluster: Cluster) -> Iterator[Patch]:
    """Yield the patches that are needed, without those that another pod with the same claim has written."""
    for each in cluster.assumed.taken_by(holder):
        if not cluster.assumed.unconfirmed(each) or cluster.assumed.writer(each):
            continue
        if isinstance(each, PersistentVolumeClaim):
            yield volume_assignments.claim_patch(each)
        elif isinstance(each, PersistentVolume) and (claim := _claim_of(each, cluster)) is not None:
            yield volume_assignments.volume_patch(each, claim)


def unconfirmed(holder: str, node_name: str, cluster: Cluster, reaches: Reaches) -> set[Ref] | str:
    """Return the objects that must change before all bindings are complete; or why that is impossible, as in kube."""
    until: set[Ref] = set()
    for each in cluster.assumed.taken_by(holder):
        claim: PersistentVolumeClaim | None = None
        there: bool | str = True
        if isinstance(each, PersistentVolume):
            claim = _claim_of(each, cluster)
            there = _volume_bound(each, claim, node_name, cluster, reaches)
        elif isinstance(each, PersistentVolumeClaim):
            claim = cluster.assumed.actual(PersistentVolumeClaim, each.key)
            there = _claim_provisioned(each, claim, node_name, cluster, reaches)
        if isinstance(there, str):
            return there
        if claim is not None and not there:
            until |= {ref(each), ref(claim), ("Node", node_name)}
            until |= {("PersistentVolume", claim.spec.volume_name)} if claim.spec.volume_name else set()
    return until


def _claim_of(volume: PersistentVolume, cluster: Cluster) -> PersistentVolumeClaim | None:
    """Return the claim that a volume refers to, unless it is a later claim of the same name."""
    named = volume.spec.claim_ref
    claim = None if named is None else cluster.assumed.actual(PersistentVolumeClaim, f"{named.namespace}/{named.name}")
    return claim if claim is not None and named is not None and volume_assignments.refers_to(named, claim) else None


def _volume_bound(
    volume: PersistentVolume, claim: PersistentVolumeClaim | None, node_name: str, cluster: Cluster, reaches: Reaches
) -> bool | str:
    now, named = cluster.assumed.actual(PersistentVolume, volume.name), volume.spec.claim_ref
    if now is None:
        return f"failed to check binding: {not_found('persistentvolumes', volume.name)}"
    if claim is None:
        key = "" if named is None else f"{named.namespace}/{named.name}"
        return f"failed to check binding: {not_found('persistentvolumeclaims', key)}"
    if cluster.assumed.writer(volume):
        return False  # the server's version does not have our write yet
    if not reaches(now):
        return _out_of_reach(now, node_name)
    if now.spec.claim_ref is None or not now.spec.claim_ref.uid:
        return f'ClaimRef got reset for pv "{now.name}"'
    return _bound(claim, node_name, cluster, reaches)


def _claim_provisioned(
    asked: PersistentVolumeClaim,
    claim: PersistentVolumeClaim | None,
    node_name: str,
    cluster: Cluster,
    reaches: Reaches,
) -> bool | str:
    if claim is None or claim.uid != asked.uid:
        return f"failed to check provisioning pvc: {not_found('persistentvolumeclaims', asked.key)}"
    if cluster.assumed.writer(asked):
        return False
    if not claim.annotations:
        return f'selectedNode annotation reset for PVC "{claim.name}"'
    if claim.annotations.get(SELECTED_NODE) != node_name:
        return f'provisioning failed for PVC "{claim.name}"'  # a provisioner removes the annotation if it fails
    return _bound(claim, node_name, cluster, reaches)


def _bound(claim: PersistentVolumeClaim, node_name: str, cluster: Cluster, reaches: Reaches) -> bool | str:
    name = claim.spec.volume_name
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{name}"'
    volume = cluster.assumed.actual(PersistentVolume, name) if name else None
    if volume is None:
        return False  # not provisioned yet, or not observed yet
    return claim.bound if reaches(volume) else _out_of_reach(volume, node_name)


def _out_of_reach(volume: PersistentVolume, node_name: str) -> str:
    affinity = "node affinity doesn't match node"
    return f'pv "{volume.name}" {affinity} "{node_name}": no matching NodeSelectorTerms'
