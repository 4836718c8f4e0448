"""Steady: a cluster that the placement has already scores higher than others."""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.framework.placement.choice import ClusterScores, PlacementQuestion


class Steady:
    name = "Steady"

    def score(self, question: PlacementQuestion, rows: Rows) -> ClusterScores:
        chosen = np.zeros(question.fleet.capacity, np.int64)
        chosen[question.own] = 100
        return ClusterScores(chosen[rows])
