"""A unit: what the scheduler pops, attempts and commits as one. A unit is a pod, or a pod group."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from operator import attrgetter

from stowplan.engine.queue.record import QueueRecord, QueueStage
from stowplan.framework.decision import Verdict
from stowplan.objects.pods import Pod

__all__ = ["GatedMembers", "QueueStage", "Unit"]


class GatedMembers:
    """Which members of a group may not be attempted, and why. Only `gate` writes it."""

    __slots__ = ("agreed", "plugins", "unchecked", "verdicts")

    def __init__(self, uids: Iterable[str]) -> None:
        self.verdicts: dict[str, Verdict] = {}  # by the uid of a gated member
        self.plugins: set[str] = set()  # those that gate members
        self.unchecked: dict[str, None] = dict.fromkeys(uids)  # members to be checked
        self.agreed: object = None  # what members had to agree on when the others were checked


NO_MEMBERS = GatedMembers(())  # of every unit without a group: nothing is written into it


class Unit:
    __slots__ = (
        "attempts",
        "broken",
        "evicting",
        "gated",
        "group",
        "key",
        "mixed",
        "needed",
        "pods",
        "profile",
        "queued",
        "since",
    )

    def __init__(self, pods: Iterable[Pod], profile: str, now: float, group: str = "", needed: int = 1) -> None:
        self.pods: dict[str, Pod] = {pod.uid: pod for pod in pods}
        self.mixed = len(self.pods) > 1 and len({pod.priority for pod in self.pods.values()}) > 1  # priorities differ
        self.profile = profile
        self.group = group  # namespace/name of its group; empty for a pod without one
        self.needed = needed  # how many of its pods must get a node for any to get one
        self.key: Hashable = group or next(iter(self.pods))
        self.since = now  # when it was first seen
        self.attempts = 0
        self.broken = ""  # what a plugin raised before the unit could be attempted
        self.evicting: set[int] = set()  # evictions for it that are not answered yet
        self.gated = GatedMembers(self.pods) if group else NO_MEMBERS
        self.queued = QueueRecord(now)

    def add(self, pod: Pod) -> None:
        """Add a pod, or a new version of one."""
        self.pods[pod.uid] = pod
        if self.group:
            self.gated.unchecked[pod.uid] = None
            self.mixed = self.mixed or pod.priority != next(iter(self.pods.values())).priority

    def remove(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.gated.verdicts.pop(uid, None)
        self.gated.unchecked.pop(uid, None)

    def check_all_again(self) -> None:
        """Forget what is known about gated members."""
        self.gated.verdicts.clear()
        self.gated.plugins.clear()
        self.gated.unchecked = dict.fromkeys(self.pods)

    @property
    def stage(self) -> QueueStage:
        return self.queued.stage

    @property
    def ready(self) -> list[Pod]:
        """The pods that may be attempted."""
        gated = self.gated.verdicts
        return [pod for uid, pod in self.pods.items() if uid not in gated]

    @property
    def lead(self) -> Pod:
        """The pod that stands for the unit in the queue's order: if priorities differ, one of the highest."""
        gated = self.gated.verdicts
        if self.mixed:
            return max(self.ready or self.pods.values(), key=attrgetter("priority"))
        for uid, pod in self.pods.items():
            if uid not in gated:
                return pod
        return next(iter(self.pods.values()))
