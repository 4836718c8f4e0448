"""How many, per row: the one counter behind affinity, spreading, ports and volumes.

Few rows are kept as a dictionary, many as an array; so memory follows what is counted, and a count over all rows is
still one array operation. Changing one row costs the same either way.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from stowplan.columns.arrays import Codes, Ints, Rows

MOST_COLUMNS = 8  # whose sums a tally keeps


class CodedTally(Protocol):
    """A column that has a code for every row, and a version that grows with every change of them."""

    codes: Codes
    version: int


class DomainOrder:
    """Rows told apart by their code in a column and their count: each sort has a number, code * width + count.

    `of` has each row's sort, `rows` how many rows each sort has, those of nodes that are gone with the code 0.
    """

    __slots__ = ("of", "rows", "version", "width")

    def __init__(self, version: int, codes: Codes, counts: Ints, size: int) -> None:
        self.version, self.width = version, int(counts.max(initial=0)) + 2  # room for one more
        self.of = codes * self.width
        self.of += counts
        self.rows: Ints = np.bincount(self.of, minlength=size * self.width)

    def moved(self, row: int, amount: int) -> bool:
        """A row's count changed; whether there is a sort for what it is now."""
        before = int(self.of[row])
        after = before + amount
        if not 0 <= before % self.width + amount < self.width:
            return False
        self.of[row] = after
        self.rows[before] -= 1
        self.rows[after] += 1
        return True


class Tally:
    __slots__ = ("_array", "_rows", "_sorts", "_sums", "_total")

    def __init__(self) -> None:
        self._total = 0
        self._sums: dict[CodedTally, tuple[int, Ints]] | None = None  # per code of a column, as of a version of it
        self._sorts: dict[CodedTally, DomainOrder] | None = None
        self._rows: dict[int, int] = {}
        self._array: Ints | None = None

    def add(self, row: int, amount: int, capacity: int) -> None:
        """Change one row; `capacity` is how many rows there may be."""
        self._total += amount
        if self._sums is not None:
            self._add_up(row, amount)
        if self._sorts is not None:
            self._sort(row, amount)
        if self._array is not None:
            if row >= len(self._array):
                self._array = np.concatenate([self._array, np.zeros(capacity - len(self._array), np.int64)])
            self._array[row] += amount
            return
        count = self._rows.get(row, 0) + amount
        if count:
            self._rows[row] = count
            if len(self._rows) > max(64, capacity // 16):
                self._spread_out(capacity)
        else:
            self._rows.pop(row, None)

    def _add_up(self, row: int, amount: int) -> None:
        for column, (version, sums) in (self._sums or {}).items():
            if version == column.version:  # else they are made anew when somebody asks
                sums[column.codes[row]] += amount

    def _sort(self, row: int, amount: int) -> None:
        for column, sorts in list((self._sorts or {}).items()):
            fresh = sorts.version == column.version and row < len(sorts.of)
            if not fresh or not sorts.moved(row, amount):
                del self._sorts[column]  # type: ignore[union-attr]

    def _spread_out(self, capacity: int) -> None:
        self._array = np.zeros(capacity, np.int64)
        self._array[list(self._rows)] = list(self._rows.values())
        self._rows = {}

    def count(self, row: int) -> int:
        """How many one row has."""
        if self._array is None:
            return self._rows.get(row, 0)
        return int(self._array[row]) if row < len(self._array) else 0

    @property
    def empty(self) -> bool:
        """Is nothing counted? For tallies of what is there; sums of more and less may come to nothing, too."""
        return self._total == 0

    def items(self) -> dict[int, int]:
        """row → count, for the rows that have any."""
        if self._array is None:
            return dict(self._rows)
        rows = np.flatnonzero(self._array)
        return dict(zip(rows.tolist(), self._array[rows].tolist(), strict=True))

    def sparse(self) -> tuple[Rows, Ints]:
        """The rows that have any, and how many each has."""
        if self._array is not None:
            rows = np.flatnonzero(self._array)
            return rows, self._array[rows]
        size = len(self._rows)
        return np.fromiter(self._rows, np.int64, size), np.fromiter(self._rows.values(), np.int64, size)

    def on(self, rows: Rows | slice, capacity: int) -> Ints:
        """The counts of these rows, in their order."""
        array = self._array
        if array is None or len(array) < capacity:
            dense = np.zeros(capacity, np.int64)
            if array is not None:
                dense[: len(array)] = array
            elif self._rows:
                dense[list(self._rows)] = list(self._rows.values())
            array = dense
        return array[rows]

    def by_column(self, column: CodedTally, size: int) -> Ints:
        """The counts summed up per code of a column; from then on the sums follow each change of a row."""
        version, sums = (self._sums or {}).get(column, (-1, None))
        if sums is None or version != column.version or len(sums) != size:
            sums = self.by_code(column.codes, size)
            if self._sums is None or (len(self._sums) >= MOST_COLUMNS and column not in self._sums):
                self._sums = {}
            self._sums[column] = (column.version, sums)
        return sums.copy()

    def sorts(self, column: CodedTally, size: int, capacity: int) -> DomainOrder:
        """The rows by code and count; from then on they follow each change of a row."""
        sorts = (self._sorts or {}).get(column)
        fits = sorts is not None and len(sorts.of) >= capacity and len(sorts.rows) >= size * sorts.width
        if sorts is None or not fits or sorts.version != column.version:
            sorts = DomainOrder(column.version, column.codes[:capacity], self.on(slice(0, capacity), capacity), size)
            if self._sorts is None or len(self._sorts) >= MOST_COLUMNS:
                self._sorts = {}
            self._sorts[column] = sorts
        return sorts

    def by_code(self, codes: Codes, size: int, among: Ints | None = None, *, distinct: bool = False) -> Ints:
        """The counts summed up per code (the value of a topology key, say).

        `codes` has the code of every row; `among`, if given, is 1 for the rows that count and 0 for the others.
        `distinct` says that no two rows share a code but 0, so that nothing needs adding up; what 0 gets is then void.
        """
        if self._array is None:
            rows, counts = self.sparse()
            codes, among = codes[rows], None if among is None else among[rows]
        else:
            counts = self._array
            codes, among = codes[: len(counts)], None if among is None else among[: len(counts)]
        weights = counts if among is None else counts * among
        if distinct:
            sums = np.zeros(size, np.int64)
            sums[codes] = weights
            return sums
        return np.bincount(codes, weights=weights, minlength=size).astype(np.int64)
