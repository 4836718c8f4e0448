"""Who could be made to go for a group: pods that matter less, in lots that go together, the least important first.

As many members of another group as it needs are a lot with all the others of it; those beyond that number may also go
by themselves. Pods that are on their way out, or were told to go and are not seen leaving yet, go anyway: they are in
no lot, and have spent what their disruption budgets allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from typing import TypeAlias

from stowplan.columns.state import ClusterState
from stowplan.engine.groups.groups import Groups
from stowplan.objects.disruption import importance
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget

VictimSet: TypeAlias = list[Pod]  # the most important first


class VictimSets:
    """The pods on nodes that matter less than this priority; `told`: uids of those that were told to go."""

    def __init__(self, state: ClusterState, groups: Groups, told: Container[str], priority: int) -> None:
        self._state, self._groups, self._told = state, groups, told
        lesser = [placed.pod for placed in state.pods.values() if placed.pod.priority < priority]
        self.leaving = [pod for pod in lesser if self._leaves(pod)]
        gone = {pod.uid for pod in self.leaving}
        self.all = self._together(sorted((pod for pod in lesser if pod.uid not in gone), key=importance))

    def _leaves(self, pod: Pod) -> bool:
        members = self._groups.of(pod.uid)
        return pod.terminating or pod.uid in self._told or (members is not None and pod.uid in members.leaving)

    def _together(self, pods: Iterable[Pod]) -> list[VictimSet]:
        lots: dict[str, VictimSet] = {}
        for pod in pods:  # the most important first
            members = self._groups.of(pod.uid)
            needed = members.group.minimum - members.group.slots if members is not None and members.too_few(0) else 0
            whole = lots.setdefault(members.group.name, []) if members is not None and needed > 0 else []
            whole.append(pod)
            if len(whole) > needed:
                lots[pod.uid] = [pod]
        return list(lots.values())[::-1]

    def affordable(self, lots: Sequence[VictimSet]) -> list[VictimSet]:
        """Those that can all go without violating a budget; who comes first has the first say."""
        if not self._state.store.every(PodDisruptionBudget):
            return list(lots)
        left, gone = Counter[str](), set[str]()
        left.subtract(self._spent_already)
        found: list[VictimSet] = []
        for lot in lots:
            spent = self._spent(lot, gone)
            if all(left[key] + self._allowed(key) >= amount for key, amount in spent.items()):
                left.subtract(spent)
                gone.update(pod.uid for pod in lot)
                found.append(lot)
        return found

    @cached_property
    def _spent_already(self) -> Counter[str]:
        """By those who were told to go; of those who are seen leaving budgets know themselves."""
        return self._spent((pod for pod in self.leaving if not pod.terminating), ())

    def _spent(self, lot: Iterable[Pod], gone: Container[str]) -> Counter[str]:
        """How much of which budgets it takes to evict these, apart from those that have gone with another lot."""
        budgets = self._state.store.budgets_of
        pods = (pod for pod in lot if pod.uid not in gone)
        spent = ((pod, budget) for pod in pods for budget in budgets(pod))
        return Counter(budget.key for pod, budget in spent if pod.name not in budget.status.disrupted_pods)

    def _allowed(self, key: str) -> int:
        budget = self._state.store.get(PodDisruptionBudget, key)
        return 0 if budget is None else budget.status.disruptions_allowed


def everybody(lots: Iterable[VictimSet]) -> dict[str, Pod]:
    """The pods of these lots by uid, each once."""
    return {pod.uid: pod for lot in lots for pod in lot}
