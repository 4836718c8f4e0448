"""Calm scores: an average that forgets by half-lives, and a band within which a score stays what it was.

Every score that is written wakes the Placements that use it, so noise costs decisions and moves workloads about.
"""

from __future__ import annotations

import math


class Smoother:
    """An exponentially weighted moving average for each key; measurements may come at any pace.

    After `half_life` seconds half of an old value is forgotten. 0: no smoothing.
    """

    def __init__(self, half_life: float = 0.0) -> None:
        self._half_life = half_life
        self._known: dict[str, tuple[float, float]] = {}  # the average, and when it was taken

    def smoothed(self, key: str, value: float, now: float) -> float:
        """The average with this value in it; `now` in seconds. The first value is taken as it is."""
        before, at = self._known.get(key, (value, now))
        average = value
        if self._half_life > 0 and math.isfinite(before) and math.isfinite(value):
            kept = 0.5 ** (max(now - at, 0.0) / self._half_life)
            mixed = before * kept + value * (1 - kept)
            average = min(max(mixed, min(before, value)), max(before, value))  # never outside, however it is rounded
        self._known[key] = average, max(now, at)
        return average

    def forget(self, keep: set[str]) -> None:
        """All keys but these."""
        for key in self._known.keys() - keep:
            del self._known[key]


def settled(published: int | None, score: int, band: int = 0) -> int:
    """The published score as long as the new one is within `band` of it, else the new one.

    The ends are always reached: -100 and 100 say that a bound is met.
    """
    if published is None or abs(score) == 100:
        return score
    return published if abs(score - published) <= band else score
