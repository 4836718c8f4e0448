"""Room for a whole group by evictions: whom it would take, and which node each member would get then.

Whoever matters less than the group may have to go (`lots`), the least important first, and within disruption budgets.

    1  a quick look by resources (`outlook`): if it is hopeless, nothing is tried
    2  the lowest priority such that it fits without all pods up to it
    3  of those, the ones on nodes where members would be; and of these the shortest run without which it fits
    4  from those, as far as a bounded number of further tries goes, everybody without whom it fits, too

If it does not fit even without all of them, nobody has to go. The quick look also says where in 2 to 4 to begin, since
a what-if without thousands of pods takes its time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence

import msgspec

from stowplan.columns.state import ClusterState
from stowplan.engine.attempt.placer import Placer, UnitOutcome
from stowplan.engine.groups.groups import Groups, Members
from stowplan.engine.preemption.feasibility import Feasibility, lacking
from stowplan.engine.preemption.victim_sets import VictimSet, VictimSets, everybody
from stowplan.engine.queue.unit import Unit
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import Decision
from stowplan.objects.pods import Pod

MOST_DECISIONS = 2000  # that may be spent on sparing further victims
MOST_LOOKS = 200  # that may be taken for it


class PreemptionPlan(msgspec.Struct, frozen=True):
    """The pods to be evicted, and the node that each member of the group gets afterwards, by uid."""

    victims: tuple[Pod, ...]
    nodes: dict[str, str]


class GroupPreemption:
    """`told`: uids of pods that were told to go, and are not gone yet."""

    def __init__(self, state: ClusterState, placer: Placer, groups: Groups, told: Container[str]) -> None:
        self._state, self._placer, self._groups, self._told = state, placer, groups, told

    def plan(self, unit: Unit, profile: Profile, failed: Iterable[Decision] = ()) -> PreemptionPlan | None:
        """Whom to evict for the group; None if that does not help, or is not to be. `failed`: who found no node."""
        members = self._groups.get(unit.group)
        if members is None or not self._may(unit, members):
            return None
        priority = max(pod.priority for pod in unit.ready)
        outlook = Feasibility(self._state, unit, members, profile, failed)
        if outlook.hopeless(placed.pod for placed in self._state.pods.values() if placed.pod.priority < priority):
            return None
        lots = VictimSets(self._state, self._groups, self._told, priority)
        search = VictimSearch(self._state, self._placer, unit, members, profile, outlook, lots.leaving)
        found = search.without(()) if lots.leaving else None
        victims, outcome = ([], found) if found is not None else search.fewest(lots)
        if outcome is None:
            return None
        nodes = {placing.uid: placing.node_name for placing in outcome.placings}
        return PreemptionPlan(tuple(everybody(victims).values()), nodes)

    def _may(self, unit: Unit, members: Members) -> bool:
        """Does it want to, and is there anybody who matters less?"""
        pods = unit.ready
        if not pods or not members.group.preempts or any(pod.spec.preemption_policy == "Never" for pod in pods):
            return False
        priority = max(pod.priority for pod in pods)
        return any(each < priority for each in self._state.priorities)


class VictimSearch:
    """Would the group fit, if some pods were not there? And without which does it?"""

    def __init__(
        self, state: ClusterState, placer: Placer, unit: Unit, members: Members, profile: Profile,
        outlook: Feasibility, leaving: Sequence[Pod],
    ) -> None:  # fmt: skip
        self._state, self._placer, self._unit, self._members = state, placer, unit, members
        self._profile, self._outlook, self._leaving = profile, outlook, leaving

    def without(self, lots: Iterable[VictimSet]) -> UnitOutcome | None:
        """Where its members would be; None if it would not fit."""
        with self._state.trial() as trial:
            for uid in everybody((*lots, list(self._leaving))):
                trial.remove_pod(uid)
            if lacking(self._members, self._state):
                return None
            outcome = self._placer.rehearse(self._unit, self._profile)
        return outcome if outcome.whole else None

    def fewest(self, lots: VictimSets) -> tuple[list[VictimSet], UnitOutcome | None]:
        """The lots that have to go; no outcome if it is no use."""
        victims, outcome = self._up_to_a_priority(lots.affordable(lots.all))
        if outcome is None:
            victims, outcome = self._up_to_a_priority(self._spent_otherwise(lots))
        if outcome is None:
            return [], None
        near = self._on_used_nodes(victims, outcome)
        fewer, found = self._shortest(near, range(len(near) + 1))
        return self._spared(victims, outcome) if found is None else self._spared(fewer, found)

    def _up_to_a_priority(self, lots: Sequence[VictimSet]) -> tuple[list[VictimSet], UnitOutcome | None]:
        """All whose priority is at most so high."""
        priorities = [lot[0].priority for lot in lots]
        steps = (at for at in range(1, len(lots)) if priorities[at - 1] != priorities[at])
        return self._shortest(lots, [*steps, len(lots)] if lots else [])

    def _spent_otherwise(self, lots: VictimSets) -> list[VictimSet]:
        """Budgets were spent on pods in nobody's way, it seems: on which nodes would members be, if each lot had them
        for itself? Lots there have the first say this time. Nobody, if that is no use either.
        """
        alone = [lot for lot in lots.all if lots.affordable([lot])]
        contested = len(alone) > len(lots.affordable(alone))
        wish = self.without(alone) if contested and not self._hopeless(alone) else None
        if wish is None:
            return []
        near = self._on_used_nodes(alone, wish)
        first = {id(lot) for lot in near}
        kept = {id(lot) for lot in lots.affordable([*near, *(lot for lot in alone if id(lot) not in first)])}
        return [lot for lot in alone if id(lot) in kept]

    def _shortest(self, lots: Sequence[VictimSet], ends: Sequence[int]) -> tuple[list[VictimSet], UnitOutcome | None]:
        """The first lots up to the lowest of these ends such that it fits without them; if it does at any."""
        at = bisect_left(ends, True, key=lambda end: not self._hopeless(lots[:end]))
        if at == len(ends):
            return [], None
        found = self.without(lots[: ends[at]])
        if found is not None:
            return list(lots[: ends[at]]), found
        too_few, enough, found = at, len(ends) - 1, self.without(lots[: ends[-1]]) if at < len(ends) - 1 else None
        while found is not None and enough - too_few > 1:
            middle = (too_few + enough) // 2
            fits = self.without(lots[: ends[middle]])
            too_few, enough, found = (middle, enough, found) if fits is None else (too_few, middle, fits)
        return list(lots[: ends[enough]]), found

    def _spared(self, victims: list[VictimSet], outcome: UnitOutcome) -> tuple[list[VictimSet], UnitOutcome]:
        """Without those of them who are in nobody's way."""
        near = self._on_used_nodes(victims, outcome)
        found = self.without(near) if len(near) < len(victims) else None
        if found is not None:
            victims, outcome = near, found
        tries = MOST_DECISIONS // max(len(outcome.placings), 1)
        for lot in list(reversed(victims))[:MOST_LOOKS]:
            left = [each for each in victims if each is not lot]
            if tries <= 0 or self._hopeless(left):
                continue
            tries, found = tries - 1, self.without(left)
            if found is not None:
                victims, outcome = left, found
        return victims, outcome

    def _hopeless(self, lots: Iterable[VictimSet]) -> bool:
        return self._outlook.hopeless(everybody((*lots, list(self._leaving))).values())

    def _on_used_nodes(self, lots: Iterable[VictimSet], outcome: UnitOutcome) -> list[VictimSet]:
        used = {self._state.table.row_of[placing.node_name] for placing in outcome.placings}
        pods = self._state.pods
        return [lot for lot in lots if any(pods[pod.uid].row in used for pod in lot)]
