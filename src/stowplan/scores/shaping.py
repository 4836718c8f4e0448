"""From measured values to one score of each cluster: smoothed, normalised, and unchanged within the deadband."""

from __future__ import annotations

import math
from collections.abc import Mapping

from stowplan.scores.normalization import Normaliser
from stowplan.scores.smoothing import Smoother, settled


class Shaping:
    """`half_life` in seconds (0: no smoothing), `band` in points of the score (0: no deadband)."""

    def __init__(self, normaliser: Normaliser, *, half_life: float = 0.0, band: int = 0) -> None:
        self._normaliser, self._band = normaliser, band
        self._smoother = Smoother(half_life)

    def scores(self, values: Mapping[str, float], published: Mapping[str, int], now: float) -> dict[str, int]:
        """The scores by cluster. NaN is left out; `published` are the scores on the hub."""
        known = {cluster: value for cluster, value in values.items() if not math.isnan(value)}
        smooth = {cluster: self._smoother.smoothed(cluster, value, now) for cluster, value in known.items()}
        self._smoother.forget(set(known))
        found = self._normaliser.scores(smooth)
        return {cluster: settled(published.get(cluster), score, self._band) for cluster, score in found.items()}
