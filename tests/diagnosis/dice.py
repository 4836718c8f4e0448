"""Dice for drawn objects: the same seed, the same draws."""

from __future__ import annotations

from typing import Any

import numpy as np


class Dice:
    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def number(self, low: int, high: int) -> int:
        return int(self._generator.integers(low, high, endpoint=True))

    def often(self, times: int) -> bool:
        """True once in so many times."""
        return self.number(1, times) == 1

    def one_of(self, options: Any) -> Any:
        return options[self.number(0, len(options) - 1)]
