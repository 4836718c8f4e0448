"""Rows with stable numbers. A row belongs to a name until it is freed, and is reused after that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class NamedRows(ABC):
    def __init__(self) -> None:
        self.capacity = 16  # the length of the columns
        self.size = 0  # rows below this number have been in use
        self.row_of: dict[str, int] = {}
        self.names: list[str] = []
        self._free: list[int] = []

    def row(self, name: str) -> int:
        """Return the row of a name; a new one if it has none."""
        row = self.row_of.get(name)
        if row is None:
            row = self.row_of[name] = self._new(name)
        return row

    def _new(self, name: str) -> int:
        if self._free:
            row = self._free.pop()
            self.names[row] = name
            return row
        self.names.append(name)
        self.size += 1
        if self.size > self.capacity:
            self.capacity *= 2
            self._grow()
        return self.size - 1

    @property
    def reusable(self) -> int:
        """How many rows were freed and not given out again."""
        return len(self._free)

    def free(self, row: int) -> None:
        """Free a row; nothing may refer to it any more."""
        del self.row_of[self.names[row]]
        self.names[row] = ""
        self._free.append(row)

    @abstractmethod
    def _grow(self) -> None:
        """Extend every column to the new capacity."""


def longer(column: Any, capacity: int, filling: Any = 0) -> Any:
    """Return the column extended to this many rows."""
    grown = np.full(capacity, filling, column.dtype)
    grown[: len(column)] = column
    return grown
