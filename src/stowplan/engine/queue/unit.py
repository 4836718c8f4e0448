"""A queue unit: a pod, or a group of pods that is popped, tried and committed as one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum
from typing import Any

from stowplan.framework.verdict import Verdict
from stowplan.objects.pods import Pod


class QueueStage(Enum):
    """Where a pending unit is; the drawing is at the top of `scheduler.py`."""

    GATED = "gated"
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"


class Unit:
    __slots__ = (
        "activated", "aged", "asked_on", "attempts", "broken", "errors", "evicting", "failures", "flushed", "gate",
        "group", "happened", "held", "holders", "key", "needed", "pending", "place", "pods", "profile", "ready_at",
        "rejectors", "since", "stage", "ticket", "timestamp", "unasked", "woken",
    )  # fmt: skip

    def __init__(self, pods: Iterable[Pod], profile: str, now: float, group: str = "", needed: int = 1) -> None:
        self.pods: dict[str, Pod] = {pod.uid: pod for pod in pods}
        self.profile = profile
        self.group = group
        self.needed = needed  # how many of its pods must get a node for any to get one
        self.key: Hashable = group or next(iter(self.pods))
        self.stage = QueueStage.ACTIVE
        self.broken = ""  # what a plugin raised before the unit was even tried
        self.gate: Verdict | None = None
        self.held: dict[str, Verdict] = {}  # members of a group that may not be tried, and why
        self.holders: set[str] = set()  # the plugins that held some of them
        self.unasked: dict[str, None] = dict.fromkeys(self.pods)  # those of which that is to be found out
        self.asked_on: object = None  # what the group's members had to agree on when the others were asked
        self.aged = False  # it is a group that has waited for long
        self.attempts = 0
        self.failures = 0  # times rejected
        self.errors = 0  # times in a row that something went wrong
        self.since = now  # when it was first seen
        self.timestamp = now  # since when it is in the queue, this time
        self.ready_at = now  # when its backoff is over
        self.rejectors: frozenset[str] = frozenset()
        self.pending: frozenset[str] = frozenset()  # those of its rejectors that only wait for somebody else
        self.place: Any = None  # where in the order it is, once it is active
        self.ticket = 0  # which of its entries in a heap is the valid one
        self.happened = 0  # number of the last happening before it was popped
        self.activated = False  # somebody wants it tried while it is in flight
        self.evicting: set[int] = set()  # evictions for it that are not answered yet
        self.woken = False  # something helped it meanwhile
        self.flushed = False  # tried because of its age, not because something helped

    def join(self, pod: Pod) -> None:
        """A pod that is new, or not as it was."""
        self.pods[pod.uid] = pod
        self.unasked[pod.uid] = None

    def leave(self, uid: str) -> None:
        for book in (self.pods, self.held, self.unasked):
            book.pop(uid, None)

    def ask_all_anew(self) -> None:
        self.held.clear()
        self.holders.clear()
        self.unasked = dict.fromkeys(self.pods)

    @property
    def ready(self) -> list[Pod]:
        """The pods that may be tried."""
        return [pod for uid, pod in self.pods.items() if uid not in self.held]

    @property
    def lead(self) -> Pod:
        """The pod that stands for the unit where pods are ordered; members of a group are equally important."""
        ready = (pod for uid, pod in self.pods.items() if uid not in self.held)
        return next(ready, None) or next(iter(self.pods.values()))
