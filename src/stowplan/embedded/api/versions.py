"""One stored object at several versions: events as two groups have them, custom resources under another version.

Events are stored as core/v1 has them; events.k8s.io/v1 has other names for the same fields. Custom resources
differ in their `apiVersion` only, as with the conversion strategy None.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.resources import ServedResource

Document: TypeAlias = dict[str, Any]

_EVENT = {
    "message": "note", "involvedObject": "regarding", "reportingComponent": "reportingController",
    "count": "deprecatedCount", "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp", "source": "deprecatedSource",
}  # fmt: skip
_BACK = {new: old for old, new in _EVENT.items()}
EVENTS = "events.k8s.io"


def shown(resource: ServedResource, document: Document) -> Document:
    """A stored document as this resource shows it."""
    if document.get("apiVersion") == resource.api_version:
        return document
    renamed = _renamed(document, _EVENT) if resource.group == EVENTS else document
    return {**renamed, "apiVersion": resource.api_version, "kind": resource.kind}


def stored(resource: ServedResource, document: Document) -> Document:
    """A document as it came to this resource, in the form in which it is stored."""
    if resource.group != EVENTS:
        return document
    return {**_renamed(document, _BACK), "apiVersion": "v1"}


def _renamed(document: Document, names: dict[str, str]) -> Document:
    return {names.get(key, key): value for key, value in document.items()}


def encode(resource: ServedResource, document: Document) -> bytes:
    return msgspec.json.encode(shown(resource, document))
