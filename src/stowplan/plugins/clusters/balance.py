"""Balance: the fewer decisions of other placements name a cluster, the better it is."""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Ints, Rows
from stowplan.framework.placement.decision import ClusterScores, PlacementQuestion


class Balance:
    name = "Balance"

    def score(self, asked: PlacementQuestion, rows: Rows) -> ClusterScores:
        """100 for a cluster that nobody else chose, -100 for the one most chosen, candidate or not."""
        others = self._others(asked)
        most = int(others.max(initial=0))
        if most == 0:
            return ClusterScores(np.full(len(rows), 100, np.int64))
        return ClusterScores(2 * (100 * (0.5 - others[rows] / most)).astype(np.int64))

    def _others(self, asked: PlacementQuestion) -> Ints:
        """How often each cluster was chosen, but for this placement's own decisions."""
        if not len(asked.own):
            return asked.fleet.decided
        others = asked.fleet.decided.copy()
        np.subtract.at(others, asked.own, 1)
        return others
