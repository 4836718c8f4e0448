"""The fields of built-in kinds, as recorded from a real API server (`builtin_types.json`, made by tests/embedded).

The record holds the type of each field, the defaults that the server always writes, the merge key of each list for
strategic merge patches, and the keys of each list for server-side apply.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

MISSING = msgspec.UNSET


class Field(msgspec.Struct, frozen=True):
    """A field: its type ("[]" before it: a list; "{}": a map by string), its default, and how patches merge it."""

    type: str
    default: Any = MISSING
    strategy: tuple[str, ...] = ()  # "merge", "replace", "retainKeys"
    key: str = ""  # the merge key of the items of a list; "" if the items are plain values
    required: bool = False
    owned: str = ""  # how owners share it: "map" and "set" for lists, "atomic" for objects; "" as usual
    keys: tuple[str, ...] = ()  # of the items of a list that is owned as a map

    @property
    def item(self) -> str:
        """The type of the items of a list or map."""
        return self.type[2:]

    @property
    def holds_many(self) -> bool:
        return self.type[:2] in ("[]", "{}")


@cache
def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(__package__).joinpath("builtin_types.json").read_bytes())
    return found


def version() -> str:
    """The version of the recorded Kubernetes."""
    return str(_recorded()["kubernetes"])


def type_of(api_version: str, kind: str) -> str:
    """The name of the type of a kind; "" if the kind is unknown."""
    return str(_recorded()["kinds"].get(f"{api_version}/{kind}", ""))


@cache
def fields(type_name: str) -> dict[str, Field]:
    """The fields of a type; empty if the type is not an object."""
    return {name: _read(text) for name, text in _recorded()["types"].get(type_name, {}).items()}


def _read(text: str) -> Field:
    first, *words = text.split(" ")
    default, strategy, key, required, owned, keys = MISSING, "", "", False, "", ""
    for word in words:
        if word.startswith("="):
            default = json.loads(word[1:])
        elif word.startswith("~"):
            strategy, _, key = word[1:].partition(":")
        elif word.startswith("@"):
            owned, _, keys = word[1:].partition(":")
        else:
            required = True
    named = tuple(filter(None, keys.split(",")))
    return Field(first, default, tuple(filter(None, strategy.split(","))), key, required, owned, named)
