"""A volume promised to a claim, a claim promised to a node: what they will look like, and the patches that say so.

The volume controller does the rest: it binds a claim to the volume that names it, and has a volume made where the claim
says it is needed. Patches carry the version they are based on, so that of two schedulers only one gets through.
"""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.objects.actions import Patch
from stowplan.objects.meta import Object
from stowplan.objects.storage import SELECTED_NODE, ObjectReference, PersistentVolume, PersistentVolumeClaim

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


def given(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume, meant for this claim and no other. It says so if it was not its owner who meant it for the claim."""
    named = volume.spec.claim_ref
    mark = {} if named is not None and names(named, claim) else {BOUND_BY_CONTROLLER: "yes"}
    spec = msgspec.structs.replace(volume.spec, claim_ref=ObjectReference(claim.namespace, claim.name, claim.uid))
    metadata = msgspec.structs.replace(volume.metadata, annotations={**mark, **volume.annotations})
    return msgspec.structs.replace(volume, metadata=metadata, spec=spec)


def names(named: ObjectReference, claim: PersistentVolumeClaim) -> bool:
    """Is it this claim? Without a uid, any claim of that name is meant."""
    return (named.namespace, named.name) == (claim.namespace, claim.name) and named.uid in ("", claim.uid)


def sent(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim, its volume to be made where this node can reach it."""
    annotations = {**claim.annotations, SELECTED_NODE: node_name}
    metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
    return msgspec.structs.replace(claim, metadata=metadata)


def volume_patch(given: PersistentVolume, claim: PersistentVolumeClaim) -> Patch:
    """Write down that the volume is given to the claim."""
    meant = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.metadata.resource_version,
    }
    annotations = {key: value for key, value in given.annotations.items() if key == BOUND_BY_CONTROLLER}
    return Patch(
        kind="PersistentVolume",
        key=given.key,
        body={"metadata": _based_on(given, annotations), "spec": {"claimRef": meant}},
    )


def claim_patch(sent: PersistentVolumeClaim) -> Patch:
    """Write down to which node the claim is sent."""
    annotations = {SELECTED_NODE: sent.annotations[SELECTED_NODE]}
    return Patch(kind="PersistentVolumeClaim", key=sent.key, body={"metadata": _based_on(sent, annotations)})


def _based_on(found: Object, annotations: dict[str, str]) -> dict[str, Any]:
    version = found.metadata.resource_version
    return ({"resourceVersion": version} if version else {}) | ({"annotations": annotations} if annotations else {})
