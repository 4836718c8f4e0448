"""From a choice to what has to be written: decision objects in phases, and the placement's own status.

A status that was written counts until the server shows it, as decisions do. Scores alone, where decisions are ordered
by them, are not written more often than the placement's `scoreRateLimit` says.
"""

from __future__ import annotations

from stowplan.framework.placement.decision import PlacementChoice, PluginStatus
from stowplan.framework.placement.decision_groups import ChosenGroup
from stowplan.objects.actions import Patch
from stowplan.objects.placements import ClusterDecision, Placement, PlacementDecision, PlacementStatus
from stowplan.placement import status as placement_status
from stowplan.placement import write_plan
from stowplan.placement.decision_cache import DecisionCache, held
from stowplan.placement.slices import SliceLayout, layout
from stowplan.placement.status import comparable
from stowplan.placement.write_plan import Phase, PlannedWrite, WritePlanner
from stowplan.placement.writes import BELIEVED

NEVER = float("inf")


class DesiredState:
    def __init__(self, book: DecisionCache, *, ocm: bool) -> None:
        self._book, self._ocm = book, ocm
        self._said: dict[str, tuple[PlacementStatus, float]] = {}  # statuses written, and until when that is believed
        self._scored_at: dict[str, float] = {}

    # -- what the server shows

    def heard(self, old: Placement, new: Placement, now: float) -> bool:
        """The server shows another version of a placement; whether its status is not what we made it."""
        expected = self._status(old, now)
        said = self._said.get(new.key)
        if said is not None and comparable(new.status) == comparable(said[0]):
            del self._said[new.key]
        return comparable(new.status) != comparable(expected)

    def doubt(self, key: str) -> None:
        """A write failed: the status is what the server shows."""
        self._said.pop(key, None)

    def forget(self, key: str) -> None:
        self._said.pop(key, None)
        self._scored_at.pop(key, None)

    def _status(self, placement: Placement, now: float) -> PlacementStatus:
        """As it is, or is about to be."""
        said = self._said.get(placement.key)
        return placement.status if said is None or said[1] <= now else said[0]

    # -- what is to be written

    def phases(
        self, choice: PlacementChoice, groups: list[ChosenGroup], status: PluginStatus, now: float
    ) -> tuple[list[Phase], float]:
        """All that has to be written, and when scores that are held back may be."""
        placement = choice.asked.placement
        if status.failed:
            wanted = placement_status.unfulfilled(choice, status, self._status(placement, now))
            return self._say(placement, wanted, None, now), NEVER
        current = self._book.of(placement.key)
        numbers = {key: number_of(placement, key) for key in current}
        numbered = {number: current[key] for key, number in numbers.items() if number}
        holding = {number: held(decision) for number, decision in numbered.items()}
        plan, entries = layout(groups, holding), self._entries(choice)
        refresh_at = self._hold_back(placement, plan, numbered, entries, now)
        author = WritePlanner(placement, status, entries, {key: self._book.uid(key) for key in current})
        odd = [key for key, number in numbers.items() if not number]
        phases = list(write_plan.phases(author, plan, numbered, holding, odd, choice.ranking))
        scored_at = self._scored(placement, phases, now)
        wanted = placement_status.fulfilled(choice, status, groups, plan)
        return phases + self._say(placement, wanted, scored_at, now), refresh_at

    def _entries(self, choice: PlacementChoice) -> dict[str, ClusterDecision]:
        """What is said about each chosen cluster; Open Cluster Management says nothing but its name."""
        if self._ocm:
            return {name: ClusterDecision(name) for name in choice.names}
        reason = "Matched" if choice.asked.placement.spec.number_of_clusters is None else "BestScore"
        return {name: ClusterDecision(name, reason, total) for name, total in choice.best().items()}

    def _hold_back(
        self,
        placement: Placement,
        plan: SliceLayout,
        current: dict[int, PlacementDecision],
        entries: dict[str, ClusterDecision],
        now: float,
    ) -> float:
        """While scores may not be written, a slice that keeps its clusters keeps its order and what it says of them."""
        ready = self._scored_at.get(placement.key, -NEVER) + placement.score_pause
        if not self._by_score(placement) or now >= ready:
            return NEVER
        for slot in plan.slots:
            old = current.get(slot.number)
            if old is not None and set(old.cluster_names) == set(slot.clusters):
                slot.clusters = list(old.cluster_names)
                entries.update((each.cluster_name, each) for each in old.status.decisions)
        return ready

    def _by_score(self, placement: Placement) -> bool:
        return placement.by_score and not self._ocm

    def _scored(self, placement: Placement, phases: list[Phase], now: float) -> float | None:
        """When scores were written, if they are now."""
        if not self._by_score(placement) or not any(phase.writes for phase in phases):
            return None
        self._scored_at[placement.key] = now
        return now

    def _say(self, placement: Placement, wanted: PlacementStatus, scored_at: float | None, now: float) -> list[Phase]:
        before = self._status(placement, now)
        if comparable(wanted) == comparable(before) and scored_at is None:
            return []
        body = placement_status.body(wanted, before, scored_at)
        self._said[placement.key] = wanted, now + BELIEVED
        return [Phase([PlannedWrite(Patch(kind="Placement", key=placement.key, body=body))])]


def number_of(placement: Placement, key: str) -> int:
    """The number of a decision object; 0 if its name is not one of ours."""
    prefix = f"{placement.key}-decision-"
    digits = key.removeprefix(prefix) if key.startswith(prefix) else ""
    return int(digits) if digits.isdecimal() and digits[0] != "0" else 0
