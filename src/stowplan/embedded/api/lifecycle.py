"""What every object goes through, whatever its kind: getting a name and a uid, updates, and the long way out.

created ── updates ──► deletion asked for ── finalizers or grace left ──► deletionTimestamp ── both over ─┐
                            └── neither ───────────────────────────────────────────────────────► gone ◄─┘
"""

from __future__ import annotations

import random
from typing import Any, TypeAlias

from stowplan.embedded.api.request_options import DeleteOptions
from stowplan.embedded.errors import ApiError, conflict, invalid, wrong
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.timestamps import stamp

Document: TypeAlias = dict[str, Any]

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, so that no words come about; as in Kubernetes
_LONGEST_BASE = 58
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "generateName")
_POLICIES = ("Foreground", "Background", "Orphan")
# These leave their pods alone unless told otherwise, which no other kind does.
ORPHANING = ("replicationcontrollers", "jobs.batch")


def begin(resource: ServedResource, document: Document, namespace: str, now: float, draw: random.Random) -> None:
    """The metadata that the server gives."""
    metadata = document["metadata"]
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generated_name(metadata["generateName"], draw)
    if resource.namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"):
        metadata.pop(name, None)
    metadata["uid"] = new_uid(draw)
    metadata["creationTimestamp"] = stamp(now)
    if resource.counts_generations or resource.custom:
        metadata["generation"] = 1


def generated_name(start: str, draw: random.Random) -> str:
    return start[:_LONGEST_BASE] + "".join(draw.choice(_LETTERS) for _ in range(5))


def new_uid(draw: random.Random) -> str:
    bits = draw.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | (4 << 76) | (2 << 62)
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def check_update(resource: ServedResource, old: Document, new: Document) -> None:
    """409 unless the new document was made from the old one."""
    before, after = old["metadata"], new["metadata"]
    name = before["name"]
    if after.get("uid") not in (None, "", before["uid"]):
        why = f"Precondition failed: UID in precondition: {after['uid']}, UID in object meta: {before['uid']}"
        raise conflict(resource, name, why)
    if after.get("resourceVersion") not in (None, "", "0", before["resourceVersion"]):
        raise conflict(resource, name)
    if resource.custom and not after.get("resourceVersion"):
        cause = wrong("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(resource, name, [cause])


def carry_over(resource: ServedResource, old: Document, new: Document, subresource: str) -> Document:
    """The new document with what an update cannot touch taken from the old one."""
    before, after = old["metadata"], dict(new["metadata"])
    for name in _KEPT:
        if name in before:
            after[name] = before[name]
        else:
            after.pop(name, None)
    after["name"], after["resourceVersion"] = before["name"], before["resourceVersion"]
    if "namespace" in before:
        after["namespace"] = before["namespace"]
    if subresource == "status":
        metadata = before if resource.custom else {**after, "ownerReferences": before.get("ownerReferences")}
        kept = {**old, "metadata": {name: value for name, value in metadata.items() if value is not None}}
        return _with(kept, "status", new.get("status"))
    result = {**new, "metadata": after}
    if "status" in resource.subresources:
        result = _with(result, "status", old.get("status"))
    if "generation" in before and _aim(result) != _aim(old):
        after["generation"] = before["generation"] + 1
    return result


def _with(document: Document, key: str, value: Any) -> Document:
    if value is None:
        return {name: found for name, found in document.items() if name != key}
    return {**document, key: value}


def _aim(document: Document) -> Document:
    """All that counts as a new generation."""
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}


def ended(document: Document) -> bool:
    """Whether nothing holds a deleted object any longer."""
    metadata = document["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds") and not document.get("spec", {}).get("finalizers")


def policy(resource: ServedResource, options: DeleteOptions) -> str:
    if options.orphan_dependents is not None:
        return "Orphan" if options.orphan_dependents else "Background"
    default = "Orphan" if resource.collection in ORPHANING else "Background"
    return options.propagation_policy or default


def check_options(options: DeleteOptions) -> None:
    if options.propagation_policy in (None, "", *_POLICIES):
        return
    known = ", ".join(f'"{each}"' for each in (*_POLICIES, "nil"))
    said = f'Unsupported value: "{options.propagation_policy}": supported values: {known}'
    cause = {"reason": "FieldValueNotSupported", "message": said, "field": "propagationPolicy"}
    details = {"group": "meta.k8s.io", "kind": "DeleteOptions", "causes": [cause]}
    message = f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {said}'
    raise ApiError(422, "Invalid", message, details)


def check_preconditions(resource: ServedResource, document: Document, options: DeleteOptions) -> None:
    metadata, wanted = document["metadata"], options.preconditions or {}
    for field, name, hint in (
        ("uid", "UID", "The object might have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "The object might have been modified"),
    ):
        if wanted.get(field) not in (None, metadata[field]):
            why = f"the {name} in the precondition ({wanted[field]}) does not match"
            raise conflict(resource, metadata["name"], f"{why} the {name} in record ({metadata[field]}). {hint}")


def leaving(document: Document, now: float, grace: int, finalizers: list[str]) -> Document:
    """The document with its deletion asked for; asked again, only a shorter grace changes anything."""
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


def finalizers_for(document: Document, chosen: str) -> list[str]:
    """Those it has, and the one that the propagation policy needs."""
    kept = [name for name in document["metadata"].get("finalizers", ()) if name not in (ORPHAN, FOREGROUND)]
    added = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(chosen, [])
    return kept + added
