"""What may happen to the objects we know: one is there (new, or different from before), or it is gone."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stowplan.objects.meta import Object


class Put(msgspec.Struct, frozen=True):
    """An object was added, or is now like this."""

    object: Object


class Gone(msgspec.Struct, frozen=True):
    """An object was deleted; this is the last that was seen of it."""

    object: Object


Change: TypeAlias = Put | Gone
