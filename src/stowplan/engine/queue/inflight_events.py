"""Cluster events that happen while units are in flight, remembered for units that were popped before them.

An event is forgotten once no unit in flight needs it. The caller notes only events that a plugin registered for.
"""

from __future__ import annotations

from bisect import bisect_right

from stowplan.engine.queue.cluster_events import ClusterEvent
from stowplan.engine.unit import Unit

TIDIED_AFTER = 1024  # forgotten entries at the front of the list


class InflightEvents:
    def __init__(self) -> None:
        self.units: dict[Unit, None] = {}  # in flight, in the order they were popped
        self._numbers: list[int] = []
        self._events: list[tuple[Unit | None, ClusterEvent]] = []  # with the unit it concerns, None for all
        self._last = self._forgotten = 0

    @property
    def remembered(self) -> int:
        """How many events are remembered."""
        return len(self._numbers) - self._forgotten

    def begin(self, unit: Unit) -> None:
        """The unit was popped."""
        unit.queued.first_event = self._last
        self.units.pop(unit, None)
        self.units[unit] = None

    def note(self, event: ClusterEvent, unit: Unit | None = None) -> None:
        """Remember an event for all units in flight, or for one of them."""
        self._last += 1
        self._numbers.append(self._last)
        self._events.append((unit, event))

    def missed(self, unit: Unit) -> list[ClusterEvent]:
        """The events since the unit was popped; none if it is not in flight."""
        if unit not in self.units:
            return []
        first = bisect_right(self._numbers, unit.queued.first_event)
        return [event for concerned, event in self._events[first:] if concerned in (None, unit)]

    def end(self, unit: Unit) -> None:
        """The unit is no longer in flight."""
        if self.units.pop(unit, unit) is unit:
            return
        if not self.units:
            self._numbers.clear()
            self._events.clear()
            self._forgotten = 0
            return
        oldest = next(iter(self.units)).queued.first_event
        self._forgotten = bisect_right(self._numbers, oldest)
        if self._forgotten > TIDIED_AFTER:
            del self._numbers[: self._forgotten], self._events[: self._forgotten]
            self._forgotten = 0
