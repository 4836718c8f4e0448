"""The trail of a decision that was made on kept answers. It is filled in when it is read, as of the decision."""

from __future__ import annotations

from typing import Any

import numpy as np

from stowplan.columns.nodes.answer_cache import TOTAL, VERDICT, AnswerHistory
from stowplan.columns.nodes.table import LiveNames
from stowplan.framework.decision import FEASIBLE, Trail, Verdict

KeptScores = dict[str, tuple[int, Any]]  # by plugin: its weight, and one score for all, a column over rows, or None


class UnreadTrail(Trail):
    """A trail whose columns are read from the answers' history. None as a plugin's scores: they are in the history."""

    __slots__ = ("_moment", "_scores", "_verdicts", "history")

    def __init__(self, names: LiveNames, history: AnswerHistory, verdicts: list[Verdict], scores: KeptScores) -> None:
        # The other attributes stay unset, so that the first look at one of them calls `__getattr__`.
        self.names, self.outside = names, 0
        self.history, self._moment, self._verdicts, self._scores = history, history.moment, verdicts, scores

    def __getattr__(self, name: str) -> Any:
        if name not in Trail.__slots__:
            raise AttributeError(name)
        whole = self.filled()
        self.verdict_of, self.verdicts, self.feasible = whole.verdict_of, whole.verdicts, whole.feasible
        self.scores, self.totals = whole.scores, whole.totals
        return getattr(self, name)

    def own_columns(self) -> list[Any]:
        """Return the columns of scores that are not in the history."""
        return [kept for _, kept in self._scores.values() if isinstance(kept, np.ndarray)]

    def filled(self) -> Trail:
        """Return the same as a trail of its own; this one stays as it is."""
        columns, rows = self.history.at(self._moment), self._rows
        verdict_of = columns[VERDICT][rows].astype(np.int32)
        feasible = (verdict_of == FEASIBLE).nonzero()[0]
        there = rows[feasible]
        totals = columns[TOTAL][there].astype(np.int64) if TOTAL in columns else np.zeros(len(there), np.int64)
        scores: dict[str, tuple[int, Any]] = {}
        for name, (weight, kept) in self._scores.items():
            score = kept if isinstance(kept, int) else (columns[name] if kept is None else kept)[there]
            scores[name] = (weight, score)
            if kept is not None:  # the others are in the totals
                totals += np.multiply(score, weight, dtype=np.int64)
        return Trail(self.names, verdict_of, list(self._verdicts), feasible, scores, totals)

    @property
    def _rows(self) -> Any:
        names: Any = self.names
        return names.rows
