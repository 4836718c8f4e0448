"""The resource claims of a pod, or why they cannot be used, in kube-scheduler's words."""

from __future__ import annotations

from stowplan.columns.nodes.views import Cluster
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


def may_use(key: str, pod: Pod) -> bool:
    """True if the pod may refer to a claim of this key: an answer that needs no cluster."""
    namespace, _, name = key.partition("/")
    return namespace == pod.namespace and any(name_of(pod, entry) == name for entry in pod.spec.resource_claims)
