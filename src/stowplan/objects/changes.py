"""What comes in: an object is there (new, or other than before) or gone; an action was carried out or not."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from stowplan.objects.meta import Object


class Put(msgspec.Struct, frozen=True):
    """An object was added, or is now like this."""

    object: Object


class Gone(msgspec.Struct, frozen=True):
    """An object was deleted; this is the last that was seen of it."""

    object: Object


class Result(msgspec.Struct, frozen=True):
    """How an action went: an HTTP status (0: no answer at all), what the server said, what an extender answered."""

    id: int
    status: int = 200
    message: str = ""
    body: Any = None

    @property
    def fine(self) -> bool:
        return 200 <= self.status < 300


Change: TypeAlias = Put | Gone
