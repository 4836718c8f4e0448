"""From a choice of clusters to what has to be written: PlacementDecisions in phases, and the placement's status.

Decisions say the score of each cluster. A change of scores alone is written no more often than the placement's
`scoreRateLimit` allows; a change of the placement itself, of weights say, at once. A hub whose definitions lack scores
drops them; then a change of scores alone is not written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from stowplan.framework.placement.choice import ClusterPluginStatus, PlacementChoice
from stowplan.framework.placement.decision_groups import ChosenGroup
from stowplan.objects.placements import ClusterDecision, Placement, PlacementDecision, PlacementSpec
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


@dataclass(frozen=True, slots=True)
class WrittenScores:
    """When scores were written last, for which placement, and whether any of them was not 0."""

    at: float
    spec: PlacementSpec
    any: bool


class WritePlanner:
    """`ocm`: decisions list the names of clusters and nothing else, as Open Cluster Management's do."""

    def __init__(self, cache: DecisionCache, statuses: StatusCache, *, ocm: bool) -> None:
        self._cache, self._statuses, self._ocm = cache, statuses, ocm
        self._written: dict[str, WrittenScores] = {}  # by the placement's key
        self._keeps_scores = True  # False if the hub's definitions lack scores

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
        refresh_at = NEVER if self._ocm else self._keep_scores(placement, layout, numbered, entries, now)
        surplus = self._surplus(placement, layout.surplus, unnumbered) if layout.surplus or unnumbered else {}
        phases = DecisionWrites(choice, status, entries).phases(layout, numbered, surplus)
        scored_at = self._note_scores(placement, entries, phases, now)
        wanted = statuses.decided(choice, status, groups, layout)
        written = self._statuses.write(placement, wanted, scored_at if by_score else None, now)
        return WritePlan(phases + written, refresh_at)

    def plan_undecided(self, choice: PlacementChoice, status: ClusterPluginStatus, now: float) -> WritePlan:
        """Plan the write of the status alone: the last good decisions stay."""
        placement = choice.question.placement
        wanted = statuses.undecided(choice, status, self._statuses.current(placement, now))
        return WritePlan(self._statuses.write(placement, wanted, None, now))

    def forget(self, key: str) -> None:
        self._written.pop(key, None)

    def forget_all(self) -> None:
        """Scores are made in another way now: they may be written at once."""
        self._written.clear()

    def _entries(self, choice: PlacementChoice) -> dict[str, ClusterDecision]:
        """Return what a decision says about each chosen cluster."""
        if self._ocm:
            return {name: ClusterDecision(name) for name in choice.names}
        reason = "Matched" if choice.question.placement.spec.number_of_clusters is None else "BestScore"
        kept = choice.kept_names
        return {
            name: ClusterDecision(name, "KeptByHysteresis" if name in kept else reason, total)
            for name, total in choice.settled().items()
        }

    def _surplus(self, placement: Placement, numbers: list[int], unnumbered: list[str]) -> dict[str, str]:
        """Return the objects to delete: keys and uids."""
        keys = [f"{placement.key}-decision-{number}" for number in numbers] + unnumbered
        return {key: self._cache.uid(key) for key in keys}

    # -- scores

    def _keep_scores(
        self,
        placement: Placement,
        layout: SliceLayout,
        current: Mapping[int, PlacementDecision],
        entries: dict[str, ClusterDecision],
        now: float,
    ) -> float:
        """Keep scores, and an order by them, of each object that keeps its clusters, until they may be written again.

        Return when that is; NEVER if there is no need for it, or if scores may be written now.
        """
        written = self._written.get(placement.key)
        self._learn(written, current)
        if written is None or written.spec != placement.spec:
            ready = now
        else:
            ready = written.at + placement.score_pause if self._keeps_scores or placement.by_score else NEVER
        if now >= ready:
            return NEVER
        changed = False
        for planned in layout.slices:
            old = current.get(planned.number)
            if old is None or tuple(map(entries.get, planned.clusters)) == old.status.decisions:
                continue
            names = old.cluster_names
            if set(names) == set(planned.clusters):
                changed = True
                entries.update(zip(names, old.status.decisions, strict=True))
                if placement.by_score:
                    planned.clusters = list(names)
        return ready if changed else NEVER

    def _learn(self, written: WrittenScores | None, current: Mapping[int, PlacementDecision]) -> None:
        """Note whether the hub keeps scores: whether it shows any after some were written."""
        if any(each.score for decision in current.values() for each in decision.status.decisions):
            self._keeps_scores = True
        elif written is not None and written.any and any(each.status.decisions for each in current.values()):
            self._keeps_scores = False

    def _note_scores(
        self, placement: Placement, entries: Mapping[str, ClusterDecision], phases: list[Phase], now: float
    ) -> float | None:
        """Return when scores are written: now, if decisions are written at all."""
        if not phases:
            return None
        any_score = any(each.score for each in entries.values())
        self._written[placement.key] = WrittenScores(now, placement.spec, any_score)
        return now
