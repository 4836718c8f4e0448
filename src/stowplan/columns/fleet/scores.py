"""The AddOnPlacementScores of one name, as columns.

An object's scores are valid up to and including a moment. The last known value of a score is kept after the score is
gone, for prioritizers that prefer an old score to none.
"""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.columns.rows import longer
from stowplan.objects.clusters import AddOnPlacementScore

MOST_COLUMNS = 1024  # per name of objects; beyond that the oldest column is dropped


class ScoreColumn:
    """One score per row: its value if `present`, else its last value if `known`."""

    __slots__ = ("known", "present", "values")

    def __init__(self, capacity: int) -> None:
        self.values: Ints = np.zeros(capacity, np.int64)
        self.present: Bools = np.zeros(capacity, np.bool_)
        self.known: Bools = np.zeros(capacity, np.bool_)

    def put(self, row: int, value: int | None) -> None:
        self.present[row] = value is not None
        if value is not None:
            self.values[row], self.known[row] = value, True


class ResourceScores:
    def __init__(self, capacity: int) -> None:
        self.version = 0  # grows with every change
        self.capacity = capacity
        self.objects: dict[int, AddOnPlacementScore] = {}
        self.until: Floats = np.full(capacity, np.nan)  # NaN where there is no object
        self.row_version: Ints = np.zeros(capacity, np.int64)
        self._columns: dict[str, ScoreColumn] = {}

    def put(self, row: int, score: AddOnPlacementScore) -> AddOnPlacementScore | None:
        """Set the object of a row. Return the one before."""
        old = self.objects.get(row)
        self.objects[row] = score
        if old is None or old.status.scores != score.status.scores or old.valid_until != score.valid_until:
            self._fill(row, score)
        return old

    def remove(self, row: int) -> AddOnPlacementScore | None:
        old = self.objects.pop(row, None)
        if old is not None:
            self._fill(row, None)
        return old

    def _fill(self, row: int, score: AddOnPlacementScore | None) -> None:
        self.version += 1
        self.row_version[row] = self.version
        self.until[row] = np.nan if score is None else score.valid_until
        values = {} if score is None else score.values
        for name, column in self._columns.items():
            column.put(row, values.get(name))

    def forget(self, row: int) -> None:
        """Forget what is known of a row that another cluster will have."""
        self.version += 1
        for column in self._columns.values():
            column.known[row] = False

    def grow(self, capacity: int) -> None:
        self.until = longer(self.until, capacity, np.nan)
        self.row_version = longer(self.row_version, capacity, 0)
        for column in self._columns.values():
            column.values = longer(column.values, capacity, 0)
            column.present = longer(column.present, capacity, False)
            column.known = longer(column.known, capacity, False)
        self.capacity = capacity

    def column(self, name: str) -> ScoreColumn:
        """Return one score of all clusters. The column is made from the objects when it is first read."""
        column = self._columns.get(name)
        if column is None:
            if len(self._columns) >= MOST_COLUMNS:
                del self._columns[next(iter(self._columns))]
            column = self._columns[name] = ScoreColumn(self.capacity)
            for row, score in self.objects.items():
                column.put(row, score.values.get(name))
        return column

    def valid(self, now: float) -> Bools:
        """Return which rows have an object whose scores are valid."""
        return self.until >= now

    def expired(self, now: float) -> Bools:
        return self.until < now
