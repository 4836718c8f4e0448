"""Balance: a cluster scores higher the fewer decisions of other placements list it."""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Ints, Rows
from stowplan.framework.placement.choice import ClusterScores, PlacementQuestion


class Balance:
    name = "Balance"

    def score(self, question: PlacementQuestion, rows: Rows) -> ClusterScores:
        """Return 100 for a cluster that no other placement has, -100 for as many as any cluster of the fleet has."""
        others = self._others(question)
        most = int(others.max(initial=0))
        if most == 0:
            return ClusterScores(np.full(len(rows), 100, np.int64))
        return ClusterScores(2 * (100 * (0.5 - others[rows] / most)).astype(np.int64))

    def _others(self, question: PlacementQuestion) -> Ints:
        """Return how many decisions of other placements list each cluster."""
        if not len(question.own):
            return question.fleet.decided
        others = question.fleet.decided.copy()
        np.subtract.at(others, question.own, 1)
        return others
