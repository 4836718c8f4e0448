"""From what was measured to a score of -100..100: by fixed bounds, or by the fleet's own minimum and maximum.

A producer that sees one cluster only needs bounds that all agree on; one that sees the fleet may compare. A
normaliser never turns an order round: what is better scores at least as much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import msgspec

from stowplan.objects.errors import ConfigError

WORST, BEST = -100, 100


class Normaliser(Protocol):
    def scores(self, values: Mapping[str, float]) -> dict[str, int]:
        """The scores of clusters, by what was measured of them; all at once, since some normalisers compare."""
        ...


class Bounds(msgspec.Struct, frozen=True):
    """`worst` and what is worse scores -100, `best` and what is better 100, all between in proportion.

    Bounds(1e9, 100e9) is for free memory, Bounds(500, 5) for milliseconds, of which fewer are better. Fractions are
    cut off towards zero, as OCM's own library does.
    """

    worst: float
    best: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.worst) and math.isfinite(self.best)):
            raise ConfigError(f"found the bounds {self.worst:g} and {self.best:g}, expected two finite numbers")

    def score(self, value: float) -> int:
        if math.isnan(value):
            raise ValueError("what is not a number has no score")
        less_is_better = self.best < self.worst
        low, high, at = (-self.worst, -self.best, -value) if less_is_better else (self.worst, self.best, value)
        if at <= low:
            return WORST
        if at >= high:
            return BEST
        span, part = high - low, at - low
        if math.isinf(span):  # the distance of two very large numbers; that of their halves is none
            span, part = high / 2 - low / 2, at / 2 - low / 2
        return max(WORST, min(math.trunc(200 * (part / span) - 100), BEST))

    def scores(self, values: Mapping[str, float]) -> dict[str, int]:
        return {cluster: self.score(value) for cluster, value in values.items()}


class OverFleet(msgspec.Struct, frozen=True):
    """The cluster with most scores 100, the one with least -100; where all have the same, all score 100, as with the
    prioritizers that come with Placements."""

    less_is_better: bool = False

    def scores(self, values: Mapping[str, float]) -> dict[str, int]:
        known = {cluster: value for cluster, value in values.items() if math.isfinite(value)}
        if not known:
            return {}
        least, most = min(known.values()), max(known.values())
        if least == most:
            return dict.fromkeys(known, BEST)
        return Bounds(most, least).scores(known) if self.less_is_better else Bounds(least, most).scores(known)


class AsIs(msgspec.Struct, frozen=True):
    """Scores already. One that is outside of -100..100 is an error, since nobody knows what was meant by it."""

    def scores(self, values: Mapping[str, float]) -> dict[str, int]:
        return {cluster: _checked(cluster, value) for cluster, value in values.items()}


def _checked(cluster: str, value: float) -> int:
    if not WORST <= value <= BEST:
        remedy = "or bounds to bring it there"
        raise ConfigError(f"found {value:g}, expected a score of {WORST}..{BEST}", path=cluster, remedy=remedy)
    return math.trunc(value)
