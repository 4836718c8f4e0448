"""A large random fleet, in which a cluster policy is measured, and decisions of the default cluster plugins there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from stowplan.apps.place import configuration
from stowplan.apps.plugin_kit.measuring import Batch
from stowplan.apps.plugin_kit.named_plugin import NamedPlugin
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.columns.fleet.views import Clusters
from stowplan.framework.checks.words import words_of
from stowplan.framework.placement.choice import PlacementQuestion
from stowplan.framework.placement.evaluation import choose
from stowplan.framework.placement.random_fleets import NOW, draw, in_one_set
from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement

DRAWN, ALWAYS, DECISIONS = 80, 12, 10  # drawn placements; so many of them are always asked about


class MeasuredFleet:
    """A fleet of so many clusters. `placements`: to measure with, instead of drawn ones."""

    def __init__(
        self, named: NamedPlugin, clusters: int, placements: Sequence[Placement], objects: Sequence[Object]
    ) -> None:
        words = words_of(named.plugin, named.twin)
        drawn = draw(0, words, clusters=clusters).with_objects(objects)
        self._fleet = drawn.table()
        self._own = self._fleet.rows(drawn.own)
        more = [draw(seed, kind, clusters=1).placement for seed in range(DRAWN // 2) for kind in (words, None)]
        self.given = bool(placements)
        self.asked: Sequence[Any] = placements or (drawn.placement, *more[:ALWAYS])
        self.more: Sequence[Any] = () if placements else more[ALWAYS:]
        self.yardstick = Yardstick(self.view("", drawn.placement))

    def view(self, method: str, placement: Placement) -> Clusters:  # noqa: ARG002  all methods see the same
        """Return the clusters in a new decision."""
        return self._question(placement).view(track=True).clusters

    def _question(self, placement: Placement) -> PlacementQuestion:
        return PlacementQuestion(placement, self._fleet, NOW, self._own)

    def decisions(self) -> Batch:
        """Return a batch of decisions of plain placements, which want one cluster of all."""
        policy, sets, numbers = configuration.default().policy, in_one_set(self._fleet, "default"), itertools.count()

        def batch() -> tuple[float, int]:
            placements = [_plain_placement(f"p{next(numbers)}") for _ in range(DECISIONS)]
            start = perf_counter()
            for placement in placements:
                choose(self._question(placement), sets, policy)
            return perf_counter() - start, DECISIONS

        return batch


def _plain_placement(name: str) -> Placement:
    metadata = {"name": name, "namespace": "default", "uid": name}
    return kinds.convert(Placement, {"metadata": metadata, "spec": {"numberOfClusters": 1}})
