"""The choice of clusters for one placement: what is asked, how a step went, and what follows from it.

PlacementQuestion   what is asked: a placement, the fleet, the time
ClusterPluginStatus how a step went, in Open Cluster Management's words; a value, not an exception
PlacementChoice     the chosen clusters, with every step that led to them
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.columns.fleet.clusters import Fleet
from stowplan.columns.fleet.one_cluster import OneCluster
from stowplan.columns.fleet.views import WholeFleet
from stowplan.framework.decision import Reject
from stowplan.framework.plugin_faults import error_text, is_ctrl_c
from stowplan.objects.errors import PluginError
from stowplan.objects.placements import Placement

SUCCESS, WARNING, MISCONFIGURED, ERROR = "Success", "Warning", "Misconfigured", "Error"


@dataclass(frozen=True, slots=True)
class ClusterPluginStatus:
    """`path` and `remedy` are additions of ours: where the placement is wrong, and what would be right."""

    code: str = SUCCESS
    plugin: str = ""
    message: str = ""
    path: str = ""
    remedy: str = ""

    @property
    def failed(self) -> bool:
        return self.code in (MISCONFIGURED, ERROR)

    @property
    def text(self) -> str:
        """The message with path and remedy."""
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message}; {self.remedy}" if self.remedy else f"{where}{self.message}"


SUCCEEDED = ClusterPluginStatus()


@dataclass(frozen=True, slots=True)
class PlacementQuestion:
    """`own` are the rows of the placement's decisions so far, in order. `ocm`: decide as Open Cluster Management does.

    `patient`: no other placement is due. `hysteresis`: by how many points scores may vary, unless the placement says.
    """

    placement: Placement
    fleet: Fleet
    now: float
    own: Rows
    ocm: bool = False
    patient: bool = True
    hysteresis: int = 0

    def view(self, *, track: bool = False, held: Rows | None = None) -> WholeFleet:
        """Return the fleet as plugins see it; `track`: note what they read; `held`: as if the placement had these."""
        return WholeFleet(self.fleet, self.now, self.own, ocm=self.ocm, track=track, patient=self.patient, held=held)


@dataclass(frozen=True, slots=True)
class ClusterScores:
    """A score for each row. A row that is not `present` has no score, and counts as 0 (None: all are present)."""

    values: Ints
    present: Bools | None = None


@dataclass(frozen=True, slots=True)
class FilterStage:
    """What one filter rejected of the rows before it, and what it kept (None: all)."""

    name: str
    plugin: object
    before: Rows
    kept: Bools | None
    rejects: tuple[Reject, ...] = ()

    @property
    def rows(self) -> Rows:
        return self.before if self.kept is None else self.before[self.kept]

    def dropped(self) -> Iterator[tuple[int, int]]:
        """Iterate over the rejected clusters: position and row."""
        if self.kept is not None:
            for position in np.flatnonzero(~self.kept).tolist():
                yield position, int(self.before[position])

    def reason(self, placement: Placement, position: int, cluster: OneCluster) -> str:
        """Return why a cluster was rejected: what the plugin says of it when asked, or the reason of the rejection."""
        given = next((each.reason for each in self.rejects if each.rows[position]), "")
        why = getattr(self.plugin, "why", None)
        try:
            return given if why is None else str(why(placement, cluster) or given)
        except BaseException as error:
            if is_ctrl_c(error):
                raise
            return f"{given} (its why failed: {error_text(error)})"


@dataclass(frozen=True, slots=True)
class Prioritized:
    """What one prioritizer answered."""

    name: str
    weight: int
    scored: ClusterScores


_NO_ROWS: Rows = np.zeros(0, np.int64)


@dataclass(slots=True)
class PlacementChoice:
    """`rows` passed all filters and have `totals`. `picked` are the chosen rows, best first.

    `settled_totals` are theirs once the placement has them, which Steady rewards. With hysteresis another cluster must
    have more than `margin` on a chosen one; `compared` are the totals with that advantage, and `kept` are the rows that
    are chosen because of it.
    """

    question: PlacementQuestion
    sets: tuple[str, ...] = ()
    bindings: int = 0
    candidates: Rows = field(default_factory=lambda: _NO_ROWS)
    stages: list[FilterStage] = field(default_factory=list)
    prioritized: list[Prioritized] = field(default_factory=list)
    rows: Rows = field(default_factory=lambda: _NO_ROWS)
    totals: Ints = field(default_factory=lambda: _NO_ROWS)
    picked: Rows = field(default_factory=lambda: _NO_ROWS)
    picked_totals: Ints = field(default_factory=lambda: _NO_ROWS)
    settled_totals: Ints = field(default_factory=lambda: _NO_ROWS)
    by_held: bool = False  # if totals depend on which clusters the placement has
    margin: int = 0
    compared: Ints = field(default_factory=lambda: _NO_ROWS)
    kept: Rows = field(default_factory=lambda: _NO_ROWS)
    unscheduled: int = 0
    status: ClusterPluginStatus = SUCCEEDED
    error: PluginError | None = None  # of a plugin that failed
    unfinished: bool = False  # if a filter has not answered yet: ask again
    requeue_at: float | None = None
    changes_at: float = math.inf  # when time alone may change the choice
    reads: frozenset[Hashable] = frozenset()  # what plugins read of clusters that do not declare it

    @property
    def names(self) -> list[str]:
        return self.question.fleet.named(self.picked)

    def best(self) -> dict[str, int]:
        """Return the names of the chosen clusters, best first, and their totals."""
        return dict(zip(self.names, self.picked_totals.tolist(), strict=True))

    def settled(self) -> dict[str, int]:
        """Return the names of the chosen clusters, best first, and their totals once the placement has them."""
        return dict(zip(self.names, self.settled_totals.tolist(), strict=True))

    @property
    def kept_names(self) -> frozenset[str]:
        """The clusters that hysteresis keeps: without it others would be chosen."""
        return frozenset(self.question.fleet.named(self.kept))

    def ranking(self) -> Iterator[tuple[str, int]]:
        """Iterate over the clusters that were ranked, in the order of their names, and their totals."""
        if len(self.totals) == len(self.rows):
            names = self.question.fleet.names
            for place, row in enumerate(self.rows.tolist()):
                yield names[row], int(self.totals[place])

    def totals_by_name(self) -> dict[str, int]:
        """Return the totals of the clusters that passed all filters; none if the decision ended before ranking."""
        return dict(self.ranking())

    def dropped(self) -> Iterator[tuple[str, str, str]]:
        """Iterate over the clusters that a filter dropped: name, plugin, reason."""
        fleet = self.question.view()
        for stage in self.stages:
            for position, row in stage.dropped():
                cluster = OneCluster(fleet, row)
                yield cluster.name, stage.name, stage.reason(self.question.placement, position, cluster)

    def missing(self) -> dict[str, int]:
        """Return what each cluster that was not chosen lacks, by name.

        It lacks what the last chosen cluster has more, plus 1 if the order of names favours the chosen one. Hysteresis
        counts as points that the chosen one has.
        """
        if not len(self.picked) or len(self.picked) == len(self.rows):
            return {}
        rank, totals = self.question.fleet.rank(), dict(zip(self.rows.tolist(), self.compared.tolist(), strict=True))
        last = min(self.picked.tolist(), key=lambda row: (totals[row], -rank[row]))
        chosen = frozenset(self.picked.tolist())
        return {
            self.question.fleet.names[row]: totals[last] - total + int(rank[row] > rank[last])
            for row, total in totals.items()
            if row not in chosen
        }
