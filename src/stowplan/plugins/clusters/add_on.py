"""AddOn: a score that another controller gives to each cluster, in AddOnPlacementScores.

Open Cluster Management counts a score that is missing or expired as 0, which is the middle of the range: an unknown
cluster beats one that reports -50. So a coordinate may say what counts instead: `zero`, the same; `min`, the least that
the score could add to a total; `exclude`, the cluster is not chosen; `lastKnown`, the cluster's last score.
"""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.framework.placement.choice import MISCONFIGURED, ClusterPluginStatus, ClusterScores, PlacementQuestion
from stowplan.objects.placements import ScoreCoordinate

WHEN_MISSING = ("zero", "min", "exclude", "lastKnown")


def add_on(coordinate: ScoreCoordinate, weight: int) -> AddOn | ClusterPluginStatus:
    """Return the prioritizer of a coordinate that names an add-on score."""
    assert coordinate.add_on is not None
    given = coordinate.when_missing or "zero"
    if given not in WHEN_MISSING:
        remedy = f"use one of {', '.join(WHEN_MISSING)}"
        return ClusterPluginStatus(MISCONFIGURED, "AddOn", f"whenMissing is {given!r}", remedy=remedy)
    return AddOn(coordinate.add_on.resource_name, coordinate.add_on.score_name, given, weight)


class AddOn:
    def __init__(self, resource: str, score: str, when_missing: str = "zero", weight: int = 1) -> None:
        self.resource, self.score_name, self.when_missing = resource, score, when_missing
        self.name = f"AddOn/{resource}/{score}"
        self._worst = -100 if weight > 0 else 100

    def score(self, question: PlacementQuestion, rows: Rows) -> ClusterScores:
        scores = question.fleet.scores(self.resource)
        column = scores.column(self.score_name)
        valid = self._valid(question)[rows]
        values = np.where(valid, column.values[rows], self._substitute(question, rows))
        expired = rows[scores.expired(question.now)[rows]]
        return ClusterScores(values, warning=self._warning(question, expired) if len(expired) else "")

    def filter(self, question: PlacementQuestion, rows: Rows) -> Bools | None:
        """Return which clusters have a valid score, if the others are excluded."""
        return self._valid(question)[rows] if self.when_missing == "exclude" else None

    def why(self, question: PlacementQuestion, row: int) -> str:
        expired = bool(question.fleet.scores(self.resource).expired(question.now)[row])
        return f"its score {self.resource}/{self.score_name} is {'no longer valid' if expired else 'missing'}"

    def _valid(self, question: PlacementQuestion) -> Bools:
        scores = question.fleet.scores(self.resource)
        return scores.valid(question.now) & scores.column(self.score_name).present

    def _substitute(self, question: PlacementQuestion, rows: Rows) -> Ints | int:
        """Return what counts for a score that is missing or expired."""
        if question.ocm or self.when_missing in ("zero", "exclude"):
            return 0
        if self.when_missing == "min":
            return self._worst
        column = question.fleet.scores(self.resource).column(self.score_name)
        return np.where(column.known, column.values, 0)[rows]

    def _warning(self, question: PlacementQuestion, expired: Rows) -> str:
        listed = sorted(f"{name}/{self.resource}" for name in question.fleet.named(expired))
        return f"AddOnPlacementScores {' '.join(listed)} expired"
