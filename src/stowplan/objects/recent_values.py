"""Values that were read lately, by what they were read from: equal sources are read once and share one value.

There are two generations. When the younger one is full it becomes the older one, and what nobody asks for again goes
with it. So the memory has a bound, whatever tenants write. Whoever gets a value must not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Source = TypeVar("Source", bound=Hashable)
Value = TypeVar("Value")
OVERHEAD = 200  # bytes that a value costs at least


class RecentValues(Generic[Source, Value]):
    """`weigh` says how many bytes a source has. A generation has `most` of them; a source of more than `heaviest` is
    read each time.
    """

    __slots__ = ("_heaviest", "_most", "_old", "_read", "_weigh", "_weight", "_young")

    def __init__(
        self, read: Callable[[Source], Value], weigh: Callable[[Source], int], most: int, heaviest: int
    ) -> None:
        self._read, self._weigh, self._most, self._heaviest = read, weigh, most, heaviest
        self._young: dict[Source, Value] = {}
        self._old: dict[Source, Value] = {}
        self._weight = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def value(self, source: Source) -> Value:
        """The value of this source. Raises what `read` raises."""
        found = self._young.get(source)
        return self._older(source) if found is None else found

    def _older(self, source: Source) -> Value:
        found = self._old.pop(source, None)
        if found is None:
            found = self._read(source)
        weight = self._weigh(source)
        if weight <= self._heaviest:
            self._weight += weight + OVERHEAD
            if self._weight > self._most:
                self._old, self._young, self._weight = self._young, {}, weight + OVERHEAD
            self._young[source] = found
        return found
