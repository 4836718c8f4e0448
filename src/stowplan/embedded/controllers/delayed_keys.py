"""Keys that are due later: for each one the earliest time. A controller that is asked then says when to come back."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

_FEW = 64  # entries that are never worth a clean-up


class DelayedKeys:
    """A key belongs to a controller, which has a number."""

    def __init__(self) -> None:
        self._at: dict[tuple[int, str], float] = {}
        self._heap: list[tuple[float, int, str]] = []  # also entries that an earlier one has replaced

    def add(self, number: int, key: str, at: float) -> None:
        """Make a key due at a time, unless it is due by then anyway."""
        due = self._at.get((number, key))
        if due is not None and due <= at:
            return
        self._at[number, key] = at
        heapq.heappush(self._heap, (at, number, key))
        if len(self._heap) > 2 * len(self._at) + _FEW:
            self._heap = [(at, *pair) for pair, at in self._at.items()]
            heapq.heapify(self._heap)

    def next(self) -> float | None:
        """When the next key is due; None if there is none."""
        while self._heap and self._is_replaced(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[tuple[int, str]]:
        """Take out the keys whose time has come."""
        while (at := self.next()) is not None and at <= now:
            _, number, key = heapq.heappop(self._heap)
            del self._at[number, key]
            yield number, key

    def __len__(self) -> int:
        """How many entries there are, also those that are replaced."""
        return len(self._heap)

    def _is_replaced(self, at: float, number: int, key: str) -> bool:
        return self._at.get((number, key)) != at
