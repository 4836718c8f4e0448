"""Which of two pods the running scheduler decided first, where that is certain.

A scheduler takes the pod of the highest priority first and, of equal ones, the one that came first. So a pod was
decided before every later one of its scheduler that has no higher priority. Nothing is certain of a pod that was tried
before: it comes back to the queue when its backoff ends. Bindings are written side by side, so the watch may show them
in another order than they were decided in.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from stowplan.objects.pods import Pod


@dataclass(slots=True)
class QueueArrival:
    """When a pod came to the queue of its scheduler: the number of that change, and its time.

    `last`, `last_at`: the same of the last report that there is no node for it. Its next decision is later.
    """

    number: int
    at: float
    priority: int
    scheduler: str
    last: int
    last_at: float
    tried: bool = False


class CertainOrder:
    def __init__(self) -> None:
        self._arrivals: dict[str, QueueArrival] = {}  # by uid
        # Pods that no decision is known of, by scheduler and priority, the first one first.
        self._undecided: dict[tuple[str, int], OrderedDict[str, None]] = {}

    def arrived(self, pod: Pod, number: int, now: float) -> None:
        """A pod waits for its scheduler. What counts is the first time."""
        if pod.uid not in self._arrivals and not pod.spec.scheduling_gates:
            found = QueueArrival(number, now, pod.priority, pod.scheduler_name, number, now)
            self._arrivals[pod.uid] = found
            self._undecided.setdefault((found.scheduler, found.priority), OrderedDict())[pod.uid] = None

    def tried(self, uid: str, number: int, now: float) -> None:
        """The scheduler found no node for a pod."""
        found = self._arrivals.get(uid)
        if found is not None:
            found.tried, found.last, found.last_at = True, number, now
            self._decided(uid, found)

    def bound(self, uid: str) -> None:
        found = self._arrivals.get(uid)
        if found is not None:
            self._decided(uid, found)

    def forget(self, uid: str) -> None:
        found = self._arrivals.pop(uid, None)
        if found is not None:
            self._decided(uid, found)

    def since(self, uid: str, number: int) -> tuple[int, float] | None:
        """Return after which change, and when, the decision before this number was made; None if that is not known."""
        found = self._arrivals.get(uid)
        if found is None:
            return None
        return (found.last, found.last_at) if found.last < number else (found.number, found.at)

    def decided_first(self, one: str, other: str) -> bool:
        """True if it is certain that the first of these pods was decided before the other."""
        first, second = self._arrivals.get(one), self._arrivals.get(other)
        if first is None or second is None or first.tried or second.tried or first.scheduler != second.scheduler:
            return False
        return first.number < second.number and first.priority >= second.priority

    def awaited_before(self, uid: str) -> str:
        """Return a pod that was certainly decided before this one, and of which no decision is known yet; or ""."""
        found = self._arrivals.get(uid)
        if found is None or found.tried:
            return ""
        for (scheduler, priority), waiting in self._undecided.items():
            if scheduler == found.scheduler and priority >= found.priority:
                first = next(iter(waiting))
                if self._arrivals[first].number < found.number:
                    return first
        return ""

    def _decided(self, uid: str, found: QueueArrival) -> None:
        level = found.scheduler, found.priority
        waiting = self._undecided.get(level)
        if waiting is not None:
            waiting.pop(uid, None)
            if not waiting:
                del self._undecided[level]
