"""Patches of objects, as an API server applies them: a conflict if based on another version or if a test fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from stowplan.embedded.api.patching import json_patch, merge
from stowplan.embedded.errors import ApiError
from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

AnyObject = TypeVar("AnyObject", bound=Object)
UNVERSIONED = (Pod, Node)  # plugins do not patch them


def versioned(found: Object, version: int) -> Object:
    """Return the object with this resource version, if it is of a kind that plugins patch."""
    if isinstance(found, UNVERSIONED):
        return found
    metadata = msgspec.structs.replace(found.metadata, resource_version=str(version))
    return msgspec.structs.replace(found, metadata=metadata)


def patched(found: Object, body: Mapping[str, Any] | list[dict[str, Any]]) -> Object | None:
    """Return the object with the patch applied; None for a conflict."""
    if isinstance(body, list):
        try:
            return kinds.convert(type(found), json_patch(msgspec.to_builtins(found, enc_hook=str), body))
        except ApiError:
            return None
    based_on = body.get("metadata", {}).get("resourceVersion", found.metadata.resource_version)
    if based_on != found.metadata.resource_version:
        return None
    return with_patch(found, body)


def with_patch(found: AnyObject, body: Mapping[str, Any]) -> AnyObject:
    """Return the object with a merge patch applied."""
    return kinds.convert(type(found), merge(msgspec.to_builtins(found, enc_hook=str), body))
