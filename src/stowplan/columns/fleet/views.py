"""What cluster plugins see: read-only columns of some clusters, and the whole fleet. A view is valid for one decision.

`Clusters` has the clusters that a plugin is asked about, in the order of their names; all its columns have that order.
`clusters.fleet` has the whole fleet, so that the score of a few clusters can be relative to all. Row numbers are
internal: in a view, clusters have the positions 0 … len(clusters)-1.

A view notes what is read through it (`WholeFleet.reads`), if it is asked to. What a plugin did not read cannot change
its answer, so a placement is decided again when something changes that its plugins read, without any declaration.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.columns.fleet.clusters import CLAIMS, LABELS, Fleet
from stowplan.columns.fleet.one_cluster import FLEET, RESOURCES, ClusterScore, OneCluster
from stowplan.columns.nodes.column_types import Interned, Labels, NameColumn
from stowplan.objects.clusters import ClusterTaint
from stowplan.objects.selectors import Selector


class Clusters:
    """Some clusters as read-only columns: each column has one entry per cluster, all in the same order.

    too_small = clusters.allocatable["cpu"] < 64000      # cpu in thousandths, memory in bytes, 0 if not reported
    in_europe = clusters.label("region") == "eu"
    on_k3s = clusters.claim("product.open-cluster-management.io") == "K3S"
    price = clusters.score("cost", "hourly")             # AddOnPlacementScores: price.values where price.present
    moves = ~clusters.current                            # clusters that the placement does not have yet
    """

    def __init__(self, fleet: WholeFleet, rows: Rows) -> None:
        self.fleet = fleet
        self.rows = rows  # for plugins that come with Stowplan
        self._table = fleet.table
        self._gathered: dict[int, tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> int:
        """The number of all clusters of the fleet, in this view or not."""
        return len(self.fleet.clusters)

    # -- columns

    @property
    def name(self) -> NameColumn:
        return NameColumn(self)

    @cached_property
    def names(self) -> list[str]:
        return self._table.named(self.rows)

    def label(self, key: str) -> Labels:
        """Return the column of a label's values: `clusters.label("region") == "eu"`."""
        self.fleet.note(LABELS)
        return Labels(self, key, self._table.column(LABELS, key))

    def claim(self, key: str) -> Labels:
        """Return the column of a claim's values, which are compared as those of a label."""
        self.fleet.note(CLAIMS)
        return Labels(self, key, self._table.column(CLAIMS, key))

    @property
    def allocatable(self) -> ClusterResources:
        """The allocatable amounts of each cluster, by resource."""
        return ClusterResources(self, "allocatable")

    @property
    def capacity(self) -> ClusterResources:
        """The capacity of each cluster, by resource."""
        return ClusterResources(self, "capacity")

    def score(self, resource: str, score: str) -> ClusterScore:
        """Return one score of the AddOnPlacementScores of a name: `clusters.score("default", "cpuratio")`."""
        self.fleet.note(("score", resource, score))
        scores = self._table.scores(resource)
        column, valid = scores.column(score), self.pick(scores.until) >= self.fleet.now
        return ClusterScore(self.pick(column.values), self.pick(column.present) & valid, self.pick(column.known))

    @property
    def taints(self) -> Interned[tuple[ClusterTaint, ...]]:
        """The taints of each cluster: `clusters.taints.where(lambda taints: any(t.key == "slow" for t in taints))`."""
        return Interned(self, self._table.taint_code, self._table.taints)

    @property
    def current(self) -> Bools:
        """True for the clusters that the placement has already."""
        return self.pick(self.fleet.held)  # type: ignore[no-any-return]

    @property
    def decisions(self) -> Ints:
        """How many decisions of other placements list each cluster. A change of this starts no new decision."""
        return self.pick(self.fleet.decided)  # type: ignore[no-any-return]

    def matching(self, selector: Selector | None) -> Bools:
        """True for clusters whose labels meet every condition."""
        self.fleet.note(LABELS)
        return self.pick(self._table.matching(LABELS, selector))  # type: ignore[no-any-return]

    def matching_claims(self, selector: Selector | None) -> Bools:
        """True for clusters whose claims meet every condition."""
        self.fleet.note(CLAIMS)
        return self.pick(self._table.matching(CLAIMS, selector))  # type: ignore[no-any-return]

    # -- rows

    def where(self, these: Bools | Ints) -> Clusters:
        """Return a view of fewer clusters: those of a mask, or at these positions."""
        return Clusters(self.fleet, self.rows[these])

    def position(self, name: str) -> int | None:
        """Return the position of a cluster in this view; None if it is not here."""
        found = np.flatnonzero(self.rows == self._table.row_of.get(name, -1))
        return int(found[0]) if len(found) else None

    def __iter__(self) -> Iterator[OneCluster]:
        return (OneCluster(self.fleet, row) for row in self.rows.tolist())

    def __getitem__(self, position: int) -> OneCluster:
        return OneCluster(self.fleet, int(self.rows[position]))

    def pick(self, column: Any) -> Any:
        """Return a column of the table for these clusters, read-only."""
        held = self._gathered.get(id(column))
        if held is not None:
            return held[1]
        picked = column[self.rows]
        picked.flags.writeable = False
        self._gathered[id(column)] = (column, picked)  # with the column itself, so that its id is not reused
        return picked


class WholeFleet:
    """The whole fleet, as `clusters.fleet`: all clusters, and the time.

    clusters.fleet.clusters.allocatable["cpu"].max()     # of all clusters, not only those that a plugin is asked about
    clusters.fleet.now                                   # seconds since the epoch, as taints and scores have them
    """

    def __init__(
        self,
        table: Fleet,
        now: float,
        own: Rows,
        *,
        ocm: bool = False,
        track: bool = False,
        patient: bool = True,
        held: Rows | None = None,
    ) -> None:
        """`own` are the rows of the placement's decisions so far; `track`: note what is read.

        `held`: what if the placement had these rows; without it, it has its own.
        """
        self.table, self._own = table, own
        self._rows_held = own if held is None else held
        self.asked_held = False  # True if anybody asked which clusters the placement has
        self.now = now
        self.ocm = ocm  # decide as Open Cluster Management does
        self.patient = patient  # no other placement is due
        self.reads: set[Hashable] | None = set() if track else None

    def note(self, read: Hashable) -> None:
        """Note that a part of clusters was read."""
        if self.reads is not None:
            self.reads.add(read)

    @property
    def clusters(self) -> Clusters:
        """All clusters that can be chosen by any placement, in the order of their names."""
        self.note(FLEET)
        return self._clusters

    @cached_property
    def _clusters(self) -> Clusters:
        rows = np.flatnonzero(self.table.available)
        return Clusters(self, rows[np.argsort(self.table.rank()[rows])])

    # -- over all rows of the table, for views and for plugins that come with Stowplan

    @property
    def held(self) -> Bools:
        """True for the clusters that the placement has."""
        self.asked_held = True
        return self._held

    @cached_property
    def _held(self) -> Bools:
        held = np.zeros(self.table.capacity, np.bool_)
        held[self._rows_held] = True
        return held

    @cached_property
    def decided(self) -> Ints:
        """How many decisions of other placements list each cluster, also those of clusters that are gone."""
        if not len(self._own):
            return self.table.decided
        others = self.table.decided.copy()
        np.subtract.at(others, self._own, 1)
        return others

    @property
    def holds_any(self) -> bool:
        """True if the placement has any cluster."""
        self.asked_held = True
        return len(self._rows_held) > 0


class ClusterResources:
    """A column per resource: `clusters.allocatable["cpu"]`. It is 0 for clusters that do not report the resource."""

    def __init__(self, clusters: Clusters, kind: str) -> None:
        self._clusters, self._kind = clusters, kind

    def __getitem__(self, resource: str) -> Ints:
        fleet = self._clusters.fleet
        fleet.note(RESOURCES)
        return self._clusters.pick(fleet.table.quantities(self._kind, resource))  # type: ignore[no-any-return]
