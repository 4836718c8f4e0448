"""The claims of several members of a group on one node, allocated together.

Members are placed one by one, and each takes the devices that it likes best: the whole device, say, of which two halves
would do for two members. So where a member finds nothing, the claims of members that were placed there in the same
decision are allocated again, together with its own. Nothing of them is written yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.pods import Pod
from stowplan.objects.resource_claims import AllocationResult, ResourceClaim
from stowplan.plugins.nodes.default.device_claims.planner import Planner
from stowplan.plugins.nodes.default.device_claims.questions import FatalError


@dataclass(frozen=True, slots=True)
class JointAllocation:
    """New allocations by claim: of the pod itself, and of the members that are placed on the node."""

    members: tuple[str, ...]  # uids
    allocations: dict[str, AllocationResult]  # by the claim's key


def has_members(pod: Pod, row: int, cluster: Cluster) -> bool:
    """True if members that are decided together with the pod are placed on this node."""
    together = cluster.state.deciding
    return pod.uid in together and any(uid in together for uid in cluster.state.pods_on[row] if uid != pod.uid)


def find(
    pod: Pod, unallocated: list[ResourceClaim], row: int, cluster: Cluster, planner: Planner
) -> JointAllocation | None:
    """Allocate the claims of the members on a node together with those of the pod; None if that is not possible."""
    state = cluster.state
    others = _of_members(pod, row, cluster)
    if not others or not unallocated:
        return None
    claims = [*others.values(), *unallocated]
    with state.trial():
        for claim in others.values():
            state.put(claim)
        group = planner.group(np.array([row], np.int64), claims, cluster)
        try:
            planned = planner.planned(group, row, cluster)
        except (LookupError, FatalError):
            return None
    members = tuple(uid for uid in state.pods_on[row] if uid in state.deciding and uid != pod.uid)
    return JointAllocation(members, {each.key: each.allocation for each in planned})


def _of_members(pod: Pod, row: int, cluster: Cluster) -> dict[str, ResourceClaim]:
    """Return the claims that members on the node reserved, as the server has them: not allocated."""
    assumed, together = cluster.assumed, cluster.state.deciding
    found: dict[str, ResourceClaim] = {}
    for uid in cluster.state.pods_on[row]:
        if uid == pod.uid or uid not in together:
            continue
        for claim in assumed.taken_by(uid):
            actual = assumed.actual(ResourceClaim, claim.key)
            if isinstance(claim, ResourceClaim) and actual is not None and actual.allocation is None:
                if not together.issuperset(assumed.holders_of(claim)) or not _only_here(claim, row, cluster):
                    return {}
                found[claim.key] = actual
    return found


def _only_here(claim: ResourceClaim, row: int, cluster: Cluster) -> bool:
    """True if all members that use the claim are on this node."""
    return all(uid in cluster.state.pods_on[row] for uid in cluster.assumed.holders_of(claim))


def reallocate(joint: JointAllocation, cluster: Cluster) -> None:
    """Give the members their new allocations."""
    assumed = cluster.state.assumed
    taken = {uid: assumed.taken_by(uid) for uid in joint.members}
    for uid in joint.members:
        assumed.release(uid)
    for uid, claims in taken.items():
        for claim in claims:
            allocation = joint.allocations.get(claim.key)
            if isinstance(claim, ResourceClaim) and allocation is not None:
                status = msgspec.structs.replace(claim.status, allocation=allocation)
                claim = msgspec.structs.replace(claim, status=status)
            assumed.take(uid, claim)
