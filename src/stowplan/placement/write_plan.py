"""From a choice of clusters to what has to be written: PlacementDecisions in phases, and the placement's status.

If decisions are ordered by score, a change of scores alone is written no more often than the placement's
`scoreRateLimit` allows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from stowplan.framework.placement.choice import ClusterPluginStatus, PlacementChoice
from stowplan.framework.placement.decision_groups import ChosenGroup
from stowplan.objects.placements import ClusterDecision, Placement, PlacementDecision
from stowplan.placement import slices
from stowplan.placement import status as statuses
from stowplan.placement.decision_cache import DecisionCache
from stowplan.placement.decision_writes import DecisionWrites, Phase
from stowplan.placement.slices import SliceLayout
from stowplan.placement.status import StatusCache

NEVER = math.inf


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The phases to write, and when scores that may not be written yet may be."""

    phases: list[Phase]
    refresh_at: float = NEVER


class WritePlanner:
    """`ocm`: decisions list the names of clusters and nothing else, as Open Cluster Management's do."""

    def __init__(self, cache: DecisionCache, statuses: StatusCache, *, ocm: bool) -> None:
        self._cache, self._statuses, self._ocm = cache, statuses, ocm
        self._scored_at: dict[str, float] = {}  # when scores were last written, by the placement's key

    def plan(
        self,
        choice: PlacementChoice,
        groups: list[ChosenGroup],
        status: ClusterPluginStatus,
        current: Mapping[str, PlacementDecision],
        now: float,
    ) -> WritePlan:
        """Plan the writes after a decision. `current` are the placement's PlacementDecisions as they are, by key."""
        placement, entries = choice.question.placement, self._entries(choice)
        by_score = placement.by_score and not self._ocm
        numbered, unnumbered = slices.by_number(placement, current)
        layout = slices.layout_of(groups, numbered)
        refresh_at = self._keep_scores(placement, layout, numbered, entries, now) if by_score else NEVER
        surplus = self._surplus(placement, layout.surplus, unnumbered) if layout.surplus or unnumbered else {}
        phases = DecisionWrites(choice, status, entries).phases(layout, numbered, surplus)
        scored_at = self._note_scores(placement, phases, now) if by_score else None
        wanted = statuses.decided(choice, status, groups, layout)
        return WritePlan(phases + self._statuses.write(placement, wanted, scored_at, now), refresh_at)

    def plan_undecided(self, choice: PlacementChoice, status: ClusterPluginStatus, now: float) -> WritePlan:
        """Plan the write of the status alone: the last good decisions stay."""
        placement = choice.question.placement
        wanted = statuses.undecided(choice, status, self._statuses.current(placement, now))
        return WritePlan(self._statuses.write(placement, wanted, None, now))

    def forget(self, key: str) -> None:
        self._scored_at.pop(key, None)

    def _entries(self, choice: PlacementChoice) -> dict[str, ClusterDecision]:
        """Return what a decision says about each chosen cluster."""
        if self._ocm:
            return {name: ClusterDecision(name) for name in choice.names}
        reason = "Matched" if choice.question.placement.spec.number_of_clusters is None else "BestScore"
        return {name: ClusterDecision(name, reason, total) for name, total in choice.best().items()}

    def _surplus(self, placement: Placement, numbers: list[int], unnumbered: list[str]) -> dict[str, str]:
        """Return the objects to delete: keys and uids."""
        keys = [f"{placement.key}-decision-{number}" for number in numbers] + unnumbered
        return {key: self._cache.uid(key) for key in keys}

    # -- decisions that are ordered by score

    def _keep_scores(
        self,
        placement: Placement,
        layout: SliceLayout,
        current: Mapping[int, PlacementDecision],
        entries: dict[str, ClusterDecision],
        now: float,
    ) -> float:
        """Keep order and scores of each object that keeps its clusters, until scores may be written again.

        Return when that is; NEVER if scores may be written now.
        """
        ready = self._scored_at.get(placement.key, -NEVER) + placement.score_pause
        if now >= ready:
            return NEVER
        for planned in layout.slices:
            old = current.get(planned.number)
            if old is not None and set(old.cluster_names) == set(planned.clusters):
                planned.clusters = list(old.cluster_names)
                entries.update((each.cluster_name, each) for each in old.status.decisions)
        return ready

    def _note_scores(self, placement: Placement, phases: list[Phase], now: float) -> float | None:
        """Return when scores are written: now, if decisions are written at all."""
        if not phases:
            return None
        self._scored_at[placement.key] = now
        return now
