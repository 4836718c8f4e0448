"""Who must go besides those who are evicted: a group that too few would be left of goes whole, wherever its pods are.

Preemption asks before it chooses, so that a node is judged by all who would have to go for it. Only pods that matter
less than the one for whom room is made go along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stowplan.columns.state import ClusterState
from stowplan.engine.groups.groups import Groups, Members
from stowplan.framework.verdict import Candidate
from stowplan.objects.disruption import Budgets, importance
from stowplan.objects.pods import Pod


class GroupVictims:
    def __init__(self, state: ClusterState, groups: Groups) -> None:
        self._state, self._groups = state, groups
        self._budgets = Budgets(state.store.budgets_of)

    def of(self, victims: Sequence[Pod], priority: int) -> list[Pod]:
        """The others who go if these do, for the sake of a pod of this priority; the most important first."""
        chosen = {pod.uid for pod in victims}
        books = {id(members): members for pod in victims if (members := self._groups.of(pod.uid)) is not None}
        others = (pod for members in books.values() for pod in self._rest(members, chosen))
        return sorted((pod for pod in others if pod.priority < priority), key=lambda pod: (importance(pod), pod.uid))

    def _rest(self, members: Members, chosen: set[str]) -> Iterator[Pod]:
        """The members that would be left, if they would be too few."""
        left = {*members.bound, *members.on_their_way} - chosen
        if members.too_few(len(left)):
            yield from (placed.pod for uid in left if (placed := self._state.pods.get(uid)) is not None)

    def join(self, pod: Pod, candidates: list[Candidate]) -> list[Candidate]:
        """Candidates for this pod with everybody who goes; the very same ones where no victim is in a group."""
        victims = (victim.uid for each in candidates for victim in each.victims)
        if next(iter(self._groups), None) is None or not any(map(self._groups.of, victims)):
            return candidates
        return [self._joined(each, self.of(each.victims, pod.priority)) for each in candidates]

    def _joined(self, candidate: Candidate, others: Iterable[Pod]) -> Candidate:
        """Budgets are spent on the node's own victims first, as kube-scheduler counts them."""
        added = {pod.uid for pod in others}
        if not added:
            return candidate
        everybody = [*candidate.victims, *others]
        violating, _ = self._budgets.split(everybody, lambda pod: pod)
        violations = candidate.violations + sum(pod.uid in added for pod in violating)
        return Candidate(candidate.node, tuple(sorted(everybody, key=importance)), violations)
