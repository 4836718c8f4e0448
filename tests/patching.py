"""How a pretend API server patches claims and volumes: merge patches, refused if they are based on another version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from stowplan.embedded.patching import merge
from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim

AnyObject = TypeVar("AnyObject", bound=Object)
VERSIONED = (PersistentVolume, PersistentVolumeClaim)


def versioned(found: Object, version: int) -> Object:
    if not isinstance(found, VERSIONED):
        return found
    metadata = msgspec.structs.replace(found.metadata, resource_version=str(version))
    return msgspec.structs.replace(found, metadata=metadata)


def patched(found: Object, body: Mapping[str, Any]) -> Object | None:
    """The object with the patch in it; None for a conflict."""
    based_on = body.get("metadata", {}).get("resourceVersion", found.metadata.resource_version)
    if based_on != found.metadata.resource_version:
        return None
    return with_patch(found, body)


def with_patch(found: AnyObject, body: Mapping[str, Any]) -> AnyObject:
    return kinds.convert(type(found), merge(msgspec.to_builtins(found, enc_hook=str), body))
