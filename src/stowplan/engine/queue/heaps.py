"""Heaps of units. An entry ends with a ticket and the unit; it is void once the unit has another ticket."""

from __future__ import annotations

import heapq
from typing import Any

from stowplan.engine.unit import Unit


def peek(heap: list[Any]) -> Any | None:
    """The first valid entry. Void entries before it are dropped."""
    while heap:
        entry = heap[0]
        if _is_valid(entry):
            return entry
        heapq.heappop(heap)
    return None


def pop(heap: list[Any]) -> Unit | None:
    entry = peek(heap)
    if entry is None:
        return None
    heapq.heappop(heap)
    unit: Unit = entry[-1]
    return unit


def tidy(heap: list[Any]) -> None:
    """Drop all void entries."""
    heap[:] = [entry for entry in heap if _is_valid(entry)]
    heapq.heapify(heap)


def _is_valid(entry: Any) -> bool:
    return bool(entry[-1].queued.ticket == entry[-2])
