"""ResourceAllocatableCPU and ResourceAllocatableMemory: a cluster scores higher the more it has of a resource."""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.framework.placement.choice import ClusterScores, PlacementQuestion


class ResourceAllocatable:
    def __init__(self, resource: str, name: str) -> None:
        self.resource, self.name = resource, name

    def score(self, question: PlacementQuestion, rows: Rows) -> ClusterScores:
        """Return -100 for the least, 100 for the most, and no score for a cluster that does not report the resource."""
        amounts = question.fleet.amounts(self.resource)[rows]
        present = ~np.isnan(amounts)
        values = np.zeros(len(rows), np.int64)
        if not present.any():
            return ClusterScores(values, present)
        known = amounts[present]
        least, most = known.min(), known.max()
        if most == least:
            values[present] = 100
        else:  # in this order of operations, because the result is truncated
            values[present] = (((known - least) / (most - least) - 0.5) * 2.0 * 100.0).astype(np.int64)
        return ClusterScores(values, present)
