"""AddOn: a score that somebody else gives to each cluster, in AddOnPlacementScores.

Open Cluster Management takes a score that is missing, or no longer valid, for 0, which is the middle of the range: a
cluster that nobody knows beats one that honestly says -50. So a coordinate may say what is to be done: `zero`, the
same; `min`, the least that it could add to a total; `exclude`, the cluster is not chosen; `lastKnown`, its last score.
"""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.framework.placement.decision import MISCONFIGURED, ClusterScores, PlacementQuestion, PluginStatus
from stowplan.objects.placements import ScoreCoordinate

WHEN_MISSING = ("zero", "min", "exclude", "lastKnown")


def add_on(coordinate: ScoreCoordinate, weight: int) -> AddOn | PluginStatus:
    """The prioritizer of a coordinate."""
    assert coordinate.add_on is not None, "only those that name a score come here"
    given = coordinate.when_missing or "zero"
    if given not in WHEN_MISSING:
        remedy = f"one of {', '.join(WHEN_MISSING)} is right"
        return PluginStatus(MISCONFIGURED, "AddOn", f"whenMissing is {given!r}", remedy=remedy)
    return AddOn(coordinate.add_on.resource_name, coordinate.add_on.score_name, given, weight)


class AddOn:
    def __init__(self, resource: str, score: str, when_missing: str = "zero", weight: int = 1) -> None:
        self.resource, self.score_name, self.when_missing = resource, score, when_missing
        self.name = f"AddOn/{resource}/{score}"
        self._worst = -100 if weight > 0 else 100

    def score(self, asked: PlacementQuestion, rows: Rows) -> ClusterScores:
        scores = asked.fleet.scores(self.resource)
        column = scores.column(self.score_name)
        valid = self._valid(asked)[rows]
        values = np.where(valid, column.values[rows], self._substitute(asked, rows))
        late = rows[scores.expired(asked.now)[rows]]
        return ClusterScores(values, warning=self._warning(asked, late) if len(late) else "")

    def filter(self, asked: PlacementQuestion, rows: Rows) -> Bools | None:
        return self._valid(asked)[rows] if self.when_missing == "exclude" else None

    def why(self, asked: PlacementQuestion, row: int) -> str:
        expired = bool(asked.fleet.scores(self.resource).expired(asked.now)[row])
        return f"its score {self.resource}/{self.score_name} is {'no longer valid' if expired else 'missing'}"

    def _valid(self, asked: PlacementQuestion) -> Bools:
        scores = asked.fleet.scores(self.resource)
        return scores.valid(asked.now) & scores.column(self.score_name).there

    def _substitute(self, asked: PlacementQuestion, rows: Rows) -> Ints | int:
        """What counts for a score that is not there."""
        if asked.ocm or self.when_missing in ("zero", "exclude"):
            return 0
        if self.when_missing == "min":
            return self._worst
        column = asked.fleet.scores(self.resource).column(self.score_name)
        return np.where(column.known, column.values, 0)[rows]

    def _warning(self, asked: PlacementQuestion, late: Rows) -> str:
        listed = sorted(f"{name}/{self.resource}" for name in asked.fleet.named(late))
        return f"AddOnPlacementScores {' '.join(listed)} expired"
