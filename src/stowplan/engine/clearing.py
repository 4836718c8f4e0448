"""Room for a whole group by evictions: whom it would take, and which node each member would get then.

Whoever matters less than the group may have to go, the least important first, and members of another group only all
together; pods that a disruption budget protects stay. The shortest run of them after which the group fits is looked for
by halving; from those the ones are spared on whose nodes no member would be, and then, as far as a bounded number of
further tries goes, everybody without whom it fits, too. If it does not fit even without all of them, nobody has to go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from stowplan.columns.state import ClusterState
from stowplan.engine.gang import Outcome, Placer
from stowplan.engine.groups import Groups
from stowplan.engine.unit import Unit
from stowplan.framework.profile import Profile
from stowplan.objects.disruption import Budgets, importance
from stowplan.objects.pods import Pod

MOST_DECISIONS = 2000  # that may be spent on sparing further victims


class Plan(msgspec.Struct, frozen=True):
    """The pods to be evicted, and the node that each member of the group gets afterwards, by uid."""

    victims: tuple[Pod, ...]
    nodes: dict[str, str]


class Clearing:
    def __init__(self, state: ClusterState, placer: Placer, groups: Groups) -> None:
        self._state, self._placer, self._groups = state, placer, groups

    def plan(self, unit: Unit, profile: Profile) -> Plan | None:
        """Whom to evict for the group; None if that does not help, or is not to be."""
        pods, members = unit.ready, self._groups.get(unit.group)
        if members is None or not members.group.preempts:
            return None
        priority = max(pod.priority for pod in pods)
        if any(pod.spec.preemption_policy == "Never" for pod in pods):
            return None
        if not any(each < priority for each in self._state.priorities):
            return None
        leaving, lots = self._lesser(priority)
        if not leaving and not lots:
            return None
        attempt = Attempt(self._state, self._placer, unit, profile, leaving)
        if attempt.without(lots) is None:
            return None
        victims, outcome = self._fewest(attempt, lots)
        nodes = {placing.uid: placing.node_name for placing in outcome.placings}
        return Plan(tuple(pod for lot in victims for pod in lot), nodes)

    def _lesser(self, priority: int) -> tuple[list[Pod], list[list[Pod]]]:
        """Pods that are leaving anyway; and those that could be made to, in lots that go together, the least first."""
        placed = [each.pod for each in self._state.pods.values() if each.pod.priority < priority]
        leaving = [pod for pod in placed if pod.terminating]
        others = sorted((pod for pod in placed if not pod.terminating), key=importance)
        protected, _ = Budgets(self._state.store.budgets_of).split(others[::-1], lambda pod: pod)
        kept, lots = {pod.uid for pod in protected}, self._lots(others)
        return leaving, [lot for lot in reversed(lots) if kept.isdisjoint(pod.uid for pod in lot)]

    def _lots(self, pods: Iterable[Pod]) -> list[list[Pod]]:
        """Who goes together: as many of a group as it needs; its other members and all other pods by themselves."""
        lots: dict[str, list[Pod]] = {}
        for pod in pods:  # the most important first
            members = self._groups.of(pod.uid)
            name = pod.uid if members is None else members.group.name
            full = members is not None and len(lots.get(name, ())) >= members.group.minimum - members.group.slots
            lots.setdefault(pod.uid if full else name, []).append(pod)
        return list(lots.values())

    def _fewest(self, attempt: Attempt, lots: Sequence[list[Pod]]) -> tuple[list[list[Pod]], Outcome]:
        """It fits without all of these: then without which of them?"""
        too_few, enough = -1, len(lots)
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if attempt.without(lots[:middle]) is None:
                too_few = middle
            else:
                enough = middle
        victims = list(lots[:enough])
        found = attempt.without(victims)
        if found is None:  # what fits without few need not fit without more; all of them were enough
            victims, found = list(lots), attempt.without(lots)
        assert found is not None
        return self._spared(attempt, victims, found)

    def _spared(self, attempt: Attempt, victims: list[list[Pod]], outcome: Outcome) -> tuple[list[list[Pod]], Outcome]:
        """Without those of them who are in nobody's way."""
        used = {placing.node_name for placing in outcome.placings}
        in_the_way = [lot for lot in victims if any(self._node_of(pod) in used for pod in lot)]
        found = attempt.without(in_the_way) if len(in_the_way) < len(victims) else None
        if found is not None:
            victims, outcome = in_the_way, found
        tries = MOST_DECISIONS // max(len(outcome.placings), 1)
        for lot in list(reversed(in_the_way))[:tries]:
            left = [each for each in victims if each is not lot]
            found = attempt.without(left)
            if found is not None:
                victims, outcome = left, found
        return victims, outcome

    def _node_of(self, pod: Pod) -> str:
        return self._state.table.names[self._state.pods[pod.uid].row]


class Attempt:
    """Would the group fit, if some pods were not there?"""

    def __init__(
        self, state: ClusterState, placer: Placer, unit: Unit, profile: Profile, leaving: Iterable[Pod]
    ) -> None:
        self._state, self._placer, self._unit, self._profile = state, placer, unit, profile
        self._leaving = list(leaving)

    def without(self, lots: Iterable[Iterable[Pod]]) -> Outcome | None:
        """Where its members would be; None if it would not fit."""
        with self._state.trial() as trial:
            for pod in (*self._leaving, *(pod for lot in lots for pod in lot)):
                trial.remove_pod(pod.uid)
            outcome = self._placer.rehearse(self._unit, self._profile)
        return outcome if outcome.whole else None
