"""The book of pod groups: who belongs to each, how many are needed, and how many of them have a node.

A plugin says which group a pod is in (`group_of`); who is there is counted here, for all plugins alike. Members that
have ended, or are on their way out, do not count. A group is remembered for a while after its last member went, so that
people can still look it up.

    missing      pods that must get a node together before any of them may
    half-bound   some have a node, too few, and others that were there then have none: by a binding that failed, or
                 because a scheduler died in between. Members that came later only take the place of lost ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TypeAlias

from stowplan.framework.interfaces import UNKNOWN, Group
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

REMEMBERED = 600.0  # seconds after the last member went
MOST_REMEMBERED = 10_000

GroupOf: TypeAlias = Callable[[Pod], Group | None]


class Members:
    """One group, and its pods that have neither ended nor gone."""

    __slots__ = (
        "_by_age", "begun", "bound", "errors", "failed_at", "first", "going", "group", "leaving", "on_their_way",
        "pods", "satisfied", "since", "told", "updated",
    )  # fmt: skip

    def __init__(self, group: Group, first: Pod, now: float) -> None:
        self.group = group
        self.first = first  # the oldest member: the others must agree with it
        self.pods: dict[str, Pod] = {}
        self._by_age: list[tuple[float, str]] = []  # a heap; some of them may be gone
        self.bound: dict[str, None] = {}  # uids of those that are on a node, and not on their way out
        self.on_their_way: dict[str, None] = {}  # of those that were given one
        self.leaving: dict[str, None] = {}  # of those that were bound, and are told to go
        self.going: dict[str, None] = {}  # of those of them that the server lets go
        self.since = self.updated = now
        self.satisfied = False  # it had enough members on nodes at some time
        self.begun = False  # we gave the first of them a node: so we know whether it was ever satisfied
        self.errors = 0  # times in a row that something went wrong, until it has enough members on nodes
        self.failed_at = now  # the last time
        self.told: dict[str, str] = {}  # what its waiting members were told last, by uid

    @property
    def placed(self) -> int:
        """Members that have a node, bound or on their way to it, and places that are held for some to come."""
        return self.group.slots + len(self.bound) + len(self.on_their_way)

    def too_few(self, number: int) -> bool:
        """Are so many of its pods on nodes not enough? Where nobody says how many it takes, they are."""
        return self.group.minimum < UNKNOWN and self.group.slots + number < self.group.minimum

    @property
    def all_go(self) -> bool:
        """Is there nobody left who is not on the way out?"""
        nobody = not self.bound and not self.on_their_way
        return nobody and all(pod.terminating for pod in self.pods.values())

    @property
    def in_part(self) -> bool:
        """Some got through, and it was never whole."""
        return bool(self.bound or self.on_their_way) and not self.satisfied

    @property
    def created(self) -> datetime | None:
        """The moment by which groups are ordered: that of the group's own object, else of its oldest member."""
        return self.group.created or self.first.metadata.creation_timestamp

    @property
    def agreed(self) -> object:
        """What makes a member odd, if it says something else."""
        return self.first.scheduler_name, self.group.minimum, self.first.priority

    def take_in(self, pod: Pod) -> None:
        if pod.uid not in self.pods:
            heapq.heappush(self._by_age, _age(pod))
        self.pods[pod.uid] = pod

    def oldest(self) -> Pod:
        """There must be one."""
        if len(self._by_age) > 2 * len(self.pods) + 8:
            self._by_age = sorted(map(_age, self.pods.values()))
        while self._by_age[0][1] not in self.pods:
            heapq.heappop(self._by_age)
        return self.pods[self._by_age[0][1]]

    def odd(self, pod: Pod, group: Group) -> str:
        """Why a pod cannot be a member: it says something else than the oldest one; nothing if it can."""
        if pod.scheduler_name != self.first.scheduler_name:
            return f"pod group {group.name} is of scheduler {self.first.scheduler_name}, not of this pod's"
        if group.minimum != self.group.minimum:
            return f"pod group {group.name} needs {self.group.minimum} pods, but this pod says {group.minimum}"
        if pod.priority != self.first.priority:
            return f"pod group {group.name} has priority {self.first.priority}, but this pod has {pod.priority}"
        return ""


class Groups:
    def __init__(self, group_of: GroupOf) -> None:
        self._group_of = group_of
        self._books: dict[str, Members] = {}
        self._name_of: dict[str, str] = {}  # the group of each pod
        self._empty: dict[str, float] = {}  # groups without members, and since when, the oldest first
        self.changed: dict[str, None] = {}  # groups to be looked at

    def __iter__(self) -> Iterator[Members]:
        return iter(self._books.values())

    def remembered(self, now: float) -> Iterator[Members]:
        """The groups that `forget` would keep. Nothing is forgotten by asking."""
        return (each for name, each in self._books.items() if now - self._empty.get(name, now) < REMEMBERED)

    def get(self, name: str) -> Members | None:
        return self._books.get(name)

    def of(self, uid: str) -> Members | None:
        """The group of a pod that we heard of."""
        return self._books.get(self._name_of.get(uid, ""))

    def name_of(self, uid: str) -> str:
        """Its name; nothing for a pod of none."""
        return self._name_of.get(uid, "")

    # -- what happens

    def clear(self) -> None:
        """Groups are told by other plugins from now on."""
        for book in (self._books, self._name_of, self._empty, self.changed):
            book.clear()

    def heard(self, pod: Pod, out: bool, now: float) -> None:
        """A pod came, changed or went."""
        try:
            group = None if out else self._group_of(pod)
        except PluginError:
            group = None  # its profile says so when the pod is tried
        before = self._name_of.get(pod.uid, "")
        if before and (group is None or group.name != before):
            self._leave(pod, before, now)
        members = None if group is None else self._books.get(group.name)
        if members is not None and members.pods and members.first.scheduler_name != pod.scheduler_name:
            group = None  # it is told so (`Admission.submit`)
        if group is not None:
            self._join(pod, group, now)

    def _join(self, pod: Pod, group: Group, now: float) -> None:
        members = self._books.get(group.name)
        if members is None:
            members = self._books[group.name] = Members(group, pod, now)
        if not members.pods or pod.uid == members.first.uid or _age(pod) < _age(members.first):
            members.first, members.group = pod, group
        members.take_in(pod)
        members.updated = now
        self.changed[group.name] = None
        self._name_of[pod.uid] = group.name
        self._empty.pop(group.name, None)
        if pod.node_name:
            members.on_their_way.pop(pod.uid, None)
            if pod.terminating or pod.uid in members.leaving:
                members.bound.pop(pod.uid, None)
            else:
                members.bound[pod.uid] = None
            _count(members, group)
            if members.all_go:
                members.satisfied = members.begun = False  # whoever comes is another group

    def _leave(self, pod: Pod, name: str, now: float) -> None:
        members = self._books[name]
        members.pods.pop(pod.uid, None)
        for uids in (members.bound, members.on_their_way, members.leaving, members.going):
            uids.pop(pod.uid, None)
        members.updated = now
        del self._name_of[pod.uid]
        self.changed[name] = None
        if not members.pods:
            self._empty[name] = now
            members.satisfied = members.begun = False  # whoever comes by this name is another group
            members.told = {}
        elif members.first.uid == pod.uid:
            members.first = members.oldest()
        self.forget(now)

    def given_a_node(self, uid: str) -> None:
        members = self.of(uid)
        if members is not None and uid not in members.bound:
            if not members.bound and not members.on_their_way:  # it begins, or begins anew after all of it was lost
                members.begun = True
                members.satisfied = members.satisfied and members.group.match == "once-satisfied"
            members.on_their_way[uid] = None

    def came_back(self, uid: str) -> None:
        """The pod does not get the node that it was given."""
        members = self.of(uid)
        if members is not None:
            members.on_their_way.pop(uid, None)
            self.changed[members.group.name] = None

    def told_to_go(self, uid: str) -> None:
        """The pod counts no more, though it is still there."""
        members = self.of(uid)
        if members is not None and uid in members.bound:
            del members.bound[uid]
            members.leaving[uid] = None

    def goes(self, uid: str) -> None:
        """The server lets it go."""
        members = self.of(uid)
        if members is not None and uid in members.leaving:
            members.going[uid] = None

    def stays(self, uid: str) -> None:
        """It does not go after all."""
        members = self.of(uid)
        if members is not None and uid in members.leaving:
            del members.leaving[uid]
            members.going.pop(uid, None)
            members.bound[uid] = None
            self.changed[members.group.name] = None

    def forget(self, now: float) -> None:
        """Groups whose last member went long ago, or too many of them ago."""
        while self._empty:
            name, since = next(iter(self._empty.items()))
            if now - since < REMEMBERED and len(self._empty) <= MOST_REMEMBERED:
                return
            del self._empty[name], self._books[name]

    def told_anew(self, members: Members, group: Group) -> None:
        """How many it takes may have changed."""
        if group != members.group:
            self.changed[group.name] = None
        members.group = group
        _count(members, group)

    def failed(self, name: str, errors: int, now: float) -> None:
        """Something went wrong with the group so many times in a row; whoever waits of it then knows by this."""
        members = self._books.get(name)
        if members is not None:
            members.errors, members.failed_at = errors, now

    # -- how it stands

    def missing(self, name: str) -> int:
        """How many more must get a node, all of them at once."""
        members = self._books.get(name)
        if members is None:
            return 0
        group = members.group
        if members.satisfied and group.match == "once-satisfied":
            return 0
        lost = group.match == "only-waiting" and self.half_bound(members) is None
        return max(group.minimum - (group.slots if lost else members.placed), 0)

    def half_bound(self, members: Members) -> tuple[list[Pod], list[Pod]] | None:
        """Who has a node and who was left behind, if the group is in this state. One that was whole before is not: it
        has lost members. Nor is one of which nobody says how many it takes: its PodGroup is gone.
        """
        short = members.too_few(len(members.bound) + len(members.on_their_way))
        if not members.bound or members.satisfied or not short:
            return None
        bound = [members.pods[uid] for uid in members.bound]
        starts = [pod.status.start_time for pod in bound]
        moments = [each for each in starts if each is not None]
        last = max(moments) if len(moments) == len(starts) and not members.begun else None
        placed = members.bound | members.on_their_way | members.leaving
        others = (pod for uid, pod in members.pods.items() if uid not in placed)
        behind = [pod for pod in others if not pod.terminating and (last is None or not _later(pod, last))]
        return (bound, behind) if behind else None


def _count(members: Members, group: Group) -> None:
    """Does it have enough members on nodes now?"""
    if group.slots + len(members.bound) >= group.minimum:
        members.satisfied, members.errors = True, 0


def _age(pod: Pod) -> tuple[float, str]:
    created = pod.metadata.creation_timestamp
    return (created.timestamp() if created is not None else float("inf")), pod.uid


def _later(pod: Pod, moment: datetime) -> bool:
    created = pod.metadata.creation_timestamp
    return created is not None and created > moment
