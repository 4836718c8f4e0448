"""What admission may know besides the object itself: the rest of the cluster, the time, and chance."""

from __future__ import annotations

import random

import msgspec

from stowplan.embedded.asked import Asked
from stowplan.embedded.store import Store


class Surroundings(msgspec.Struct, frozen=True):
    store: Store
    draw: random.Random
    asked: Asked

    @property
    def now(self) -> float:
        return self.asked.now
