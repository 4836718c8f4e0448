"""ResourceAllocatableCPU and ResourceAllocatableMemory: a cluster scores higher the more it has of a resource."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.columns.fleet.one_cluster import RESOURCES
from stowplan.columns.fleet.views import Clusters
from stowplan.objects.placements import Placement


class ResourceAllocatable:
    resource = ""

    def score(self, placement: Placement, clusters: Clusters) -> Ints:  # noqa: ARG002
        """Return -100 for the least, 100 for the most, and no score for a cluster that does not report the resource."""
        amounts = clusters.pick(clusters.fleet.table.amounts(self.resource))
        missing = np.isnan(amounts)
        if not missing.any():
            return _scaled(amounts)
        values = np.zeros(len(clusters), np.int64)
        if not missing.all():
            values[~missing] = _scaled(amounts[~missing])
        return np.ma.masked_array(values, missing)

    def depends_on(self, placement: Placement) -> Iterable[Hashable]:  # noqa: ARG002
        return (RESOURCES,)


class ResourceAllocatableCPU(ResourceAllocatable):
    resource = "cpu"


class ResourceAllocatableMemory(ResourceAllocatable):
    resource = "memory"


def _scaled(amounts: Ints) -> Ints:
    least, most = amounts.min(), amounts.max()
    if most == least:
        return np.full(len(amounts), 100, np.int64)
    # in this order of operations, because the result is truncated
    scaled: Ints = (((amounts - least) / (most - least) - 0.5) * 2.0 * 100.0).astype(np.int64)
    return scaled
