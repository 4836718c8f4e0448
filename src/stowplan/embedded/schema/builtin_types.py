"""The fields of the kinds we serve, as a real server describes them (`builtin_types.json`, made by tests/embedded).

Three things are read from it: which fields there are and of which type, what is always there though nobody wrote
it, and by which key a strategic merge patch tells the items of a list apart.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

MISSING = msgspec.UNSET


class Field(msgspec.Struct, frozen=True):
    """A field's type ("[]" before it: a list; "{}": a map by string), default, and how patches merge it."""

    type: str
    default: Any = MISSING
    strategy: tuple[str, ...] = ()  # of "merge", "replace", "retainKeys"
    key: str = ""  # by which a merged list's items are told apart; "": they are plain values
    required: bool = False

    @property
    def item(self) -> str:
        """The type of what a list or map holds."""
        return self.type[2:]

    @property
    def holds_many(self) -> bool:
        return self.type[:2] in ("[]", "{}")


@cache
def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(__package__).joinpath("builtin_types.json").read_bytes())
    return found


def version() -> str:
    """Of the Kubernetes that was asked."""
    return str(_recorded()["kubernetes"])


def type_of(api_version: str, kind: str) -> str:
    """The name of a kind's type; "" if it is none of ours."""
    return str(_recorded()["kinds"].get(f"{api_version}/{kind}", ""))


@cache
def fields(type_name: str) -> dict[str, Field]:
    """What an object of this type may have; nothing for types that are not objects."""
    return {name: _read(text) for name, text in _recorded()["types"].get(type_name, {}).items()}


def _read(text: str) -> Field:
    first, *words = text.split(" ")
    default, strategy, key, required = MISSING, "", "", False
    for word in words:
        if word.startswith("="):
            default = json.loads(word[1:])
        elif word.startswith("~"):
            strategy, _, key = word[1:].partition(":")
        else:
            required = True
    return Field(first, default, tuple(filter(None, strategy.split(","))), key, required)
