"""Preemption for a whole group: which pods to evict, and which node each member gets then.

A pod that needs room for pods that do not exist yet (a Spark driver for its executors) is treated like a group, with or
without one: room for all of it, or no eviction. The plan says where that room is, so that it can be kept meanwhile.

Victims have a lower priority than the group, and disruption budgets are kept. A group preempts by its own priority if
it has one, and by that of its members otherwise.

    1  check by resources (`capacity_check`): if the group cannot fit at all, nothing is tried
    2  find the lowest priority P such that the group fits without all pods of priority P or lower
    3  of those pods, take the ones on nodes where members would be; of these, the shortest run that is enough
    4  go through these victims and spare each one whose eviction is not needed, within a bounded number of tries

If the group does not fit even without all victims, none is evicted. The check by resources also says where steps 2 to 4
start, since a what-if without thousands of pods takes time.

Members beyond the minimum preempt once the minimum has nodes. As many of them as possible are to fit, or else one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.pods.nominated_pods import Companions
from stowplan.columns.state import ClusterState
from stowplan.engine.attempt.placer import Placer, UnitOutcome
from stowplan.engine.groups.group import GroupState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.preemption.capacity_check import CapacityCheck, lacking
from stowplan.engine.preemption.min_resources_hold import MinResourcesHold
from stowplan.engine.preemption.victim_sets import VictimSet, VictimSets, pods_of, preemptible
from stowplan.engine.unit import Unit
from stowplan.framework.decision import Decision
from stowplan.framework.evaluation import slot_pods
from stowplan.framework.group import Group, SlotPods
from stowplan.framework.profile import Profile
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.pods import Pod

MOST_DECISIONS = 2000  # that may be spent on sparing further victims
MOST_LOOKS = 200  # victim sets that are looked at for that
MOST_CHANGES = 2000  # pods removed or placed, to try which victims disruption budgets should be used for


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """The pods to evict, and the node that each member of the group gets afterwards, by uid.

    companions  stand-ins for pods that do not exist yet, with their nodes, by the uid of the member that needs them
    """

    victims: tuple[Pod, ...]
    nodes: dict[str, str]
    companions: dict[str, Companions] = field(default_factory=dict)


class GroupPreemption:
    """`evicting`: uids of pods whose eviction was requested, and that are still there."""

    def __init__(
        self, state: ClusterState, placer: Placer, groups: Groups, evicting: Container[str], hold: MinResourcesHold
    ) -> None:
        self._state, self._placer, self._groups, self._evicting = state, placer, groups, evicting
        self._hold = hold

    def plan(self, unit: Unit, profile: Profile, failed: Iterable[Decision] = ()) -> PreemptionPlan | None:
        """The pods to evict for the group; None if that does not help, or is not allowed.

        `failed`: the decisions about members that found no node.
        """
        found = self._groups.get(unit.group) if unit.group else _alone(unit.lead)
        if found is None or not self._may_preempt(unit, found):
            return None
        priority = found.preemptor_priority(unit.ready)
        slots = self._slots(unit, profile)
        check = CapacityCheck(self._state, unit, found, profile, failed, slots.values())
        most = check.most(preemptible(self._state, self._groups, priority, unit.group))
        if most < unit.needed:
            return None
        sets = VictimSets(self._state, self._groups, self._evicting, priority, unit.group)
        search = VictimSearch(self._state, self._placer, unit, found, profile, check, sets.leaving, self._hold, slots)
        plan = None
        if found.placed >= found.group.minimum and most > unit.needed:
            search.needed = search.possible(sets)
            plan = search.plan(sets) if search.needed > unit.needed else None
            search.needed = unit.needed
        return plan or search.plan(sets)

    def _slots(self, unit: Unit, profile: Profile) -> dict[str, SlotPods]:
        if not profile.slot_pod_plugins:
            return {}
        cluster = Cluster(self._state)
        return {pod.uid: found for pod in unit.ready if (found := slot_pods(pod, profile, cluster)) is not None}

    def _may_preempt(self, unit: Unit, found: GroupState) -> bool:
        """True if the group allows preemption and there are pods of lower priority."""
        pods = unit.ready
        if not pods or not found.group.preempts or any(pod.spec.preemption_policy == "Never" for pod in pods):
            return False
        priority = found.preemptor_priority(pods)
        return any(each < priority for each in self._state.priorities) or self._groups.any_victims(priority)


class VictimSearch:
    """Searches for the fewest victims: what-ifs without some pods. `needed`: how many members must get a node."""

    def __init__(
        self,
        state: ClusterState,
        placer: Placer,
        unit: Unit,
        group: GroupState,
        profile: Profile,
        check: CapacityCheck,
        leaving: Sequence[Pod],
        hold: MinResourcesHold,
        slots: Mapping[str, SlotPods],
    ) -> None:
        self._state, self._placer, self._unit, self._group = state, placer, unit, group
        self._profile, self._check, self._leaving, self._hold, self._slots = profile, check, leaving, hold, slots
        self.needed = unit.needed

    def plan(self, sets: VictimSets) -> PreemptionPlan | None:
        without_any = self.without(()) if sets.leaving else None
        victims, outcome = ([], without_any) if without_any is not None else self.fewest(sets)
        if outcome is None:
            return None
        nodes = {each.uid: each.node_name for each in outcome.assumed_pods}
        found = ((uid, self._slots.get(uid), places) for uid, places in outcome.slots.items())
        companions = {uid: _companions(uid, slots.example, places) for uid, slots, places in found if slots is not None}
        return PreemptionPlan(tuple(pods_of(victims).values()), nodes, companions)

    def possible(self, sets: VictimSets) -> int:
        """How many members would have a node if all victims were evicted that disruption budgets allow."""
        outcome = self.without(sets.affordable(sets.all))
        return 0 if outcome is None else len(outcome.assumed_pods)

    def without(self, sets: Iterable[VictimSet]) -> UnitOutcome | None:
        """Where the group's members would be without these pods; None if the group would not fit."""
        with self._state.trial() as trial:
            for uid in pods_of((*sets, self._leaving)):
                trial.remove_pod(uid)
            if lacking(self._group, self._state):
                return None
            outcome = self._placer.rehearse(self._unit, self._profile, self.needed)
            if outcome.whole and self._hold.in_force:
                for each in outcome.assumed_pods:
                    trial.add_pod(each.pod, each.node_name)
                pods = [each.pod for each in outcome.assumed_pods]
                outcome.whole = not self._hold.refusal(pods, self._unit.group)
        return outcome if outcome.whole else None

    def fewest(self, sets: VictimSets) -> tuple[list[VictimSet], UnitOutcome | None]:
        """The sets to evict; without an outcome if that does not help."""
        for choice in self._within_budgets(sets):
            victims, outcome = self._up_to_a_priority(choice)
            if outcome is not None:
                break
        else:
            return [], None
        near = self._on_used_nodes(victims, outcome)
        fewer, found = self._shortest(near, range(len(near) + 1))
        return self._spared(victims, outcome) if found is None else self._spared(fewer, found)

    def _up_to_a_priority(self, sets: Sequence[VictimSet]) -> tuple[list[VictimSet], UnitOutcome | None]:
        """All sets up to the lowest priority that is enough."""
        priorities = [each.priority for each in sets]
        steps = (at for at in range(1, len(sets)) if priorities[at - 1] != priorities[at])
        return self._shortest(sets, [*steps, len(sets)] if sets else [])

    def _within_budgets(self, sets: VictimSets) -> Iterator[list[VictimSet]]:
        """Choices of sets that disruption budgets allow, to be tried one after the other.

        At first the lowest priorities use the budgets. They may be pods that are not in the way, so next are those on
        nodes where members would be, if each set had the budgets for itself. Then others, within a bounded effort.
        """
        yield sets.affordable(sets.all)
        alone = [each for each in sets.all if sets.affordable([each])]
        contested = len(alone) > len(sets.affordable(alone))
        wish = self.without(alone) if contested and not self._cannot_fit(alone) else None
        if wish is None:
            return
        near = self._on_used_nodes(alone, wish)
        first = {id(each) for each in near}
        order = [*near, *(each for each in alone if id(each) not in first)]
        effort = len(wish.assumed_pods) + len(pods_of(alone))
        for choice in sets.choices(order, max(MOST_CHANGES // effort, 1)):
            chosen = {id(each) for each in choice}
            yield [each for each in alone if id(each) in chosen]

    def _shortest(self, sets: Sequence[VictimSet], ends: Sequence[int]) -> tuple[list[VictimSet], UnitOutcome | None]:
        """The first sets, up to the lowest of these ends that is enough."""
        at = bisect_left(ends, True, key=lambda end: not self._cannot_fit(sets[:end]))
        if at == len(ends):
            return [], None
        found = self.without(sets[: ends[at]])
        if found is not None:
            return list(sets[: ends[at]]), found
        too_few, enough, found = at, len(ends) - 1, self.without(sets[: ends[-1]]) if at < len(ends) - 1 else None
        while found is not None and enough - too_few > 1:
            middle = (too_few + enough) // 2
            fits = self.without(sets[: ends[middle]])
            too_few, enough, found = (middle, enough, found) if fits is None else (too_few, middle, fits)
        return list(sets[: ends[enough]]), found

    def _spared(self, victims: list[VictimSet], outcome: UnitOutcome) -> tuple[list[VictimSet], UnitOutcome]:
        """The victims without those that are not in the way."""
        near = self._on_used_nodes(victims, outcome)
        found = self.without(near) if len(near) < len(victims) else None
        if found is not None:
            victims, outcome = near, found
        places = len(outcome.assumed_pods) + sum(map(len, outcome.slots.values()))
        tries = MOST_DECISIONS // max(places, 1)
        for each in list(reversed(victims))[:MOST_LOOKS]:
            left = [other for other in victims if other is not each]
            if tries <= 0 or self._cannot_fit(left):
                continue
            tries, found = tries - 1, self.without(left)
            if found is not None:
                victims, outcome = left, found
        return victims, outcome

    def _cannot_fit(self, sets: Iterable[VictimSet]) -> bool:
        return self._check.most(pods_of((*sets, self._leaving)).values()) < self.needed

    def _on_used_nodes(self, sets: Iterable[VictimSet], outcome: UnitOutcome) -> list[VictimSet]:
        """The sets with a pod on a node where a member would be, or a slot."""
        names = [each.node_name for each in outcome.assumed_pods]
        used = {self._state.table.row_of[name] for name in chain(names, *outcome.slots.values())}
        pods = self._state.pods
        return [each for each in sets if any(pods[pod.uid].row in used for pod in each)]


def _alone(pod: Pod) -> GroupState:
    """A pod without a group, as a group of one."""
    return GroupState(Group(pod.key, 1), pod, 0.0)


def _companions(uid: str, example: Pod, nodes: Iterable[str]) -> Companions:
    """Stand-ins for the pods that the pod with this uid needs, each with its node."""

    def stand_in(number: int) -> Pod:
        name, namespace = f"{example.name} {number}", example.namespace
        return msgspec.structs.replace(example, metadata=ObjectMeta(name, namespace, f"{uid}/{number}"))

    return [(stand_in(number), node) for number, node in enumerate(nodes, 1)]
