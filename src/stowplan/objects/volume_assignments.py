"""Volumes that are bound to a claim, and claims with a selected node: the future objects and the patches for them.

The volume controller does the rest: it binds a claim to the volume that refers to it, and a provisioner makes a volume
for the selected node. Patches have the resourceVersion they are based on, so that of two schedulers only one succeeds.
"""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.objects.actions import Patch
from stowplan.objects.meta import Object
from stowplan.objects.storage import SELECTED_NODE, ObjectReference, PersistentVolume, PersistentVolumeClaim

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


def bound_to_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return the volume with a reference to this claim; with an annotation, unless a user wrote the reference."""
    named = volume.spec.claim_ref
    mark = {} if named is not None and refers_to(named, claim) else {BOUND_BY_CONTROLLER: "yes"}
    spec = msgspec.structs.replace(volume.spec, claim_ref=ObjectReference(claim.namespace, claim.name, claim.uid))
    metadata = msgspec.structs.replace(volume.metadata, annotations={**mark, **volume.annotations})
    return msgspec.structs.replace(volume, metadata=metadata, spec=spec)


def refers_to(named: ObjectReference, claim: PersistentVolumeClaim) -> bool:
    """True if a reference is to this claim. A reference without a uid is to any claim of the name."""
    return (named.namespace, named.name) == (claim.namespace, claim.name) and named.uid in ("", claim.uid)


def with_selected_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """Return the claim with the node for which its volume must be provisioned."""
    annotations = {**claim.annotations, SELECTED_NODE: node_name}
    metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
    return msgspec.structs.replace(claim, metadata=metadata)


def volume_patch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Patch:
    """Return the patch that writes the volume's reference to the claim."""
    reference = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.metadata.resource_version,
    }
    annotations = {key: value for key, value in volume.annotations.items() if key == BOUND_BY_CONTROLLER}
    return Patch(
        kind="PersistentVolume",
        key=volume.key,
        body={"metadata": _based_on(volume, annotations), "spec": {"claimRef": reference}},
    )


def claim_patch(claim: PersistentVolumeClaim) -> Patch:
    """Return the patch that writes the claim's selected node."""
    annotations = {SELECTED_NODE: claim.annotations[SELECTED_NODE]}
    return Patch(kind="PersistentVolumeClaim", key=claim.key, body={"metadata": _based_on(claim, annotations)})


def _based_on(found: Object, annotations: dict[str, str]) -> dict[str, Any]:
    version = found.metadata.resource_version
    return ({"resourceVersion": version} if version else {}) | ({"annotations": annotations} if annotations else {})
