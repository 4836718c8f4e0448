"""Possible victims for a group: pods of lower priority, in sets that are evicted together, the least important first.

Evicting a member that another group needs evicts that whole group. Members beyond its minimum may also be evicted one
by one. A group may also say that its pods are disrupted one by one, or only all together (`Group.disruption`); in the
last case its own priority counts, whatever its pods have.

Pods that are terminating, or whose eviction was requested, leave anyway: they are in no set, and have already used what
their disruption budgets allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from itertools import combinations, islice

from stowplan.columns.state import ClusterState
from stowplan.engine.groups.group import GroupState
from stowplan.engine.groups.groups import Groups
from stowplan.framework.group import UNKNOWN
from stowplan.objects.disruption import importance
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget

MOST_ORDERS = 5  # that are looked at for one more choice of sets, on average


class VictimSet:
    """Pods that are evicted together, the most important first, and the priority by which they are preempted."""

    __slots__ = ("pods", "priority")

    def __init__(self, priority: int, *pods: Pod) -> None:
        self.priority, self.pods = priority, list(pods)

    def __iter__(self) -> Iterator[Pod]:
        return iter(self.pods)


class VictimSets:
    """The pods on nodes below this priority, without those of `preemptor`.

    `evicting`: uids of pods whose eviction was requested. `preemptor`: the name of the group that preempts.
    """

    def __init__(
        self, state: ClusterState, groups: Groups, evicting: Container[str], priority: int, preemptor: str = ""
    ) -> None:
        self._state, self._groups = state, groups
        self.leaving = leaving(state, groups, evicting, priority, preemptor)
        gone = {pod.uid for pod in self.leaving}
        lower = [pod for pod in preemptible(state, groups, priority, preemptor) if pod.uid not in gone]
        self.all = self._together(sorted(lower, key=self._importance))

    def _importance(self, pod: Pod) -> tuple[int, datetime]:
        return -self._groups.victim_priority(pod), importance(pod)[1]

    def _together(self, pods: Iterable[Pod]) -> list[VictimSet]:
        sets: dict[str, VictimSet] = {}
        for pod in pods:  # the most important first
            found, priority = self._groups.of(pod.uid), self._groups.victim_priority(pod)
            needed = 0 if found is None else _needed(found)
            whole = VictimSet(priority)
            if found is not None and needed > 0:
                whole = sets.setdefault(found.group.name, whole)
            whole.pods.append(pod)
            if len(whole.pods) > needed:
                sets[pod.uid] = VictimSet(priority, pod)
        return list(sets.values())[::-1]

    def affordable(self, sets: Sequence[VictimSet]) -> list[VictimSet]:
        """The sets that can all be evicted within disruption budgets; earlier sets use the budgets first."""
        if not self._state.store.every(PodDisruptionBudget):
            return list(sets)
        left, counted = Counter[str](), set[str]()
        left.subtract(self._already_used)
        found: list[VictimSet] = []
        for each in sets:
            used = self._used(each, counted)
            if all(left[key] + self._allowed(key) >= amount for key, amount in used.items()):
                left.subtract(used)
                counted.update(pod.uid for pod in each)
                found.append(each)
        return found

    def choices(self, sets: Sequence[VictimSet], most: int) -> Iterator[list[VictimSet]]:
        """Different choices of sets that can all be evicted within disruption budgets: at most so many.

        Earlier sets use the budgets first. Then each other set is the first to use them, then each two of them …
        """
        contested = self._contested(sets)
        found: set[frozenset[int]] = set()
        orders = (first for count in range(len(contested) + 1) for first in combinations(contested, count))
        for first in islice(orders, MOST_ORDERS * most):
            before = {id(each) for each in first}
            later = [each for each in contested if id(each) not in before]
            left_out = {id(each) for each in contested} - {id(each) for each in self.affordable([*first, *later])}
            if frozenset(left_out) not in found:
                found.add(frozenset(left_out))
                yield [each for each in sets if id(each) not in left_out]
            if len(found) == most:
                return

    def _contested(self, sets: Sequence[VictimSet]) -> list[VictimSet]:
        """The sets that use a budget which does not allow the eviction of all sets."""
        wanted = self._used(pods_of(sets).values(), ())
        short = {key for key in wanted if wanted[key] + self._already_used[key] > self._allowed(key)}
        return [each for each in sets if not short.isdisjoint(self._used(each, ()))]

    @cached_property
    def _already_used(self) -> Counter[str]:
        """Used by requested evictions. Terminating pods are already counted by their budgets."""
        return self._used((pod for pod in self.leaving if not pod.terminating), ())

    def _used(self, pods: Iterable[Pod], counted: Container[str]) -> Counter[str]:
        """How much of which budgets these evictions use, without pods that are already counted."""
        budgets = self._state.store.budgets_of
        pairs = ((pod, budget) for pod in pods if pod.uid not in counted for budget in budgets(pod))
        return Counter(budget.key for pod, budget in pairs if pod.name not in budget.status.disrupted_pods)

    def _allowed(self, key: str) -> int:
        budget = self._state.store.get(PodDisruptionBudget, key)
        return 0 if budget is None else budget.status.disruptions_allowed


def _needed(found: GroupState) -> int:
    """How many members of a group stay or go together: the others are evicted one by one."""
    if found.group.disruption:
        return UNKNOWN if found.all_together else 0
    return found.group.minimum - found.group.slots if found.below_minimum(0) else 0


def preemptible(state: ClusterState, groups: Groups, priority: int, preemptor: str = "") -> Iterator[Pod]:
    """The pods on nodes that a group of this priority may preempt; its own never."""
    placed = (each.pod for each in state.pods.values())
    lower = (pod for pod in placed if groups.victim_priority(pod) < priority)
    return (pod for pod in lower if not preemptor or groups.name_of(pod.uid) != preemptor)


def leaving(
    state: ClusterState, groups: Groups, evicting: Container[str], priority: int, preemptor: str = ""
) -> list[Pod]:
    """The pods on nodes below this priority that are terminating, or whose eviction was requested."""

    def leaves(pod: Pod) -> bool:
        found = groups.of(pod.uid)
        return pod.terminating or pod.uid in evicting or (found is not None and pod.uid in found.evicting)

    return [pod for pod in preemptible(state, groups, priority, preemptor) if leaves(pod)]


def pods_of(sets: Iterable[Iterable[Pod]]) -> dict[str, Pod]:
    """The pods of these sets by uid, each once."""
    return {pod.uid: pod for each in sets for pod in each}
