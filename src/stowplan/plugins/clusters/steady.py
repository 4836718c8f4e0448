"""Steady: a cluster that the placement has already is better than one that it has not."""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.framework.placement.decision import ClusterScores, PlacementQuestion


class Steady:
    name = "Steady"

    def score(self, asked: PlacementQuestion, rows: Rows) -> ClusterScores:
        chosen = np.zeros(asked.fleet.capacity, np.int64)
        chosen[asked.own] = 100
        return ClusterScores(chosen[rows])
