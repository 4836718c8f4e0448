"""Room that is kept for groups with minResources, in the cluster as a whole.

A group for which pods are evicted waits with nominated nodes. They keep the room that its pods request. But its
minResources may be more than that: without more, other pods would take the rest, and pods would have been evicted for
a group that cannot run. So pods do not get their nodes if less than minResources would be left, counted as if the pods
that are leaving were gone.

Like a nomination, this holds against pods of equal or lower priority. It lasts as long as the group has nominated
nodes, and follows from them alone: nothing is remembered here, so it is the same after a restart.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from stowplan.columns.state import ClusterState
from stowplan.columns.trial import without_pods
from stowplan.engine.groups.group import GroupState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.preemption.capacity_check import shortage, still_wanted
from stowplan.engine.preemption.victim_sets import leaving
from stowplan.objects.pods import Pod


class MinResourcesHold:
    """`evicting`: uids of pods whose eviction was requested, and that are still there."""

    def __init__(self, state: ClusterState, groups: Groups, evicting: Container[str]) -> None:
        self._state, self._groups, self._evicting = state, groups, evicting

    @property
    def in_force(self) -> bool:
        """True if room may be kept for any group."""
        return any(True for _ in self._waiting())

    def holds(self, group: str) -> bool:
        """True if this group keeps more room than its nominations do."""
        return any(found.group.name == group and _beyond(found, pods, self._state) for found, pods in self._waiting())

    def refusal(self, pods: Sequence[Pod], group: str = "") -> str:
        """Why these pods, which are on their nodes in the state as it is, must not stay there; empty if they may.

        `group`: the group that they are members of.
        """
        requested = {name for pod in pods for name, amount in pod.shape.request.items() if amount}
        priority = max(pod.priority for pod in pods)
        for found, nominated in self._waiting():
            if found.group.name == group or nominated[0].priority < priority:
                continue
            names = requested & _beyond(found, nominated, self._state)
            if names.isdisjoint(shortage(found, self._state)):
                continue
            gone = leaving(self._state, self._groups, self._evicting, nominated[0].priority)
            with without_pods(self._state, [pod.uid for pod in gone]):
                short = shortage(found, self._state)
            for name in sorted(names & short.keys()):
                wanted = f"{short[name][0]} of {name} must be free (minResources)"
                return f"room is kept for pod group {found.group.name}: {wanted}"
        return ""

    def _waiting(self) -> Iterator[tuple[GroupState, list[Pod]]]:
        """The groups with minResources that have nominated nodes, with their nominated pods."""
        nominated: dict[str, list[Pod]] = {}
        for pods in self._state.nominated_pods.by_node.values():
            for uid, pod in pods.items():
                found = self._groups.of(uid)
                if found is not None and found.group.resources:
                    nominated.setdefault(found.group.name, []).append(pod)
        for name, members in nominated.items():
            found = self._groups.get(name)
            if found is not None:
                yield found, members


def _beyond(found: GroupState, nominated: Sequence[Pod], state: ClusterState) -> set[str]:
    """The resources of which the group wants more to be free than its nominated pods request."""
    return {
        name
        for name, amount in still_wanted(found, state).items()
        if amount > sum(pod.shape.request.get(name, 0) for pod in nominated)
    }
