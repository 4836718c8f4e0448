"""AddOn: a score that another controller gives to each cluster, in AddOnPlacementScores.

Open Cluster Management counts a score that is missing or expired as 0, which is the middle of the range: an unknown
cluster beats one that reports -50. So a coordinate may say what counts instead: `zero`, the same; `min`, the least that
the score could add to a total; `exclude`, the cluster is not chosen; `lastKnown`, the cluster's last score.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.fleet.one_cluster import ClusterScore, OneCluster
from stowplan.columns.fleet.views import Clusters
from stowplan.framework.causes import Cause
from stowplan.framework.decision import Reject
from stowplan.framework.placement.interfaces import Misconfigured
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.placements import Placement, ScoreCoordinate

WHEN_MISSING = ("zero", "min", "exclude", "lastKnown")


def add_on(coordinate: ScoreCoordinate, weight: int) -> EnabledPlugin[AddOn] | Misconfigured:
    """Return the prioritizer of a coordinate that names an add-on score."""
    assert coordinate.add_on is not None
    given = coordinate.when_missing or "zero"
    if given not in WHEN_MISSING:
        return Misconfigured(f"whenMissing is {given!r}", remedy=f"use one of {', '.join(WHEN_MISSING)}")
    resource, score = coordinate.add_on.resource_name, coordinate.add_on.score_name
    return EnabledPlugin(f"AddOn/{resource}/{score}", AddOn(resource, score, given, weight))


class AddOn:
    def __init__(self, resource: str, score: str, when_missing: str = "zero", weight: int = 1) -> None:
        self.resource, self.score_name, self.when_missing = resource, score, when_missing
        self._worst = -100 if weight > 0 else 100

    def score(self, placement: Placement, clusters: Clusters) -> Ints:  # noqa: ARG002
        found = clusters.score(self.resource, self.score_name)
        if clusters.fleet.ocm or self.when_missing in ("zero", "exclude"):
            return found.values
        return np.where(found.present, found.last, self._substitute(found))

    def exclude(self, placement: Placement, clusters: Clusters) -> Iterator[Reject]:  # noqa: ARG002
        """Reject clusters without a valid score, if they are excluded."""
        if self.when_missing == "exclude":
            name = f"{self.resource}/{self.score_name}"
            yield Reject(~clusters.score(self.resource, self.score_name).present, f"its score {name} is missing")

    def why(self, placement: Placement, cluster: OneCluster) -> str:  # noqa: ARG002
        expired = bool(cluster.fleet.table.scores(self.resource).expired(cluster.fleet.now)[cluster.row])
        return f"its score {self.resource}/{self.score_name} is {'no longer valid' if expired else 'missing'}"

    def causes_of(self, placement: Placement, cluster: OneCluster) -> Iterator[Cause]:
        details = {"resource": self.resource, "score": self.score_name}
        yield Cause("score-missing", self.why(placement, cluster), details)

    def warning(self, clusters: Clusters) -> str:
        """Return which scores have expired; "" if none has."""
        expired: Bools = clusters.pick(clusters.fleet.table.scores(self.resource).until) < clusters.fleet.now
        if not expired.any():
            return ""
        listed = sorted(f"{name}/{self.resource}" for name in clusters.where(expired).names)
        return f"AddOnPlacementScores {' '.join(listed)} expired"

    def _substitute(self, found: ClusterScore) -> Ints | int:
        """Return what counts for a score that is missing or expired."""
        return self._worst if self.when_missing == "min" else found.last
