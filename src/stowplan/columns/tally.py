"""A tally counts something per row: pods that match a query, ports, volumes.

Counts of a few rows are in a dictionary, counts of many rows in an array. So a tally needs memory for what it counts,
and a count over all rows is one array operation. A change of one row costs the same either way.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from stowplan.columns.arrays import Codes, Ints, Rows

MOST_COLUMNS = 8  # for which a tally keeps sums


class CodedColumn(Protocol):
    """A column with a code for every row, and a version that grows with every change of a code."""

    codes: Codes
    version: int


class DomainCounts:
    """How many rows there are for each pair of a code in a column and a count. A pair's number is code * width + count.

    `pair_of` has the pair of each row, `rows` the number of rows of each pair. Rows without a node have the code 0.
    """

    __slots__ = ("pair_of", "rows", "version", "width")

    def __init__(self, version: int, codes: Codes, counts: Ints, size: int) -> None:
        self.version, self.width = version, int(counts.max(initial=0)) + 2  # so that a count can grow by one
        self.pair_of = codes * self.width
        self.pair_of += counts
        self.rows: Ints = np.bincount(self.pair_of, minlength=size * self.width)

    def add(self, row: int, amount: int) -> bool:
        """Change the count of a row. False if there is no number for its new pair."""
        before = int(self.pair_of[row])
        after = before + amount
        if not 0 <= before % self.width + amount < self.width:
            return False
        self.pair_of[row] = after
        self.rows[before] -= 1
        self.rows[after] += 1
        return True


class Tally:
    __slots__ = ("_array", "_domains", "_rows", "_sums", "_total")

    def __init__(self) -> None:
        self._total = 0
        self._sums: dict[CodedColumn, tuple[int, Ints]] | None = None  # by code of a column, as of its version
        self._domains: dict[CodedColumn, DomainCounts] | None = None
        self._rows: dict[int, int] = {}
        self._array: Ints | None = None

    def add(self, row: int, amount: int, capacity: int) -> None:
        """Change the count of one row; `capacity` is the length of the table's columns."""
        self._total += amount
        if self._sums is not None:
            self._update_sums(row, amount)
        if self._domains is not None:
            self._update_domains(row, amount)
        if self._array is not None:
            if row >= len(self._array):
                self._array = np.concatenate([self._array, np.zeros(capacity - len(self._array), np.int64)])
            self._array[row] += amount
            return
        count = self._rows.get(row, 0) + amount
        if count:
            self._rows[row] = count
            if len(self._rows) > max(64, capacity // 16):
                self._use_array(capacity)
        else:
            self._rows.pop(row, None)

    def add_all(self, other: Tally, capacity: int) -> None:
        """Add the counts of another tally."""
        for row, amount in other.items().items():
            self.add(row, amount, capacity)

    def _update_sums(self, row: int, amount: int) -> None:
        for column, (version, sums) in (self._sums or {}).items():
            if version == column.version:  # otherwise the next question computes them again
                sums[column.codes[row]] += amount

    def _update_domains(self, row: int, amount: int) -> None:
        for column, domains in list((self._domains or {}).items()):
            fresh = domains.version == column.version and row < len(domains.pair_of)
            if not fresh or not domains.add(row, amount):
                del self._domains[column]  # type: ignore[union-attr]

    def _use_array(self, capacity: int) -> None:
        self._array = np.zeros(capacity, np.int64)
        self._array[list(self._rows)] = list(self._rows.values())
        self._rows = {}

    def count(self, row: int) -> int:
        """Return the count of one row."""
        if self._array is None:
            return self._rows.get(row, 0)
        return int(self._array[row]) if row < len(self._array) else 0

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return self._total

    @property
    def empty(self) -> bool:
        """True if the counts add up to 0. If no count is negative, there are none."""
        return self._total == 0

    def items(self) -> dict[int, int]:
        """Return row → count, without rows whose count is 0."""
        if self._array is None:
            return dict(self._rows)
        rows = np.flatnonzero(self._array)
        return dict(zip(rows.tolist(), self._array[rows].tolist(), strict=True))

    def sparse(self) -> tuple[Rows, Ints]:
        """Return the rows whose count is not 0, and their counts."""
        if self._array is not None:
            rows = np.flatnonzero(self._array)
            return rows, self._array[rows]
        size = len(self._rows)
        return np.fromiter(self._rows, np.int64, size), np.fromiter(self._rows.values(), np.int64, size)

    def on(self, rows: Rows | slice, capacity: int) -> Ints:
        """Return the counts of these rows, in the same order."""
        array = self._array
        if array is None or len(array) < capacity:
            dense = np.zeros(capacity, np.int64)
            if array is not None:
                dense[: len(array)] = array
            elif self._rows:
                dense[list(self._rows)] = list(self._rows.values())
            array = dense
        return array[rows]

    def by_column(self, column: CodedColumn, size: int) -> Ints:
        """Return the sum of the counts for each code of a column. The sums are kept up to date from then on."""
        version, sums = (self._sums or {}).get(column, (-1, None))
        if sums is None or version != column.version or len(sums) != size:
            sums = self.by_code(column.codes, size)
            if self._sums is None or (len(self._sums) >= MOST_COLUMNS and column not in self._sums):
                self._sums = {}
            self._sums[column] = (column.version, sums)
        return sums.copy()

    def domain_counts(self, column: CodedColumn, size: int, capacity: int) -> DomainCounts:
        """Return the number of rows for each code and count. It is kept up to date from then on."""
        found = (self._domains or {}).get(column)
        fits = found is not None and len(found.pair_of) >= capacity and len(found.rows) >= size * found.width
        if found is None or not fits or found.version != column.version:
            found = DomainCounts(column.version, column.codes[:capacity], self.on(slice(0, capacity), capacity), size)
            if self._domains is None or len(self._domains) >= MOST_COLUMNS:
                self._domains = {}
            self._domains[column] = found
        return found

    def by_code(self, codes: Codes, size: int, among: Ints | None = None, *, distinct: bool = False) -> Ints:
        """Return the sum of the counts for each code, for example for each value of a topology key.

        `codes` has the code of every row. `among` is 1 for rows that are included and 0 for the others. `distinct`: no
        two rows share a code except 0, so nothing must be added up; the sum for 0 is then undefined.
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
