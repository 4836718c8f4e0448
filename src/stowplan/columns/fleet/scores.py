"""The scores that clusters have under one name: AddOnPlacementScores, as columns.

An object's scores are valid up to and including a moment. What a score was when it was last there is kept, too, for
those who would rather go by an old score than by none.
"""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.columns.rows import longer
from stowplan.objects.clusters import AddOnPlacementScore

MOST_COLUMNS = 1024  # scores of one object's name; beyond that the oldest column goes


class ScoreColumn:
    """One score: its value where `there`, and the last value that was ever seen where `known`."""

    __slots__ = ("known", "there", "values")

    def __init__(self, capacity: int) -> None:
        self.values: Ints = np.zeros(capacity, np.int64)
        self.there: Bools = np.zeros(capacity, np.bool_)
        self.known: Bools = np.zeros(capacity, np.bool_)

    def put(self, row: int, value: int | None) -> None:
        self.there[row] = value is not None
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
        """What the row had before."""
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
        """The row will be another cluster's."""
        self.version += 1
        for column in self._columns.values():
            column.known[row] = False

    def grow(self, capacity: int) -> None:
        self.until = longer(self.until, capacity, np.nan)
        self.row_version = longer(self.row_version, capacity, 0)
        for column in self._columns.values():
            column.values = longer(column.values, capacity, 0)
            column.there = longer(column.there, capacity, False)
            column.known = longer(column.known, capacity, False)
        self.capacity = capacity

    def column(self, name: str) -> ScoreColumn:
        """One score of all clusters, made from the objects when it is first asked for."""
        column = self._columns.get(name)
        if column is None:
            if len(self._columns) >= MOST_COLUMNS:
                del self._columns[next(iter(self._columns))]
            column = self._columns[name] = ScoreColumn(self.capacity)
            for row, score in self.objects.items():
                column.put(row, score.values.get(name))
        return column

    def valid(self, now: float) -> Bools:
        """Where there is an object whose scores are still valid."""
        return self.until >= now

    def expired(self, now: float) -> Bools:
        return self.until < now
