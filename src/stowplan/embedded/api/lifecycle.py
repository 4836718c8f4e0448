"""The life cycle of an object of any kind: its metadata at creation, updates, and deletion.

created ── updates ──► deletion requested ── finalizers or a grace period ──► terminating ── both over ─┐
                            └── neither ────────────────────────────────────────────────► removed ◄────┘
"""

from __future__ import annotations

import random
from typing import Any

from stowplan.embedded.api.request_options import DeleteOptions
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, conflict, invalid, invalid_value
from stowplan.embedded.numbers import natural
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.timestamps import stamp

_WITH_OWN_STATUS = ("resourceclaims.resource.k8s.io",)  # a write of the status leaves their metadata alone
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # as in Kubernetes: no vowels, so that no words are formed
_LONGEST_BASE = 58
_DAEMON_SETS, TEMPLATE_GENERATION = "daemonsets.apps", "deprecated.daemonset.template.generation"
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_IMMUTABLE = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
)
_POLICIES = ("Foreground", "Background", "Orphan")
# The kinds whose dependents are orphaned by default.
ORPHANING = ("replicationcontrollers", "jobs.batch")


def set_metadata(
    resource: ServedResource, document: Document, namespace: str, now: float, generator: random.Random
) -> None:
    """Set the metadata fields that the API server owns."""
    metadata = document["metadata"]
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generated_name(metadata["generateName"], generator)
    if resource.namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"):
        metadata.pop(name, None)
    metadata["uid"] = new_uid(generator)
    metadata["creationTimestamp"] = stamp(now)
    if resource.counts_generations or resource.custom:
        metadata["generation"] = 1
    if resource.collection == _DAEMON_SETS:
        metadata["annotations"] = {**metadata.get("annotations", {}), TEMPLATE_GENERATION: "1"}


def generated_name(start: str, generator: random.Random) -> str:
    return start[:_LONGEST_BASE] + "".join(generator.choice(_LETTERS) for _ in range(5))


def new_uid(generator: random.Random) -> str:
    bits = generator.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | (4 << 76) | (2 << 62)
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def check_update(resource: ServedResource, old: Document, new: Document) -> None:
    """Raise 409 unless the new document is based on the old one."""
    before, after = old["metadata"], new["metadata"]
    name = before["name"]
    if after.get("uid") not in (None, "", before["uid"]):
        why = f"Precondition failed: UID in precondition: {after['uid']}, UID in object meta: {before['uid']}"
        raise conflict(resource, name, why)
    if after.get("resourceVersion") not in (None, "", "0", before["resourceVersion"]):
        raise conflict(resource, name)
    if resource.custom and not after.get("resourceVersion"):
        cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(resource, name, [cause])


def carry_over(resource: ServedResource, old: Document, new: Document, subresource: str) -> Document:
    """The new document with the fields of the old one that an update cannot change."""
    before, after = old["metadata"], dict(new["metadata"])
    for name in _IMMUTABLE:
        if name in before:
            after[name] = before[name]
        else:
            after.pop(name, None)
    after["name"], after["resourceVersion"] = before["name"], before["resourceVersion"]
    if "namespace" in before:
        after["namespace"] = before["namespace"]
    if "managedFields" in before:
        after["managedFields"] = before["managedFields"]
    if subresource == "status":
        kept_whole = resource.custom or resource.collection in _WITH_OWN_STATUS
        metadata = before if kept_whole else {**after, "ownerReferences": before.get("ownerReferences")}
        kept = {**old, "metadata": {name: value for name, value in metadata.items() if value is not None}}
        return _with(kept, "status", new.get("status"))
    result = {**new, "metadata": after}
    if "status" in resource.subresources:
        result = _with(result, "status", old.get("status"))
    if "generation" in before and _desired_state(result) != _desired_state(old):
        after["generation"] = before["generation"] + 1
    if resource.collection == _DAEMON_SETS:
        number = template_generation(old) + (result["spec"]["template"] != old["spec"]["template"])
        after["annotations"] = {**after.get("annotations", {}), TEMPLATE_GENERATION: str(number)}
    return result


def template_generation(daemon_set: Document) -> int:
    """How many templates a DaemonSet had. The API keeps it in an annotation that clients cannot change."""
    text = daemon_set["metadata"].get("annotations", {}).get(TEMPLATE_GENERATION, "1")
    return natural(text, 1)


def with_owners(metadata: Document, owners: list[Document]) -> Document:
    """The metadata with other field managers, or with none."""
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**kept, "managedFields": owners} if owners else kept


def _with(document: Document, key: str, value: Any) -> Document:
    if value is None:
        return {name: found for name, found in document.items() if name != key}
    return {**document, key: value}


def _desired_state(document: Document) -> Document:
    """The part of a document whose change starts a new generation."""
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}


def is_removable(document: Document) -> bool:
    """True if an object is terminating and neither a finalizer nor a grace period holds it."""
    metadata = document["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds") and not document.get("spec", {}).get("finalizers")


def propagation_policy(resource: ServedResource, options: DeleteOptions) -> str:
    if options.orphan_dependents is not None:
        return "Orphan" if options.orphan_dependents else "Background"
    default = "Orphan" if resource.collection in ORPHANING else "Background"
    return options.propagation_policy or default


def check_options(options: DeleteOptions) -> None:
    if options.propagation_policy in (None, "", *_POLICIES):
        return
    known = ", ".join(f'"{each}"' for each in (*_POLICIES, "nil"))
    problem = f'Unsupported value: "{options.propagation_policy}": supported values: {known}'
    cause = {"reason": "FieldValueNotSupported", "message": problem, "field": "propagationPolicy"}
    details = {"group": "meta.k8s.io", "kind": "DeleteOptions", "causes": [cause]}
    message = f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {problem}'
    raise ApiError(422, "Invalid", message, details)


def check_preconditions(resource: ServedResource, document: Document, options: DeleteOptions) -> None:
    metadata, preconditions = document["metadata"], options.preconditions or {}
    for field, name, hint in (
        ("uid", "UID", "The object might have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "The object might have been modified"),
    ):
        if preconditions.get(field) not in (None, metadata[field]):
            why = f"the {name} in the precondition ({preconditions[field]}) does not match"
            raise conflict(resource, metadata["name"], f"{why} the {name} in record ({metadata[field]}). {hint}")


def with_deletion(document: Document, now: float, grace: int, finalizers: list[str]) -> Document:
    """The document with its deletion requested. A second request changes it only if its grace period is shorter."""
    metadata = dict(document["metadata"])
    if "deletionTimestamp" not in metadata or grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = stamp(now + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if "generation" in metadata and "deletionTimestamp" not in document["metadata"]:
            metadata["generation"] += 1
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    return {**document, "metadata": metadata}


def finalizers_for(document: Document, propagation: str) -> list[str]:
    """The finalizers of the document, with the one that the propagation policy needs."""
    kept = [name for name in document["metadata"].get("finalizers", ()) if name not in (ORPHAN, FOREGROUND)]
    added = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(propagation, [])
    return kept + added
