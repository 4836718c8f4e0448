"""What controllers want done. A `Note` with an action becomes an event once the action has succeeded."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

Document: TypeAlias = dict[str, Any]


class EventNote(msgspec.Struct, frozen=True):
    """An event: about what, and in which words; "{name}" stands for the object that an action was about."""

    about: Document
    reason: str
    message: str
    component: str
    type: str = "Normal"


class CreateObject(msgspec.Struct, frozen=True):
    collection: str
    namespace: str
    document: Document
    note: EventNote | None = None


class UpdateObject(msgspec.Struct, frozen=True):
    """The whole object, based on the version that it names."""

    collection: str
    document: Document
    note: EventNote | None = None


class SetStatus(msgspec.Struct, frozen=True):
    """The status of this very object, whatever has become of the rest of it meanwhile."""

    collection: str
    key: str
    uid: str
    status: Document


class DeleteObject(msgspec.Struct, frozen=True):
    collection: str
    key: str
    uid: str
    grace: int | None = None
    policy: str = "Background"
    note: EventNote | None = None


class Finalize(msgspec.Struct, frozen=True):
    """Let go of a namespace that is empty."""

    name: str


class CheckAgain(msgspec.Struct, frozen=True):
    """Look at the same key once more, after so many seconds."""

    after: float


Action: TypeAlias = CreateObject | UpdateObject | SetStatus | DeleteObject | Finalize | EventNote | CheckAgain
"""What a controller may say while it looks at a key."""
