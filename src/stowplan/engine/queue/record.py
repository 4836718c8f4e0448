"""What the queue keeps about a unit, apart from what the unit is. Only `unit_queue` writes it."""

from __future__ import annotations

from enum import Enum
from typing import Any

from stowplan.framework.decision import Verdict


class QueueStage(Enum):
    """Where a pending unit is; the drawing is at the top of `scheduler.py`."""

    GATED = "gated"
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"


class QueueRecord:
    __slots__ = (
        "activated", "aged", "ended", "errors", "failures", "first_event", "flushed", "gated_by", "hung", "hung_at",
        "key", "pending", "ready_at", "rejectors", "stage", "ticket", "timestamp", "woken",
    )  # fmt: skip

    def __init__(self, now: float) -> None:
        self.stage = QueueStage.ACTIVE
        self.failures = 0  # how often plugins rejected the unit
        self.errors = 0  # errors in a row
        self.timestamp = now  # when the unit entered the queue, this time
        self.ready_at = now  # when its backoff ends
        self.gated_by: Verdict | None = None
        self.rejectors: frozenset[str] = frozenset()  # plugins that rejected it, or that gate it
        self.pending: frozenset[str] = frozenset()  # those of them that only wait for another component
        self.key: Any = None  # its place in the order, while it is active
        self.ticket = 0  # the number of its valid entry in a heap; older entries are void
        self.first_event = 0  # number of the last cluster event before it was popped
        self.activated = False  # a plugin asked for another attempt while it was in flight
        self.woken = False  # an event helped while evictions for it were unanswered
        self.flushed = False  # attempted because it waited for too long, not because an event helped
        self.aged = False  # a group that has waited for longer than the sort plugin's `ages_after`
        self.hung = 0  # attempts in which a plugin hung; 1 at first if the pod has the mark of such
        self.hung_at = 0  # the last of them
        self.ended = 0  # how often the scheduler had to be ended over it, until it is attempted
