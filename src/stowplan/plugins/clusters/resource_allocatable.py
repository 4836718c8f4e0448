"""ResourceAllocatableCPU and ResourceAllocatableMemory: the more a cluster has beside the others, the better."""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.framework.placement.decision import ClusterScores, PlacementQuestion


class ResourceAllocatable:
    def __init__(self, resource: str, name: str) -> None:
        self.resource, self.name = resource, name

    def score(self, asked: PlacementQuestion, rows: Rows) -> ClusterScores:
        """-100 for the least, 100 for the most; a cluster that does not say what it has gets nothing."""
        amounts = asked.fleet.amounts(self.resource)[rows]
        there = ~np.isnan(amounts)
        values = np.zeros(len(rows), np.int64)
        if not there.any():
            return ClusterScores(values, there)
        known = amounts[there]
        least, most = known.min(), known.max()
        if most == least:
            values[there] = 100
        else:  # in this order, since doubles are cut, not rounded, afterwards
            values[there] = (((known - least) / (most - least) - 0.5) * 2.0 * 100.0).astype(np.int64)
        return ClusterScores(values, there)
