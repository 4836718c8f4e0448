"""What is written for a pod's claims: at pre-binding, and on the way back; and what the pod then waits for."""

from __future__ import annotations

import numpy as np

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.actions import ClaimWrite, PodRef, ReleaseClaims, RequestMapping
from stowplan.objects.pods import Pod
from stowplan.objects.resource_claims import ResourceClaim
from stowplan.plugins.nodes.default.device_claims import bindings
from stowplan.plugins.nodes.default.device_claims.extended_resources import IN_MEMORY, claim_for, requests_of


def ref(pod: Pod) -> PodRef:
    return PodRef(pod.namespace, pod.name, pod.uid)


def taken(pod: Pod, cluster: Cluster) -> list[ResourceClaim]:
    """Return the claims that were taken for the pod, as they are assumed to be."""
    return [each for each in cluster.assumed.taken_by(pod.uid) if isinstance(each, ResourceClaim)]


def is_invented(claim: ResourceClaim) -> bool:
    """True for the claim of extended resources, which nobody has created yet."""
    return claim.name.startswith(IN_MEMORY)


def allocating(pod: Pod, node_name: str, cluster: Cluster) -> list[ClaimWrite]:
    """Return what is to be written before the pod is bound, claim by claim."""
    writes = (_write(pod, claim, node_name, cluster) for claim in taken(pod, cluster))
    return [write for write in writes if write is not None]


def _write(pod: Pod, claim: ResourceClaim, node_name: str, cluster: Cluster) -> ClaimWrite | None:
    if is_invented(claim):
        made, mappings = _made(pod, node_name, cluster)
        return ClaimWrite(claim.key, "", claim.allocation, made=made, mappings=mappings)
    actual = cluster.assumed.actual(ResourceClaim, claim.key)
    if actual is not None and actual.reserved_by(pod.uid):
        return None
    allocated = actual is not None and actual.allocation is not None
    together = len(cluster.assumed.holders_of(claim)) > 1
    return ClaimWrite(claim.key, claim.uid, None if allocated else claim.allocation, together=together)


def _made(pod: Pod, node_name: str, cluster: Cluster) -> tuple[ResourceClaim, tuple[RequestMapping, ...]]:
    """Return a claim for extended resources as it is to be created, and which container gets which request."""
    classes = cluster.state.devices.classes.current()
    at = cluster.nodes.position(node_name)
    here = cluster.nodes.where(np.array([] if at is None else [at], np.int64))
    lacking = [name for name in classes.backed(pod.request) if not here.allocatable[name].any()]
    requests, mappings = requests_of(pod, lacking, classes)
    return claim_for(pod, requests), tuple(mappings)


def releasing(pod: Pod, cluster: Cluster) -> ReleaseClaims:
    """Return what takes the pod out of the claims that it was written to, and deletes the one made for it."""
    claims: dict[str, str] = {}
    delete: list[str] = []
    for claim in taken(pod, cluster):
        if is_invented(claim):
            key = _key_of_made(pod, cluster)
            if key:
                claims[key] = ""
                delete.append(key)
            continue
        actual = cluster.assumed.actual(ResourceClaim, claim.key)
        if actual is not None and (actual.reserved_by(pod.uid) or cluster.assumed.writer(claim) == pod.uid):
            claims[claim.key] = claim.uid
    return ReleaseClaims(pod=ref(pod), claims=claims, delete=tuple(delete))


def _key_of_made(pod: Pod, cluster: Cluster) -> str:
    """Return the key of the claim that was created for the pod's extended resources; "" if there is none."""
    cluster.state.devices.catch_up()
    return cluster.state.devices.in_use.of_extended.get(pod.uid, "")


def unprepared(pod: Pod, cluster: Cluster, timeout: float) -> set[tuple[str, str]] | str:
    """Return the objects that must change before the pod can be bound; why it never can be, or "" if it is too late."""
    until: set[tuple[str, str]] = set()
    for claim in taken(pod, cluster):
        made: ResourceClaim | None
        if is_invented(claim):
            key = _key_of_made(pod, cluster)
            made = cluster.assumed.actual(ResourceClaim, key) if key else None
            if made is None or made.allocation is None:
                until.add(("ResourceClaim", key))
                continue
        elif bindings.needs_preparing(claim.allocation):
            made = cluster.assumed.actual(ResourceClaim, claim.key)
        else:
            continue
        if made is None:
            return f'could not find ResourceClaim "{claim.key}"'
        ready: bool | str = made.allocation is not None and bindings.is_ready(made)
        if isinstance(ready, str):
            return ready
        if not ready and bindings.is_late(made, cluster.state.wall_time, timeout):
            return ""
        if not ready:
            until.add(("ResourceClaim", made.key))
    return until
