"""A cache of plugins' answers per row. Only the rows that changed since are asked about again.

If a plugin's answer for a node depends on the row and on the pod's shape alone, the next pod of the same template gets
it from here: a decision after one binding asks about one row, not about all. Row versions tell which rows are stale.
The least recently used answers are dropped when the cache is larger than `MOST_BYTES`.

What was there before a change is noted, so that a decision made on these answers can be read later as it was made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.columns.nodes.best_rows import BestRows
from stowplan.columns.nodes.table import NodeTable

MOST_BYTES = 64 * 1024 * 1024
PER_ENTRY = 16 * 1024  # an upper bound of an entry's size without its columns; it limits the number of entries
MOST_NOTED = 512  # changes; then the columns are copied, and what was noted is left to those who read it later
MOST_AT_ONCE = 8  # rows of one change; with more, copying is as good
COUNT_AFTER = 64  # noted changes, after which the bytes of answers are counted again
PER_CHANGE = 512  # bytes that a change takes, roughly
VERDICT = ""  # the name of the column of verdicts; columns of scores have the name of the plugin
TOTAL = "(total)"  # the name of the column of the weighted sums of these scores


class AnswerHistory:
    """Columns of answers, and for each change of some rows what they had before."""

    __slots__ = ("_changes", "columns")

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = columns
        self._changes: list[tuple[Any, list[Any]]] = []

    def note(self, rows: Any) -> None:
        """These rows (one, or an array of them) are about to change."""
        self._changes.append((rows, [column[rows] for column in self.columns.values()]))

    @property
    def moment(self) -> int:
        """A moment to come back to."""
        return len(self._changes)

    def at(self, moment: int) -> dict[str, Any]:
        """Return the columns as they were then; a copy."""
        columns = {name: column.copy() for name, column in self.columns.items()}
        for rows, before in reversed(self._changes[moment:]):
            for column, values in zip(columns.values(), before, strict=False):  # others were added later
                column[rows] = values
        return columns

    @property
    def nbytes(self) -> int:
        columns: int = sum([column.nbytes for column in self.columns.values()])
        return columns + PER_CHANGE * len(self._changes)


class CachedAnswers:
    """Some columns of answers, and the time (the table's clock) at which they were correct for every row."""

    __slots__ = (
        "_capacity", "best_rows", "clock", "feasible_set", "fresh", "history", "key", "ranking", "row_questions",
        "uncounted", "verdict_codes",
    )  # fmt: skip

    def __init__(self, verdict_codes: Any) -> None:
        self.verdict_codes = verdict_codes  # the meaning of the codes in the column of verdicts
        self.key: Hashable = None  # under which the cache keeps them
        self.history = AnswerHistory({})
        self.clock = self._capacity = -1
        self.row_questions: Any = None  # how to ask about single rows, if the plugins have a form for that
        self.feasible_set = 0  # grows when a row becomes feasible, or no longer is
        self.ranking: Any = None  # what the scores that are not kept by row add up to, while that is known
        self.best_rows: BestRows | None = None
        self.fresh = True  # many rows were asked about together, and no pod was placed since
        self.uncounted = 0  # changes that were noted since the cache last counted the bytes

    @property
    def columns(self) -> dict[str, Any]:
        return self.history.columns

    def stale(self, table: NodeTable, capacity: int) -> Rows:
        """Return the live rows that changed since; all live rows if some have no answer yet."""
        return table.changed_since(self.clock) if self.covers(capacity) else table.live_rows()

    def covers(self, capacity: int) -> bool:
        """True if there was an answer for every row once."""
        return self.clock >= 0 and self._capacity >= capacity

    def begin(self) -> None:
        """All rows are about to be asked about: what was there is left to those who read it later."""
        self.history, self.best_rows = AnswerHistory({}), None
        self.clock = self._capacity = -1

    def doubt(self) -> None:
        """Rows were asked about, but not by every plugin: they are asked again, and what was ranked does not hold."""
        self.feasible_set += 1
        self.best_rows = None

    def note(self, rows: Any, number: int = 1) -> None:
        """The answers of these rows (one, or an array of so many) are about to change."""
        if number > MOST_AT_ONCE or self.history.moment >= MOST_NOTED:
            self.history = AnswerHistory({name: column.copy() for name, column in self.columns.items()})
        else:
            self.history.note(rows)
        self.uncounted += 1

    def put(self, name: str, rows: Rows, values: Any, capacity: int) -> None:
        column = self.columns.get(name)
        if column is None or len(column) < capacity:
            column = self.columns[name] = np.zeros(capacity, values.dtype)
        if len(rows) and rows[-1] == len(rows) - 1:  # they ascend, so these are the first rows; a slice is faster
            column[: len(rows)] = values
        else:
            column[rows] = values
        self._capacity = capacity

    @property
    def nbytes(self) -> int:
        more = (self.best_rows, self.ranking)
        return self.history.nbytes + sum(int(each.nbytes) for each in more if each is not None)


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
        answers.key, answers.uncounted = key, 0
        self._bytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        while self._bytes > MOST_BYTES and len(self._answers) > 1:
            oldest, _ = self._answers.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)

    @property
    def nbytes(self) -> int:
        return self._bytes
