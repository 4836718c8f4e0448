"""What is wrong with a pod's claims, whatever the node: the claim, volume or StorageClass by name.

claim-missing       it does not exist; claim-not-created: the one of an ephemeral volume does not exist yet
claim-lost          its volume does not exist any more
claim-terminating   it is being deleted
claim-owner         it was not made for the ephemeral volume of this pod
claim-unbound       it should be bound already, or has no StorageClass that binds it
class-missing       its StorageClass does not exist; class-invalid: that has no volumeBindingMode
volume-missing      it is bound to a volume that does not exist
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.cause_texts import nearest
from stowplan.framework.causes import Cause
from stowplan.objects.pod_parts import Volume
from stowplan.objects.pods import Pod
from stowplan.objects.shape import claim_of
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

MISSING = ("claim-missing",)
OF_ZONES = ("claim-missing", "claim-unbound", "class-missing", "class-invalid", "volume-missing")
OF_BINDING = (
    *("claim-missing", "claim-not-created", "claim-lost", "claim-terminating", "claim-owner"),
    *("claim-unbound", "class-missing", "class-invalid"),
)


def problems(pod: Pod, cluster: Cluster, codes: Collection[str]) -> Iterator[Cause]:
    """Yield what is wrong with the pod's claims, as far as a plugin rejects pods for it (`codes`)."""
    found = (cause for volume in pod.shape.volumes for cause in of_volume(pod, volume, cluster))
    return iter(dict.fromkeys(cause for cause in found if cause.code in codes))


def of_class(claim: PersistentVolumeClaim) -> str:
    return f"StorageClass {claim.storage_class}" if claim.storage_class else "no StorageClass"


def of_volume(pod: Pod, volume: Volume, cluster: Cluster) -> Iterator[Cause]:
    """Yield what is wrong with the claim of one volume."""
    key = claim_of(pod, volume)
    if not key:
        return
    name = key.partition("/")[2]
    claim, details = cluster.get(PersistentVolumeClaim, key), {"claim": key}
    if claim is None and volume.ephemeral is not None:
        yield Cause("claim-not-created", f"claim {name} of an ephemeral volume is not created yet", details)
    elif claim is None:
        others = [
            each.name for each in cluster.every(PersistentVolumeClaim).values() if each.namespace == pod.namespace
        ]
        near = nearest((name,), others)
        remark = f" (there is {near})" if near else ""
        yield Cause("claim-missing", f"claim {name} does not exist{remark}", {**details, "nearest": near or None})
    else:
        yield from _of_claim(claim, pod, volume, cluster)


def _of_claim(claim: PersistentVolumeClaim, pod: Pod, volume: Volume, cluster: Cluster) -> Iterator[Cause]:
    name, bound_to, details = claim.name, claim.spec.volume_name, {"claim": claim.key}
    if claim.status.phase == "Lost":
        text = f"claim {name} is lost: its volume {bound_to} does not exist any more"
        yield Cause("claim-lost", text, {**details, "volume": bound_to})
    if claim.terminating:
        yield Cause("claim-terminating", f"claim {name} is being deleted", details)
    if volume.ephemeral is not None and claim.not_made_for(pod):
        yield Cause("claim-owner", f"claim {name} was not created for this pod", details)
    if bound_to and cluster.get(PersistentVolume, bound_to) is None:
        yield volume_missing(claim)
    if not claim.bound:
        yield from _unbound(claim, cluster)


def volume_missing(claim: PersistentVolumeClaim) -> Cause:
    name = claim.spec.volume_name
    text = f"claim {claim.name} is bound to volume {name}, which does not exist"
    return Cause("volume-missing", text, {"claim": claim.key, "volume": name})


def _unbound(claim: PersistentVolumeClaim, cluster: Cluster) -> Iterator[Cause]:
    """A claim that is not bound; no problem if its class waits for a pod."""
    wanted, details = claim.storage_class, {"claim": claim.key, "class": claim.storage_class}
    storage_class = cluster.get(StorageClass, wanted) if wanted else None
    if wanted and storage_class is None:
        near = nearest((wanted,), list(cluster.every(StorageClass)))
        text = f"claim {claim.name} wants StorageClass {wanted}, which does not exist"
        yield Cause("class-missing", text + (f" (there is {near})" if near else ""), details | {"nearest": near})
    elif storage_class is not None and storage_class.volume_binding_mode is None:
        yield Cause("class-invalid", f"StorageClass {wanted} of claim {claim.name} has no volumeBindingMode", details)
    elif claim.spec.volume_name:
        text = f"claim {claim.name} is being bound to volume {claim.spec.volume_name}"
        yield Cause("claim-unbound", text, details)
    elif storage_class is None:
        yield Cause("claim-unbound", f"claim {claim.name} is not bound, and has no StorageClass", details)
    elif not storage_class.waits:
        text = f"claim {claim.name} is not bound yet, and StorageClass {wanted} ({storage_class.provisioner}) binds "
        yield Cause("claim-unbound", f"{text}before pods are scheduled", details)
