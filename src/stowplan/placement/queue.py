"""Which placement is decided next, and when time alone makes one due.

PlacementQueue works as client-go's workqueue does: a placement whose writes are in progress is not handed out; if it is
added meanwhile, it is due as soon as it is done.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

import numpy as np

from stowplan.columns.fleet.clusters import Fleet
from stowplan.objects.clusters import ManagedCluster


class Deadlines:
    """One moment per name. Setting another moment replaces the first."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []  # with entries that were replaced since

    def set(self, name: str, at: float) -> None:
        self._at[name] = at
        heapq.heappush(self._heap, (at, name))

    def set_earlier(self, name: str, at: float) -> None:
        """Set the moment, unless the name has an earlier one."""
        if at < self._at.get(name, math.inf):
            self.set(name, at)

    def cancel(self, name: str) -> None:
        self._at.pop(name, None)

    def next(self) -> float | None:
        """Return the earliest moment."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> str | None:
        """Return the name with the earliest moment, if that has come."""
        at = self.next()
        if at is None or at > now:
            return None
        _, name = heapq.heappop(self._heap)
        del self._at[name]
        return name


class PlacementQueue:
    """The keys of the placements to decide, in the order in which they became due."""

    def __init__(self) -> None:
        self._due: dict[str, None] = {}
        self._last: dict[str, None] = {}  # due when no other is
        self.popped_last = False  # if the placement that was handed out is one of these
        self._in_progress: set[str] = set()
        self._added_meanwhile: set[str] = set()
        self._deadlines = Deadlines()

    def add(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key in self._in_progress:
                self._added_meanwhile.add(key)
            else:
                self._last.pop(key, None)
                self._due[key] = None

    def add_last(self, key: str) -> None:
        """Add a placement that takes long: all others that are due come first."""
        if key not in self._due:
            self._last.pop(key, None)
            self._last[key] = None

    def add_at(self, key: str, at: float) -> None:
        """Add the placement at this moment, and not at the one that was set before."""
        self._deadlines.set(key, at)

    def add_overdue(self, now: float) -> None:
        """Add the placements whose moment has come."""
        while (key := self._deadlines.pop(now)) is not None:
            self.add((key,))

    def pop(self) -> str | None:
        """Hand out the next placement."""
        self.popped_last = not self._due
        due = self._due or self._last
        key = next(iter(due), None)
        if key is not None:
            del due[key]
        return key

    def start(self, key: str) -> None:
        """The placement's writes are in progress, until `done` or `retry`."""
        self._in_progress.add(key)

    def done(self, key: str) -> None:
        self._in_progress.discard(key)
        if key in self._added_meanwhile:
            self._added_meanwhile.discard(key)
            self._due[key] = None

    def retry(self, key: str, at: float) -> None:
        """The placement failed: it is due at this moment, whatever was added meanwhile."""
        self._in_progress.discard(key)
        self._added_meanwhile.discard(key)
        self._deadlines.set(key, at)

    def forget(self, key: str) -> None:
        self._due.pop(key, None)
        self._last.pop(key, None)
        self._in_progress.discard(key)
        self._added_meanwhile.discard(key)
        self._deadlines.cancel(key)

    def next_deadline(self) -> float | None:
        """Return when a placement is due; 0.0 if one is due now."""
        return 0.0 if self._due or self._last else self._deadlines.next()


class ScoreExpiries:
    """When the first value of each AddOnPlacementScore that placements use expires."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._deadlines = Deadlines()
        self._checked: dict[str, float] = {}  # up to when expired values were reported, by resource

    def watch(self, resources: Iterable[str], now: float) -> None:
        """Report expired values of these resources from now on."""
        for resource in resources:
            if resource not in self._checked:
                self._checked[resource] = now
                self._set_deadline(resource, now)

    def changed(self, resource: str, valid_until: float) -> None:
        """A value changed. A later moment than the one set needs no change: the next is set when that has come."""
        if resource in self._checked and math.isfinite(valid_until):
            self._deadlines.set_earlier(resource, math.nextafter(valid_until, math.inf))

    def _set_deadline(self, resource: str, now: float) -> None:
        scores = self._fleet.known_scores(resource)
        if scores is None:
            return
        until = scores.until
        later = until[(until >= now) & np.isfinite(until)]
        if len(later):
            self._deadlines.set(resource, math.nextafter(float(later.min()), math.inf))

    def expired(self, now: float) -> list[tuple[str, list[ManagedCluster]]]:
        """Return the resources of which values expired since the last call, with the clusters of these values."""
        found = []
        while (resource := self._deadlines.pop(now)) is not None:
            until, since = self._fleet.scores(resource).until, self._checked[resource]
            rows = np.flatnonzero((until < now) & (until >= since)).tolist()
            self._checked[resource] = now
            self._set_deadline(resource, now)
            found.append((resource, [each for row in rows if (each := self._fleet.clusters[row]) is not None]))
        return found

    def next_deadline(self) -> float | None:
        return self._deadlines.next()
