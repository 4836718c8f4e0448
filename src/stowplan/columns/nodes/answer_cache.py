"""A cache of plugins' answers per row. Only the rows that changed since are asked about again.

If a plugin's answer for a node depends on the row and on the pod's shape alone, the next pod of the same template gets
it from here: a decision after one binding asks about one row, not about all. Row versions tell which rows are stale.
The least recently used answers are dropped when the cache is larger than `MOST_BYTES`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.columns.nodes.table import NodeTable

MOST_BYTES = 64 * 1024 * 1024
PER_ENTRY = 16 * 1024  # an upper bound of an entry's size without its columns; it limits the number of entries
VERDICT = ""  # the name of the column of verdicts; columns of scores have the name of the plugin
TOTAL = "(total)"  # the name of the column of the weighted sums of these scores


class CachedAnswers:
    """Some columns of answers, and the time (the table's clock) at which they were correct for every row."""

    __slots__ = ("clock", "columns", "row_questions", "verdict_codes")

    def __init__(self, verdict_codes: Any) -> None:
        self.verdict_codes = verdict_codes  # the meaning of the codes in the column of verdicts
        self.columns: dict[str, Any] = {}
        self.clock = -1
        self.row_questions: Any = None  # how to ask about single rows, if the plugins have a form for that

    def stale(self, table: NodeTable, capacity: int) -> Rows:
        """Return the live rows that changed since; all live rows if some have no answer yet."""
        if self.clock < 0 or any(len(column) < capacity for column in self.columns.values()):
            return table.live_rows()
        return table.changed_since(self.clock)

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
        """Add answers, or update the size of answers that were refreshed."""
        size = PER_ENTRY + answers.nbytes
        self._answers[key] = answers
        self._bytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        while self._bytes > MOST_BYTES and len(self._answers) > 1:
            oldest, _ = self._answers.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)

    @property
    def nbytes(self) -> int:
        return self._bytes
