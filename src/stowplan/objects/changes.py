"""The input of the engine: changes of objects, and results of actions."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from stowplan.objects.meta import Object


class Put(msgspec.Struct, frozen=True):
    """An object was added or changed."""

    object: Object


class Gone(msgspec.Struct, frozen=True):
    """An object was deleted; this is its last known version."""

    object: Object


class Result(msgspec.Struct, frozen=True):
    """The outcome of an action: an HTTP status (0: no response), the server's message, an extender's reply."""

    id: int
    status: int = 200
    message: str = ""
    body: Any = None

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300


Change: TypeAlias = Put | Gone
