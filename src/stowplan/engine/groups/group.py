"""One pod group: its pods, how many it needs, and how many of them have a node."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from datetime import datetime

from stowplan.framework.group import ALL_TOGETHER, ONE_BY_ONE, UNKNOWN, Group
from stowplan.objects.pods import Pod


class GroupState:
    """A group and its pods that have neither finished nor been deleted."""

    __slots__ = (
        "_by_age", "assumed", "bound", "errors", "evicted", "evicting", "failed_at", "first", "group", "messages",
        "observed", "pods", "satisfied", "since", "torn", "updated",
    )  # fmt: skip

    def __init__(self, group: Group, first: Pod, now: float) -> None:
        self.group = group
        self.first = first  # the oldest member: the others must agree with it
        self.pods: dict[str, Pod] = {}
        self._by_age: list[tuple[float, str]] = []  # a heap, which may still list removed members
        self.bound: dict[str, None] = {}  # uids of members that have a node and are not terminating
        self.assumed: dict[str, None] = {}  # uids of members in their binding cycle
        self.evicting: dict[str, None] = {}  # uids of bound members whose eviction was requested
        self.evicted: dict[str, None] = {}  # those of them whose eviction the API server accepted
        self.torn = False  # a member of a group that is evicted only as a whole was evicted
        self.since = self.updated = now
        self.satisfied = False  # the group had enough bound members at some time
        self.observed = False  # we bound the first member, so `satisfied` is known to be right
        self.errors = 0  # errors in a row, until the group is satisfied
        self.failed_at = now  # when the last of them happened
        self.messages: dict[str, str] = {}  # the last message to each gated member, by uid

    @property
    def placed(self) -> int:
        """Members that are bound or assumed, and slots that are held for members still to come."""
        return self.group.slots + len(self.bound) + len(self.assumed)

    def below_minimum(self, members: int) -> bool:
        """True if so many members on nodes are fewer than the group needs. False if its minimum is unknown."""
        return self.group.minimum < UNKNOWN and self.group.slots + members < self.group.minimum

    def preemptor_priority(self, members: Sequence[Pod]) -> int:
        """The priority by which the group preempts for these members."""
        own = self.group.priority
        return max(pod.priority for pod in members) if own is None else own

    @property
    def all_together(self) -> bool:
        """True if members are evicted all together or not at all."""
        return self.group.disruption == ALL_TOGETHER

    def falls(self, left: int, *, torn: bool) -> bool:
        """True if the members that are left on nodes must be evicted, too: so many, after others were (`torn`)."""
        if self.group.disruption:
            return torn and self.group.disruption != ONE_BY_ONE
        return self.below_minimum(left)

    @property
    def all_terminating(self) -> bool:
        return not self.bound and not self.assumed and all(pod.terminating for pod in self.pods.values())

    @property
    def partially_bound(self) -> bool:
        """True if some members have a node and the group was never satisfied."""
        return bool(self.bound or self.assumed) and not self.satisfied

    @property
    def created(self) -> datetime | None:
        """The time by which groups are ordered: when its own object was created, else its oldest member."""
        return self.group.created or self.first.metadata.creation_timestamp

    @property
    def agreed(self) -> object:
        """What all members must have in common."""
        priority = self.first.priority if self.group.priority is None else None
        return self.first.scheduler_name, self.group.minimum, priority

    def add(self, pod: Pod) -> None:
        if pod.uid not in self.pods:
            heapq.heappush(self._by_age, age(pod))
        self.pods[pod.uid] = pod

    def oldest(self) -> Pod:
        """The oldest member; the group must have one."""
        if len(self._by_age) > 2 * len(self.pods) + 8:
            self._by_age = sorted(map(age, self.pods.values()))
        while self._by_age[0][1] not in self.pods:
            heapq.heappop(self._by_age)
        return self.pods[self._by_age[0][1]]

    def count(self, group: Group) -> None:
        """Note whether enough members are bound now, by what a member says about the group."""
        if group.slots + len(self.bound) >= group.minimum:
            self.satisfied, self.errors = True, 0

    def disagreement(self, pod: Pod, group: Group) -> str:
        """Why this pod cannot be a member: it differs from the oldest one. Empty if it can."""
        if pod.scheduler_name != self.first.scheduler_name:
            mine, theirs = pod.scheduler_name, self.first.scheduler_name
            return f"pod group {group.name} has schedulerName {theirs}, but this pod has {mine}"
        if group.minimum != self.group.minimum:
            return f"pod group {group.name} needs {self.group.minimum} pods, but this pod says {group.minimum}"
        if group.priority is None and pod.priority != self.first.priority:
            return f"pod group {group.name} has priority {self.first.priority}, but this pod has {pod.priority}"
        return ""

    def left_behind(self) -> tuple[list[Pod], list[Pod]] | None:
        """The bound members and the ones left behind, if the group is partially bound; else None.

        A group that was satisfied before has lost members instead. If its minimum is unknown, its PodGroup
        is gone.
        """
        short = self.below_minimum(len(self.bound) + len(self.assumed))
        if not self.bound or self.satisfied or not short:
            return None
        bound = [self.pods[uid] for uid in self.bound]
        starts = [pod.status.start_time for pod in bound]
        moments = [each for each in starts if each is not None]
        # Members created after the last one started only replace lost members; unless we bound the first one.
        last = max(moments) if len(moments) == len(starts) and not self.observed else None
        placed = self.bound | self.assumed | self.evicting
        others = (pod for uid, pod in self.pods.items() if uid not in placed)
        behind = [pod for pod in others if not pod.terminating and (last is None or not _created_after(pod, last))]
        return (bound, behind) if behind else None


def age(pod: Pod) -> tuple[float, str]:
    created = pod.metadata.creation_timestamp
    return (created.timestamp() if created is not None else float("inf")), pod.uid


def _created_after(pod: Pod, moment: datetime) -> bool:
    created = pod.metadata.creation_timestamp
    return created is not None and created > moment
