"""Reads an object in part: every field of its metadata, spec and status by itself.

For an object that cannot be read as a whole. A field that cannot be read is as it was in the version that is known;
without one it is missing.
"""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.objects import json_text
from stowplan.objects.kinds import AnyObject
from stowplan.objects.quantity import custom_value

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NOTHING: dict[str, msgspec.Raw] = {}


def read_in_part(kind: type[AnyObject], document: bytes, known: AnyObject | None = None) -> AnyObject:
    """Return what can be read of an object; `known`: an earlier version of it."""
    found: AnyObject = _read(kind, json_text.readable(document), known, parts=True)
    return found


def _read(kind: type[Any], document: bytes | msgspec.Raw, known: Any, *, parts: bool) -> Any:
    found, members = {}, _members_of(document)
    for field in msgspec.structs.fields(kind):
        member = members.get(field.encode_name)
        if member is None or bytes(member) == b"null":
            continue
        before = getattr(known, field.name, None)
        try:
            found[field.name] = msgspec.json.decode(member, type=field.type, dec_hook=custom_value, strict=False)
        except Exception:
            if parts and isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
                found[field.name] = _read(field.type, member, before, parts=False)
            elif known is not None:
                found[field.name] = before
    return kind(**found)


def _members_of(document: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    try:
        return _members.decode(document)
    except Exception:  # not even that
        return _NOTHING
