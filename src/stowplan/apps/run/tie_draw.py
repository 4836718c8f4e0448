"""Which of several nodes a pod gets that are equally good."""

from __future__ import annotations

import random


class TieDraw:
    """Draws one of several nodes that are equally good. (numpy's generators take three megabytes to import.)"""

    def __init__(self, seed: int | None = None) -> None:
        self._generator = random.Random(seed)

    def integers(self, below: int, /) -> int:
        return self._generator.randrange(below)
