"""Balance: a cluster scores higher the fewer decisions of other placements list it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.columns.fleet.views import Clusters
from stowplan.objects.placements import Placement


class Balance:
    exact = True  # it counts decisions, and measures nothing

    def score(self, placement: Placement, clusters: Clusters) -> Ints | int:  # noqa: ARG002
        """Return 100 for a cluster that no other placement has, -100 for as many as any cluster of the fleet has."""
        most = int(clusters.fleet.decided.max(initial=0))
        if most == 0:
            return 100
        return 2 * (100 * (0.5 - clusters.decisions / most)).astype(np.int64)

    def depends_on(self, placement: Placement) -> Iterable[Hashable]:  # noqa: ARG002
        return ()
