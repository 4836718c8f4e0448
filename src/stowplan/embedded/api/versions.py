"""Conversion of one stored object between API versions.

Events are stored as core/v1; events.k8s.io/v1 has other names for the same fields. The versions of a custom resource
differ in their `apiVersion` only, as with the conversion strategy None.
"""

from __future__ import annotations

import msgspec

from stowplan.embedded.documents import Document
from stowplan.embedded.resources import ServedResource

_EVENT_FIELDS = {
    "message": "note", "involvedObject": "regarding", "reportingComponent": "reportingController",
    "count": "deprecatedCount", "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp", "source": "deprecatedSource",
}  # fmt: skip
_STORED_FIELDS = {new: old for old, new in _EVENT_FIELDS.items()}
EVENTS = "events.k8s.io"


def as_served(resource: ServedResource, document: Document) -> Document:
    """A stored document in the version of a resource."""
    if document.get("apiVersion") == resource.api_version:
        return document
    renamed = _renamed(document, _EVENT_FIELDS) if resource.group == EVENTS else document
    return {**renamed, "apiVersion": resource.api_version, "kind": resource.kind}


def as_stored(resource: ServedResource, document: Document) -> Document:
    """A document in the version of a resource, converted for the store."""
    if resource.group != EVENTS:
        return document
    return {**_renamed(document, _STORED_FIELDS), "apiVersion": "v1"}


def _renamed(document: Document, names: dict[str, str]) -> Document:
    return {names.get(key, key): value for key, value in document.items()}


def encode(resource: ServedResource, document: Document) -> bytes:
    return msgspec.json.encode(as_served(resource, document))
