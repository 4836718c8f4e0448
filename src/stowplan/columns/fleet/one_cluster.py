"""One cluster of a view, for policies that are written for one cluster at a time, and for explanations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.fleet.clusters import CLAIMS, LABELS
from stowplan.objects.clusters import ClusterTaint, ManagedCluster

if TYPE_CHECKING:
    from stowplan.columns.fleet.views import WholeFleet

# What a view notes as read, beside labels, claims and ("score", resource, score); taints affect every placement.
RESOURCES, WHOLE, FLEET = "resources", "the whole object", "the whole fleet"
_NO_CLUSTER = ManagedCluster()


class ClusterScore:
    """One score of each cluster, as `clusters.score("cost", "hourly")`: `values` where it is `present`, else 0.

    A score is present if the cluster has it and it is valid.
    """

    def __init__(self, values: Ints, present: Bools, known: Bools) -> None:
        self.present = present
        self._values, self._known = values, known

    @property
    def values(self) -> Ints:
        return np.where(self.present, self._values, 0)

    @property
    def last(self) -> Ints:
        """The last values that were reported, valid or not; 0 for a cluster that never had one."""
        return np.where(self._known, self._values, 0)


class OneCluster:
    """A cluster for a policy that looks at one at a time: `cluster.labels`, `cluster.score("cost", "hourly")`.

    def fits(self, placement: Placement, cluster: OneCluster) -> str | None:
        return None if cluster.claims.get("region") == "eu" else "cluster(s) were outside of Europe"
    """

    def __init__(self, fleet: WholeFleet, row: int) -> None:
        self.fleet = fleet
        self.row = row  # for plugins that come with Stowplan

    @property
    def name(self) -> str:
        return self.fleet.table.names[self.row]

    @property
    def cluster(self) -> ManagedCluster:
        """The whole object. The placement is then decided again whenever anything of it changes."""
        self.fleet.note(WHOLE)
        return self._object

    @property
    def labels(self) -> Mapping[str, str]:
        self.fleet.note(LABELS)
        return self._object.labels

    @property
    def claims(self) -> Mapping[str, str]:
        self.fleet.note(CLAIMS)
        return self._object.claims

    @property
    def taints(self) -> tuple[ClusterTaint, ...]:
        return self._object.spec.taints

    @property
    def current(self) -> bool:
        """True if the placement has the cluster already."""
        return bool(self.fleet.held[self.row])

    @property
    def decisions(self) -> int:
        """How many decisions of other placements list the cluster."""
        return int(self.fleet.decided[self.row])

    def allocatable(self, resource: str) -> int:
        """Return an amount, of cpu in thousandths; 0 if the cluster does not report it."""
        return self._amount("allocatable", resource)

    def capacity(self, resource: str) -> int:
        return self._amount("capacity", resource)

    def score(self, resource: str, score: str) -> int | None:
        """Return a score of the cluster's AddOnPlacementScore of this name; None if it has none that is valid."""
        self.fleet.note(("score", resource, score))
        found = self.fleet.table.scores(resource).objects.get(self.row)
        return None if found is None or found.valid_until < self.fleet.now else found.values.get(score)

    def _amount(self, kind: str, resource: str) -> int:
        self.fleet.note(RESOURCES)
        return int(self.fleet.table.quantities(kind, resource)[self.row])

    @property
    def _object(self) -> ManagedCluster:
        return self.fleet.table.clusters[self.row] or _NO_CLUSTER
