"""The choice of clusters for one placement: what plugins are asked, what they answer, and what follows from it.

PlacementQuestion   what a plugin is asked: a placement, the fleet, the time
ClusterFilter, Prioritizer, Selector    what a plugin is
ClusterPolicy       the plugins that decide
ClusterPluginStatus how a step went, in Open Cluster Management's words; a value, not an exception
PlacementChoice     the chosen clusters, with every step that led to them
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.columns.fleet.clusters import Fleet
from stowplan.objects.placements import Placement, ScoreCoordinate

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
    """`own` are the rows of the placement's decisions so far. `ocm`: decide as Open Cluster Management does."""

    placement: Placement
    fleet: Fleet
    now: float
    own: Rows
    ocm: bool = False


@dataclass(frozen=True, slots=True)
class ClusterScores:
    """A score for each row. A row that is not `present` has no score, and counts as 0 (None: all are present)."""

    values: Ints
    present: Bools | None = None
    warning: str = ""


@runtime_checkable
class ClusterFilter(Protocol):
    name: str

    def filter(self, question: PlacementQuestion, rows: Rows) -> Bools | ClusterPluginStatus:
        """Return which of these clusters may be chosen; or what is wrong with the placement."""

    def why(self, question: PlacementQuestion, row: int) -> str:
        """Return why this cluster may not be chosen."""


@runtime_checkable
class Prioritizer(Protocol):
    name: str

    def score(self, question: PlacementQuestion, rows: Rows) -> ClusterScores:
        """Return -100 to 100 for each of these clusters."""


@runtime_checkable
class Selector(Protocol):
    def select(self, question: PlacementQuestion, rows: Rows, totals: Ints, number: int, weight: int) -> Rows:
        """Return the indexes into `rows` of the chosen clusters, best first."""


class AddOns(Protocol):
    def __call__(self, coordinate: ScoreCoordinate, weight: int) -> Prioritizer | ClusterPluginStatus:
        """Return the prioritizer of an add-on score."""


@dataclass(frozen=True)
class ClusterPolicy:
    """The plugins that decide: filters in order, and prioritizers by the name that placements use.

    A filter may have more methods. `lapses(question, rows)` returns when the first toleration of these clusters ends,
    `changes_at(question)` when the answer for any cluster may change, and `reads(placement)` the score objects read.
    """

    filters: tuple[ClusterFilter, ...]
    prioritizers: dict[str, Prioritizer]
    defaults: dict[str, int]  # weights, in mode Additive
    always: dict[str, int]  # weights, in mode Exact as well
    add_on: AddOns
    spread: Selector | None = None
    spread_weight: int = 0


@dataclass(frozen=True, slots=True)
class ScoresUsed:
    """The AddOnPlacementScores that a placement's decision depends on."""

    coordinates: frozenset[tuple[str, str]]  # resource and score, of prioritizers
    objects: frozenset[str] | None  # resources that filters read; None: any

    @property
    def resources(self) -> frozenset[str]:
        """The resources that are known by name."""
        return frozenset(resource for resource, _ in self.coordinates) | (self.objects or frozenset())


@dataclass(frozen=True, slots=True)
class FilterStage:
    """What one filter kept of the rows before it."""

    plugin: ClusterFilter
    before: Rows
    kept: Bools

    @property
    def rows(self) -> Rows:
        return self.before[self.kept]


@dataclass(frozen=True, slots=True)
class Prioritized:
    """What one prioritizer answered."""

    name: str
    weight: int
    scored: ClusterScores


_NO_ROWS: Rows = np.zeros(0, np.int64)


@dataclass(slots=True)
class PlacementChoice:
    """`rows` passed all filters and have `totals`. `picked` are the chosen rows, best first."""

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
    unscheduled: int = 0
    status: ClusterPluginStatus = SUCCEEDED
    requeue_at: float | None = None

    @property
    def names(self) -> list[str]:
        return self.question.fleet.named(self.picked)

    def best(self) -> dict[str, int]:
        """Return the names of the chosen clusters, best first, and their totals."""
        return dict(zip(self.names, self.picked_totals.tolist(), strict=True))

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
        for stage in self.stages:
            for row in stage.before[~stage.kept].tolist():
                yield self.question.fleet.names[row], stage.plugin.name, stage.plugin.why(self.question, row)

    def missing(self) -> dict[str, int]:
        """Return what each cluster that was not chosen lacks, by name.

        It lacks what the last chosen cluster has more, plus 1 if the order of names favours the chosen one.
        """
        if not len(self.picked) or len(self.picked) == len(self.rows):
            return {}
        rank, totals = self.question.fleet.rank(), dict(zip(self.rows.tolist(), self.totals.tolist(), strict=True))
        last = min(self.picked.tolist(), key=lambda row: (totals[row], -rank[row]))
        chosen = frozenset(self.picked.tolist())
        return {
            self.question.fleet.names[row]: totals[last] - total + int(rank[row] > rank[last])
            for row, total in totals.items()
            if row not in chosen
        }
