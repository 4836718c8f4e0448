"""Could a group fit at all, if some pods were not there? A quick look by resources, which never says no wrongly.

What members need to be free (`needs_free`) is compared with the room that would be there: how many of each shape every
node could take, and whether what the least demanding ones need is there in all. Nodes that refused such a pod by what
they are, whoever is there, do not count; room that is reserved does, since it may be for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.state import ClusterState
from stowplan.engine.groups.groups import Members
from stowplan.engine.queue.unit import Unit
from stowplan.framework.plugin_calls import ask
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import UNRESOLVABLE, Decision
from stowplan.objects.pods import Pod
from stowplan.objects.shape import Shape

Amounts = dict[str, int]


class Feasibility:
    """`decisions`: what was decided about members, as far as they were tried."""

    def __init__(
        self, state: ClusterState, unit: Unit, members: Members | None, profile: Profile, decisions: Iterable[Decision]
    ) -> None:
        self._state, self._needed = state, unit.needed
        self._number = Counter(pod.shape for pod in unit.ready)
        self._wants = {shape: _wanted(shape.pod, profile) for shape in self._number}
        told = {each.pod.shape: each for each in decisions}
        self._closed = {shape: _closed(each, profile) for shape, each in told.items()}
        self._at_least = {} if members is None else _still_wanted(members, state)
        names = dict.fromkeys((*self._at_least, *(name for wants in self._wants.values() for name in wants)))
        self._free = {name: self._unused(name) for name in names}
        self._in_all = {name: self._least(name) for name in names}

    def hopeless(self, gone: Iterable[Pod]) -> bool:
        """Is there no way even without these?"""
        room = self._room(gone)
        if any(int(room[name].sum()) < amount for name, amount in self._at_least.items()):
            return True
        fitting = sum(min(number, self._fits(shape, room)) for shape, number in self._number.items())
        if min(fitting, self._fit_anyhow(room)) < self._needed:
            return True
        return any(int(free.sum()) < self._in_all[name] for name, free in room.items())

    def _fits(self, shape: Shape, room: Mapping[str, Ints]) -> int:
        """How many pods of this shape there would be room for, if no others came."""
        wants = self._wants[shape]
        if not wants:
            return self._number[shape]
        times = np.minimum.reduce([room[name] // amount for name, amount in wants.items()])
        closed = self._closed.get(shape)
        return int(times.sum() if closed is None or len(closed) != len(times) else times[~closed].sum())

    def _fit_anyhow(self, room: Mapping[str, Ints]) -> int:
        """How many there would be room for, if each needed of everything only as much as the least demanding one."""
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

    def _least(self, name: str) -> int:
        """What those members need together that need least of a resource, as many as it takes."""
        amounts = sorted(self._wants[shape].get(name, 0) for shape in self._number.elements())
        return sum(amounts[: self._needed])

    # -- the room

    def _unused(self, name: str) -> Ints:
        """What nobody has of a resource, on each row."""
        table = self._state.table
        if name not in table.allocatable:
            return np.zeros(table.capacity, np.int64)
        free: Ints = table.allocatable[name] - table.requested[name]
        for node_name, amounts in self._state.held.values():
            free[table.row_of[node_name]] += amounts.get(name, 0)
        return free

    def _room(self, gone: Iterable[Pod]) -> dict[str, Ints]:
        """The same on live rows, and what these pods have besides."""
        placed = [self._state.pods[pod.uid] for pod in gone]
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


def _wanted(pod: Pod, profile: Profile) -> Amounts:
    """What must be free on a node for this pod, by the filters that can say so; nothing if none can."""
    wanted: Amounts = {}
    for bound in profile.at("filter"):
        if hasattr(bound.plugin, "needs_free"):
            wanted |= dict(ask(bound, "needs_free", pod))
    return {name: amount for name, amount in wanted.items() if amount > 0}


def _closed(decision: Decision, profile: Profile) -> Bools:
    """Per live row: is the node no place for such a pod, whoever is there?"""
    by_node = {bound.name for bound in profile.at("filter") if _judges_nodes(bound.plugin)}
    verdicts: Sequence[bool] = [
        verdict.code == UNRESOLVABLE and verdict.plugin in by_node for verdict in decision.trail.verdicts
    ]
    closed: Bools = np.array([*verdicts, False, False], np.bool_)[decision.trail.verdict_of]  # UNSEEN and FEASIBLE last
    return closed


def _judges_nodes(plugin: object) -> bool:
    """By the pod's template and the node's object alone?"""
    return getattr(plugin, "local", "") == "node" and getattr(plugin, "filters_by_row", False) is True


# -- what a group wants to be free before it is tried


def lacking(members: Members | None, state: ClusterState) -> str:
    """What of its minResources is not free; its own pods on nodes count."""
    if members is None or not members.group.resources:
        return ""
    short = []
    for name, amount in members.group.resources.items():
        free = state.table.free_in_all(name) + _own_amount(members, state, name)
        if free < amount:
            short.append(f"{amount} of {name}, {free} are")
    return f"pod group {members.group.name} needs {'; '.join(short)} free (minResources)" if short else ""


def _still_wanted(members: Members, state: ClusterState) -> Amounts:
    """How much of what must be free its own pods do not have."""
    wanted = members.group.resources.items()
    return {name: amount - _own_amount(members, state, name) for name, amount in wanted}


def _own_amount(members: Members, state: ClusterState, name: str) -> int:
    """What members of a group that are on nodes request of a resource."""
    own = (placed.shape.request for uid in members.pods if (placed := state.pods.get(uid)) is not None)
    return sum(request.get(name, 0) for request in own)
