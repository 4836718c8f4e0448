"""What the engine wants done in the world; the caller does it, and tells how it went as a change."""

from __future__ import annotations

import msgspec


class Bind(msgspec.Struct, frozen=True):
    """Bind this pod, and no later one of the same name, to a node."""

    namespace: str
    name: str
    uid: str
    node_name: str
