"""How many members of a group can fit at most, if some pods were not there? A quick check by resources.

No more than that fit, for certain. Fewer may.

The check compares what members need (`needs_free`) with the room that would be free: how many pods of each shape every
node could take, and whether all nodes together have what the least demanding members need. Members that their own
anti-affinity keeps apart need a domain each. Nodes that rejected such a pod for what the node is, whatever runs there,
do not count. Held room does count, since it may be held for the members.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.table import ABSENT
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.groups.group import GroupState
from stowplan.engine.unit import Unit
from stowplan.framework.decision import UNRESOLVABLE, Decision
from stowplan.framework.group import SlotPods
from stowplan.framework.plugin_calls import call
from stowplan.framework.profile import Profile
from stowplan.objects.affinity import AffinityTerm
from stowplan.objects.pods import Pod
from stowplan.objects.shape import Shape

Amounts = dict[str, int]


class CapacityCheck:
    """`decisions`: those about members that were tried. `slots`: pods that do not exist yet and must all fit, too."""

    def __init__(
        self,
        state: ClusterState,
        unit: Unit,
        members: GroupState | None,
        profile: Profile,
        decisions: Iterable[Decision],
        slots: Iterable[SlotPods] = (),
    ) -> None:
        self._state = state
        self._number = Counter(pod.shape for pod in unit.ready)
        self._slots = 0
        for each in slots:
            self._slots += each.number
            self._number[each.example.shape] += each.number
        self._wants = {shape: _wanted(shape.pod, profile) for shape in self._number}
        self._apart = Counter(term for pod in unit.ready for term in _keeping_apart(pod, profile, state))
        self._with_term = {term: [s for s in self._number if term in s.required_anti_affinity] for term in self._apart}
        decided = {each.pod.shape: each for each in decisions}
        self._closed = {shape: _closed(each, profile) for shape, each in decided.items()}
        self._at_least = {} if members is None else still_wanted(members, state)
        names = dict.fromkeys((*self._at_least, *(name for wants in self._wants.values() for name in wants)))
        self._free = {name: self._unused(name) for name in names}
        self._sums = {name: self._least(name) for name in names}

    def most(self, without: Iterable[Pod]) -> int:
        """How many members fit without these pods, at most; 0 without the room that the group needs in all."""
        room = self._room(without)
        if any(int(room[name].sum()) < amount for name, amount in self._at_least.items()):
            return 0
        fitting = sum(min(number, self._fits(shape, room)) for shape, number in self._number.items())
        in_all = (bisect_right(self._sums[name], int(free.sum())) for name, free in room.items())
        apart = (self._fit_apart(term, room) for term in self._apart)
        return max(min((fitting, self._fit_anyhow(room), *in_all, *apart)) - self._slots, 0)

    def _fits(self, shape: Shape, room: Mapping[str, Ints]) -> int:
        """How many pods of this shape fit, if no others do."""
        times = self._times(shape, room)
        return self._number[shape] if times is None else int(times.sum())

    def _times(self, shape: Shape, room: Mapping[str, Ints]) -> Ints | None:
        """How often a pod of this shape fits on each live row; None if it needs nothing."""
        wants = self._wants[shape]
        if not wants:
            return None
        times: Ints = np.minimum.reduce([room[name] // amount for name, amount in wants.items()])
        closed = self._closed.get(shape)
        return times if closed is None or len(closed) != len(times) else np.where(closed, 0, times)

    def _fit_apart(self, term: AffinityTerm, room: Mapping[str, Ints]) -> int:
        """How many members fit, if those that this term keeps apart take one domain each, and the others fit."""
        fits = [self._times(shape, room) for shape in self._with_term[term]]
        if any(times is None for times in fits):
            return self._number.total()
        times = np.add.reduce([each for each in fits if each is not None])
        table = self._state.table
        codes = table.label(term.topology_key).codes[table.live_rows()]
        domains = np.unique(codes[(times > 0) & (codes != ABSENT)])
        number, unlabelled = self._apart[term], int(times[codes == ABSENT].sum())  # these are no domain
        return self._number.total() - number + min(number, len(domains) + unlabelled)

    def _fit_anyhow(self, room: Mapping[str, Ints]) -> int:
        """How many pods fit, if each needed only as much of every resource as the least demanding member."""
        common = set.intersection(*(set(wants) for wants in self._wants.values()))
        if not common:
            return self._number.total()
        least = {name: min(wants[name] for wants in self._wants.values()) for name in common}
        times = np.minimum.reduce([room[name] // amount for name, amount in least.items()])
        closed = [self._closed.get(shape) for shape in self._number]
        known = [each for each in closed if each is not None and len(each) == len(times)]
        if len(known) < len(closed):
            return int(times.sum())
        return int(times[~np.logical_and.reduce(known)].sum())

    def _least(self, name: str) -> list[int]:
        """What the one, two, three … members that need least of a resource need together."""
        return list(accumulate(sorted(self._wants[shape].get(name, 0) for shape in self._number.elements())))

    # -- the room

    def _unused(self, name: str) -> Ints:
        """What is free of a resource, on each row."""
        table = self._state.table
        if name not in table.allocatable:
            return np.zeros(table.capacity, np.int64)
        free: Ints = table.allocatable[name] - table.requested[name]
        for node_name, amounts in self._state.held.values():
            free[table.row_of[node_name]] += amounts.get(name, 0)
        return free

    def _room(self, without: Iterable[Pod]) -> dict[str, Ints]:
        """What is free on live rows without these pods."""
        placed = [self._state.pods[pod.uid] for pod in without]
        rows = np.fromiter((each.row for each in placed), np.int64, len(placed))
        number: dict[Shape, int] = {}
        codes = np.fromiter((number.setdefault(each.shape, len(number)) for each in placed), np.int64, len(placed))
        taken = [dict(shape.taken) for shape in number]
        live, found = self._state.table.live_rows(), {}
        for name, free in self._free.items():
            room = free.copy()
            if placed:
                np.add.at(room, rows, np.array([each.get(name, 0) for each in taken], np.int64)[codes])
            found[name] = np.maximum(room[live], 0)
        return found


def _keeping_apart(pod: Pod, profile: Profile, state: ClusterState) -> Iterator[AffinityTerm]:
    """The terms that keep the pod apart from others like itself, as far as filters can say."""
    for enabled in profile.keeps_apart_filters:
        yield from call(enabled, enabled.plugin.keeps_apart, pod, Cluster(state))


def _wanted(pod: Pod, profile: Profile) -> Amounts:
    """What must be free on a node for this pod, as far as filters can say."""
    wanted: Amounts = {}
    for enabled in profile.needs_free_filters:
        wanted |= dict(call(enabled, enabled.plugin.needs_free, pod))
    return {name: amount for name, amount in wanted.items() if amount > 0}


def _closed(decision: Decision, profile: Profile) -> Bools:
    """Per live row: True if the node rejects such a pod, whatever runs there."""
    by_node = {enabled.name for enabled in profile.filters if _judges_nodes(enabled.plugin)}
    verdicts: Sequence[bool] = [
        verdict.code == UNRESOLVABLE and verdict.plugin in by_node for verdict in decision.trail.verdicts
    ]
    closed: Bools = np.array([*verdicts, False, False], np.bool_)[decision.trail.verdict_of]  # UNSEEN and FEASIBLE last
    return closed


def _judges_nodes(plugin: object) -> bool:
    """True if a filter looks only at the pod's template and the node's object."""
    return getattr(plugin, "local", "") == "node" and getattr(plugin, "filters_by_row", False) is True


# -- minResources: what must be free before a group is attempted


def lacking(members: GroupState | None, state: ClusterState) -> str:
    """Which of the group's minResources are not free, as a message; its own pods on nodes count as free."""
    if members is None or not members.group.resources:
        return ""
    short = [f"{amount} of {name}, {free} are" for name, (amount, free) in shortage(members, state).items()]
    return f"pod group {members.group.name} needs {'; '.join(short)} free (minResources)" if short else ""


def shortage(members: GroupState, state: ClusterState) -> dict[str, tuple[int, int]]:
    """Which of the group's minResources are not free: how much it wants and how much is free, by resource."""
    table, wanted = state.table, members.group.resources.items()
    free = {name: table.free_in_all(name) + _own_amount(members, state, name) for name, _ in wanted}
    return {name: (amount, free[name]) for name, amount in wanted if free[name] < amount}


def still_wanted(members: GroupState, state: ClusterState) -> Amounts:
    """The minResources that the group's own pods do not use yet."""
    wanted = members.group.resources.items()
    return {name: amount - _own_amount(members, state, name) for name, amount in wanted}


def _own_amount(members: GroupState, state: ClusterState, name: str) -> int:
    """What the group's members on nodes request of a resource."""
    own = (placed.shape.request for uid in members.pods if (placed := state.pods.get(uid)) is not None)
    return sum(request.get(name, 0) for request in own)


def resource_plugins(profile: Profile) -> frozenset[str]:
    """The filters that look at free resources: what helps a pod that they rejected helps the group."""
    plugins = profile.needs_free_filters or profile.filters or profile.group_plugins
    return frozenset(enabled.name for enabled in plugins)
