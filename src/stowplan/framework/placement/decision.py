"""What came of a placement: who was dropped by whom, who scored what, who was chosen. Values, not exceptions.

Status      how it went, in Open Cluster Management's words: Success, Warning, Misconfigured, Error
Asked       what a plugin is asked about: a placement, the fleet, the moment
Scored      a prioritizer's answer
Stage       what a filter left
Choice      the answer for one placement, with its trail
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
class PluginStatus:
    """`path` is where in the placement it is wrong, `remedy` what would be right; both are our own."""

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
        """All there is to say."""
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message}; {self.remedy}" if self.remedy else f"{where}{self.message}"


FINE = PluginStatus()


@dataclass(frozen=True, slots=True)
class PlacementQuestion:
    """`own` are the rows of the placement's decisions so far, `ocm`: as Open Cluster Management does, and no more."""

    placement: Placement
    fleet: Fleet
    now: float
    own: Rows
    ocm: bool = False


@dataclass(frozen=True, slots=True)
class ClusterScores:
    """A score for each row that was asked about; where not `there` the plugin had nothing to say, and 0 counts."""

    values: Ints
    there: Bools | None = None
    warning: str = ""


@runtime_checkable
class ClusterFilter(Protocol):
    name: str

    def filter(self, asked: PlacementQuestion, rows: Rows) -> Bools | PluginStatus:
        """Which of these clusters may be chosen; or what is wrong with the placement."""

    def why(self, asked: PlacementQuestion, row: int) -> str:
        """Why this cluster may not be."""


@runtime_checkable
class Prioritizer(Protocol):
    name: str

    def score(self, asked: PlacementQuestion, rows: Rows) -> ClusterScores:
        """-100 to 100 for each of these clusters."""


@runtime_checkable
class Selector(Protocol):
    def select(self, asked: PlacementQuestion, rows: Rows, totals: Ints, number: int, weight: int) -> Rows:
        """The places, among these rows, of those chosen, best first."""


class AddOns(Protocol):
    def __call__(self, coordinate: ScoreCoordinate, weight: int) -> Prioritizer | PluginStatus:
        """The prioritizer of an add-on score."""


@dataclass(frozen=True)
class ClusterPolicy:
    """Who decides: filters in order, prioritizers by the name that a placement calls them by, with default weights."""

    filters: tuple[ClusterFilter, ...]
    prioritizers: dict[str, Prioritizer]
    defaults: dict[str, int]
    always: dict[str, int]  # also in mode Exact
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
    plugin: ClusterFilter
    before: Rows
    kept: Bools

    @property
    def rows(self) -> Rows:
        return self.before[self.kept]


@dataclass(frozen=True, slots=True)
class Prioritized:
    name: str
    weight: int
    scored: ClusterScores


_NOBODY: Rows = np.zeros(0, np.int64)


@dataclass(slots=True)
class PlacementChoice:
    """`rows` passed all filters and have `totals`; `picked` are the rows chosen, best first."""

    asked: PlacementQuestion
    sets: tuple[str, ...] = ()
    bindings: int = 0
    candidates: Rows = field(default_factory=lambda: _NOBODY)
    stages: list[FilterStage] = field(default_factory=list)
    prioritized: list[Prioritized] = field(default_factory=list)
    rows: Rows = field(default_factory=lambda: _NOBODY)
    totals: Ints = field(default_factory=lambda: _NOBODY)
    picked: Rows = field(default_factory=lambda: _NOBODY)
    reached: Ints = field(default_factory=lambda: _NOBODY)  # the totals of those picked
    unscheduled: int = 0
    status: PluginStatus = FINE
    requeue_at: float | None = None

    @property
    def names(self) -> list[str]:
        return self.asked.fleet.named(self.picked)

    def best(self) -> dict[str, int]:
        """Those picked, best first, and their totals."""
        return dict(zip(self.names, self.reached.tolist(), strict=True))

    def ranking(self) -> Iterator[tuple[str, int]]:
        """All that were ranked, by name, and their totals."""
        if len(self.totals) == len(self.rows):
            names = self.asked.fleet.names
            for place, row in enumerate(self.rows.tolist()):
                yield names[row], int(self.totals[place])

    def totals_by_name(self) -> dict[str, int]:
        """Of those that passed all filters; nothing, if the placement was given up before."""
        return dict(self.ranking())

    def dropped(self) -> Iterator[tuple[str, str, str]]:
        """Who was dropped, by which filter, and why."""
        for stage in self.stages:
            for row in stage.before[~stage.kept].tolist():
                yield self.asked.fleet.names[row], stage.plugin.name, stage.plugin.why(self.asked, row)

    def missing(self) -> dict[str, int]:
        """What those who were passed over lack to come in, by name: one more than the least of those chosen has, or as
        many where their name goes first.
        """
        if not len(self.picked) or len(self.picked) == len(self.rows):
            return {}
        rank, totals = self.asked.fleet.rank(), dict(zip(self.rows.tolist(), self.totals.tolist(), strict=True))
        least = min(self.picked.tolist(), key=lambda row: (totals[row], -rank[row]))
        chosen = frozenset(self.picked.tolist())
        return {
            self.asked.fleet.names[row]: totals[least] - total + int(rank[row] > rank[least])
            for row, total in totals.items()
            if row not in chosen
        }
