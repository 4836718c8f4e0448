"""Answers kept per row, refreshed only for the rows that changed since.

Where a policy's answer for a node depends on that row and on the pod's shape alone, pods of one template get it from
here: a decision after one binding asks again about one row, not about all. Row versions say which rows are stale.
The least recently used answers go when they take more than `KEPT_BYTES`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.columns.nodes.table import NodeTable

KEPT_BYTES = 64 * 1024 * 1024
PER_ENTRY = 16 * 1024  # what an entry takes besides its columns, generously; so a few thousand are kept at the most
VERDICT = ""  # the column of verdicts; the others are named after the plugins whose scores they hold


class CachedAnswers:
    """Some columns of answers, and the time (the table's clock) at which they were right for every row."""

    __slots__ = ("book", "clock", "columns")

    def __init__(self, book: Any) -> None:
        self.book = book  # what the codes in a column stand for; the asker's own
        self.columns: dict[str, Any] = {}
        self.clock = -1

    def stale(self, table: NodeTable, capacity: int) -> Rows:
        """The live rows that changed since, or all of them if there is not an answer for each row."""
        if self.clock < 0 or any(len(column) < capacity for column in self.columns.values()):
            return table.live_rows()
        changed: Rows = (table.version[: table.size] > self.clock).nonzero()[0]
        return changed[table.live[changed]]

    def put(self, name: str, rows: Rows, values: Any, capacity: int) -> None:
        column = self.columns.get(name)
        if column is None or len(column) < capacity:
            column = self.columns[name] = np.zeros(capacity, values.dtype)
        column[rows] = values

    @property
    def nbytes(self) -> int:
        return sum(int(column.nbytes) for column in self.columns.values())


class AnswerCache:
    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, CachedAnswers] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: Hashable) -> CachedAnswers | None:
        answers = self._answers.get(key)
        if answers is not None:
            self._answers.move_to_end(key)
        return answers

    def keep(self, key: Hashable, answers: CachedAnswers) -> None:
        """Keep answers, new ones or such as have been refreshed and may have grown."""
        size = PER_ENTRY + answers.nbytes
        self._answers[key] = answers
        self._bytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        while self._bytes > KEPT_BYTES and len(self._answers) > 1:
            oldest, _ = self._answers.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)

    @property
    def nbytes(self) -> int:
        return self._bytes
