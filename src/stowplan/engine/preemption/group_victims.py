"""Further victims: evicting a pod may leave its group below the minimum, and then the whole group is evicted.

A group may also say that its pods are disrupted one by one, or all together (`Group.disruption`).

Preemption asks before it chooses a node, so that a node is judged by all pods that would be evicted for it. Only pods
of lower priority than the preemptor become further victims. A node where a pod of a group must be evicted that is
disrupted only as a whole, and has a higher priority of its own, is no candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stowplan.columns.state import ClusterState
from stowplan.engine.groups.group import GroupState
from stowplan.engine.groups.groups import Groups
from stowplan.framework.decision import Candidate
from stowplan.objects.disruption import Budgets, importance
from stowplan.objects.pods import Pod


class GroupVictims:
    def __init__(self, state: ClusterState, groups: Groups) -> None:
        self._state, self._groups = state, groups
        self._budgets = Budgets(state.store.budgets_of)

    def of(self, victims: Sequence[Pod], priority: int) -> list[Pod]:
        """The pods to evict besides these victims, for a preemptor of this priority; the most important first."""
        chosen = {pod.uid for pod in victims}
        groups = {id(found): found for pod in victims if (found := self._groups.of(pod.uid)) is not None}
        others = (pod for found in groups.values() for pod in self._rest(found, chosen))
        lower = (pod for pod in others if self._groups.victim_priority(pod) < priority)
        return sorted(lower, key=lambda pod: (importance(pod), pod.uid))

    def _rest(self, found: GroupState, chosen: set[str]) -> Iterator[Pod]:
        """The remaining members, if they must not stay without the chosen ones."""
        left = {*found.bound, *found.assumed} - chosen
        if found.falls(len(left), torn=True):
            yield from (placed.pod for uid in left if (placed := self._state.pods.get(uid)) is not None)

    def join(self, pod: Pod, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """The allowed candidates, with all their victims; the same sequence if no victim is in a group."""
        victims = (victim.uid for each in candidates for victim in each.victims)
        if next(iter(self._groups), None) is None or not any(map(self._groups.of, victims)):
            return candidates
        allowed = (each for each in candidates if not self._protected(each, pod.priority))
        return [self._with_others(each, self.of(each.victims, pod.priority)) for each in allowed]

    def _protected(self, candidate: Candidate, priority: int) -> bool:
        return any(self._groups.victim_priority(victim) >= priority for victim in candidate.victims)

    def _with_others(self, candidate: Candidate, others: Iterable[Pod]) -> Candidate:
        """Disruption budgets are spent on the node's own victims first, as in kube-scheduler."""
        added = {pod.uid for pod in others}
        if not added:
            return candidate
        everybody = [*candidate.victims, *others]
        violating, _ = self._budgets.split(everybody, lambda pod: pod)
        violations = candidate.violations + sum(pod.uid in added for pod in violating)
        return Candidate(candidate.node, tuple(sorted(everybody, key=importance)), violations)
