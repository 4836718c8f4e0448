"""What happens while units are in flight: remembered for those who left before it, forgotten once nobody needs it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from stowplan.engine.queue.cluster_events import ClusterEvent
from stowplan.engine.queue.unit import Unit

TIDIED_AFTER = 1024  # forgotten entries at the front of the list


class InflightEvents:
    def __init__(self, matters: Callable[[ClusterEvent], bool]) -> None:
        """`matters` says whether any plugin at all registered for such a thing; what nobody did is not remembered."""
        self._matters = matters
        self._flying: dict[Unit, None] = {}  # in the order they left
        self._numbers: list[int] = []
        self._happened: list[tuple[Unit | None, ClusterEvent]] = []  # to which unit, None for all
        self._last = self._gone = 0

    def __contains__(self, unit: Unit) -> bool:
        return unit in self._flying

    def __len__(self) -> int:
        return len(self._flying)

    @property
    def remembered(self) -> int:
        return len(self._numbers) - self._gone

    def begin(self, unit: Unit) -> None:
        unit.happened = self._last
        self._flying.pop(unit, None)
        self._flying[unit] = None

    def note(self, happening: ClusterEvent, to: Unit | None = None) -> None:
        concerned = self._flying if to is None else (self._flying and to in self._flying)
        if concerned and self._matters(happening):
            self._last += 1
            self._numbers.append(self._last)
            self._happened.append((to, happening))

    def missed(self, unit: Unit) -> list[ClusterEvent]:
        """What happened since the unit left, nothing if it is not in flight."""
        if unit not in self._flying:
            return []
        first = bisect_right(self._numbers, unit.happened)
        return [happening for to, happening in self._happened[first:] if to in (None, unit)]

    def land(self, unit: Unit) -> None:
        """The unit is back, or needs no watch any more."""
        if self._flying.pop(unit, unit) is unit:
            return
        if not self._flying:
            self._numbers.clear()
            self._happened.clear()
            self._gone = 0
            return
        oldest = next(iter(self._flying)).happened
        self._gone = bisect_right(self._numbers, oldest)
        if self._gone > TIDIED_AFTER:
            del self._numbers[: self._gone], self._happened[: self._gone]
            self._gone = 0
