"""Smoothing: a moving average with a half-life, and a deadband within which a score does not change.

Every written score requeues the Placements that use it, so noise costs decisions and moves workloads.
"""

from __future__ import annotations

import math


class Smoother:
    """An exponentially weighted moving average for each key, for measurements at any interval.

    After `half_life` seconds an old value has half of its weight. 0: no smoothing.
    """

    def __init__(self, half_life: float = 0.0) -> None:
        self._half_life = half_life
        self._known: dict[str, tuple[float, float]] = {}  # the average, and its time

    def smoothed(self, key: str, value: float, now: float) -> float:
        """The average with this value; `now` in seconds. The first value is returned as it is."""
        before, at = self._known.get(key, (value, now))
        average = value
        if self._half_life > 0 and math.isfinite(before) and math.isfinite(value):
            kept = 0.5 ** (max(now - at, 0.0) / self._half_life)
            mixed = before * kept + value * (1 - kept)
            average = min(max(mixed, min(before, value)), max(before, value))  # never outside of both, despite rounding
        self._known[key] = average, max(now, at)
        return average

    def forget(self, keep: set[str]) -> None:
        """Drop all keys but these."""
        for key in self._known.keys() - keep:
            del self._known[key]


def settled(published: int | None, score: int, band: int = 0) -> int:
    """The published score if the new one is within `band` of it, else the new one.

    -100 and 100 are always published, since they say that a bound is reached.
    """
    if published is None or abs(score) == 100:
        return score
    return published if abs(score - published) <= band else score
