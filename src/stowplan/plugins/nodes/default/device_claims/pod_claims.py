"""The resource claims of a pod, or why they cannot be used, in kube-scheduler's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.devices import DeviceClass
from stowplan.objects.pod_parts import PodResourceClaim
from stowplan.objects.pods import Pod
from stowplan.objects.resource_claims import ResourceClaim


def claims_of(pod: Pod, cluster: Cluster) -> list[ResourceClaim] | str:
    """Return the pod's claims, in its order; or what is wrong with the first one that cannot be used."""
    found: list[ResourceClaim] = []
    for entry in pod.spec.resource_claims:
        name = name_of(pod, entry)
        if name is None:
            return f'pod "{pod.key}": ResourceClaim not created yet'
        if not name:
            continue  # its template asks for nothing on this pod
        claim = cluster.get(ResourceClaim, f"{pod.namespace}/{name}")
        if claim is None:
            return f'could not find ResourceClaim "{pod.namespace}/{name}"'
        if claim.terminating:
            return f'resourceclaim "{name}" is being deleted'
        if entry.resource_claim_template_name is not None and not claim.belongs_to(pod):
            return f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
        found.append(claim)
    return found


def name_of(pod: Pod, entry: PodResourceClaim) -> str | None:
    """Return the name of a claim; "" if none is needed, None if it was not made from its template yet."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    status = next((each for each in pod.status.resource_claim_statuses if each.name == entry.name), None)
    return None if status is None else status.resource_claim_name or ""


def problem(pod: Pod, claim: ResourceClaim, cluster: Cluster) -> str:
    """Return why a claim that is not allocated cannot be allocated now, on any node."""
    actual = cluster.assumed.actual(ResourceClaim, claim.key)
    pending = actual is not None and actual.allocation is None and claim.allocation is not None
    if pending and not _decided_together(pod, claim, cluster):
        return f"resource claim {claim.key} is in the process of being allocated"
    if claim.allocation is not None:
        return ""
    for request in claim.spec.devices.requests:
        named: Sequence[tuple[str, Any]] = (
            [(f"{request.name}/{each.name}", each) for each in request.first_available]
            or [(request.name, request.exactly)]
        )  # fmt: skip
        for name, spec in named:
            if spec is None or cluster.get(DeviceClass, spec.device_class_name) is None:
                class_name = "" if spec is None else spec.device_class_name
                return f"request {name}: device class {class_name} does not exist"
    return ""


def _decided_together(pod: Pod, claim: ResourceClaim, cluster: Cluster) -> bool:
    """True if all who assume the claim to be allocated belong to the pod's group, which is being decided as a whole."""
    together = cluster.state.deciding
    return pod.uid in together and together.issuperset(cluster.assumed.holders_of(claim))
