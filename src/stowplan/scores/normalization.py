"""Turns measured values into scores of -100..100: by fixed bounds, or by the minimum and maximum of the fleet.

A producer that sees one cluster needs bounds that all producers share; a producer that sees the fleet can compare. A
normaliser keeps the order: a better value never gets a lower score.
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
        """The scores of clusters by their values. All clusters at once, since a normaliser may compare them."""
        ...


class Bounds(msgspec.Struct, frozen=True):
    """`worst` and worse values score -100, `best` and better values 100, values between them in proportion.

    Bounds(1e9, 100e9) suits free memory, Bounds(500, 5) suits milliseconds, where less is better. Fractions are
    truncated towards zero, as in the library of OCM.
    """

    worst: float
    best: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.worst) and math.isfinite(self.best)):
            raise ConfigError(f"found the bounds {self.worst:g} and {self.best:g}, expected two finite numbers")

    def score(self, value: float) -> int:
        if math.isnan(value):
            raise ValueError("NaN has no score")
        less_is_better = self.best < self.worst
        low, high, at = (-self.worst, -self.best, -value) if less_is_better else (self.worst, self.best, value)
        if at <= low:
            return WORST
        if at >= high:
            return BEST
        span, part = high - low, at - low
        if math.isinf(span):  # the difference of two very large numbers overflows, that of their halves does not
            span, part = high / 2 - low / 2, at / 2 - low / 2
        return max(WORST, min(math.trunc(200 * (part / span) - 100), BEST))

    def scores(self, values: Mapping[str, float]) -> dict[str, int]:
        return {cluster: self.score(value) for cluster, value in values.items()}


class OverFleet(msgspec.Struct, frozen=True):
    """The cluster with the highest value scores 100, the one with the lowest -100.

    If all values are equal, all clusters score 100, as with the built-in prioritizers of Placements.
    """

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
    """The values are scores already. A value outside of -100..100 is an error."""

    def scores(self, values: Mapping[str, float]) -> dict[str, int]:
        return {cluster: _checked(cluster, value) for cluster, value in values.items()}


def _checked(cluster: str, value: float) -> int:
    if not WORST <= value <= BEST:
        remedy = "or use bounds"
        raise ConfigError(f"found {value:g}, expected a score of {WORST}..{BEST}", path=cluster, remedy=remedy)
    return math.trunc(value)
