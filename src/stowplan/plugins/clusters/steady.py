"""Steady: a cluster that the placement has already scores higher than others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from stowplan.columns.arrays import Ints
from stowplan.columns.fleet.views import Clusters
from stowplan.objects.placements import Placement


class Steady:
    exact = True  # it measures nothing

    def score(self, placement: Placement, clusters: Clusters) -> Ints | int:  # noqa: ARG002
        return 100 * clusters.current if clusters.fleet.holds_any else 0

    def depends_on(self, placement: Placement) -> Iterable[Hashable]:  # noqa: ARG002
        return ()
