"""The trail of a decision that was made on kept answers. It is filled in when it is read, as of the decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stowplan.columns.nodes.answer_cache import TOTAL, VERDICT, AnswerHistory
from stowplan.columns.nodes.table import LiveNames
from stowplan.framework.decision import FEASIBLE, Trail, Verdict

MOST_IN_A_BYTE = 127  # codes
KeptScores = dict[str, tuple[int, Any]]  # by plugin: its weight, and one score for all, a column over rows, or None


class RejectedLater:
    """Verdicts of filters that are not kept, on the nodes that the kept ones find feasible: a code for each."""

    __slots__ = ("codes", "verdicts")

    def __init__(self, verdicts: list[Verdict], codes: npt.NDArray[np.int32]) -> None:
        self.verdicts = verdicts
        self.codes: Any = codes.astype(np.int8) if len(verdicts) < MOST_IN_A_BYTE else codes


class UnreadTrail(Trail):
    """A trail whose columns are read from the answers' history. None as a plugin's scores: they are in the history.

    `columns`: the columns among the scores, which other trails may share. `of_feasible`: scores that differ between
    nodes are not columns over rows, but of the feasible nodes, and of this trail alone.
    """

    __slots__ = ("_moment", "_of_feasible", "_rejected", "_scores", "_verdicts", "columns", "history")

    def __init__(
        self,
        names: LiveNames,
        history: AnswerHistory,
        verdicts: list[Verdict],
        scores: KeptScores,
        columns: Sequence[Any] = (),
        rejected: RejectedLater | None = None,
        *,
        of_feasible: bool = False,
    ) -> None:
        # The other attributes stay unset, so that the first look at one of them calls `__getattr__`.
        self.names, self.outside, self.columns = names, 0, columns
        self._rejected, self._of_feasible = rejected, of_feasible
        self.history, self._moment, self._verdicts, self._scores = history, history.moment, verdicts, scores

    def __getattr__(self, name: str) -> Any:
        if name not in Trail.__slots__:
            raise AttributeError(name)
        whole = self.filled()
        self.verdict_of, self.verdicts, self.feasible = whole.verdict_of, whole.verdicts, whole.feasible
        self.scores, self.totals = whole.scores, whole.totals
        return getattr(self, name)

    @property
    def unshared_bytes(self) -> int:
        """The bytes that no other trail shares."""
        found = 0 if self._rejected is None else int(self._rejected.codes.nbytes)
        if self._of_feasible:
            found += sum([score.nbytes for _, score in self._scores.values() if isinstance(score, np.ndarray)])
        return found

    def filled(self) -> Trail:
        """Return the same as a trail of its own; this one stays as it is."""
        columns, rows = self.history.at(self._moment), self._rows
        verdict_of = columns[VERDICT][rows].astype(np.int32)
        feasible, verdicts = (verdict_of == FEASIBLE).nonzero()[0], list(self._verdicts)
        if self._rejected is not None:
            codes = self._rejected.codes.astype(np.int32)
            verdict_of[feasible] = np.where(codes == FEASIBLE, FEASIBLE, codes + len(verdicts))
            feasible = feasible[codes == FEASIBLE]
            verdicts += self._rejected.verdicts
        there = rows[feasible]
        totals = columns[TOTAL][there].astype(np.int64) if TOTAL in columns else np.zeros(len(there), np.int64)
        scores: dict[str, tuple[int, Any]] = {}
        for name, (weight, kept) in self._scores.items():
            if isinstance(kept, int) or (kept is not None and self._of_feasible):
                score = kept
            else:
                score = (columns[name] if kept is None else kept)[there]
            scores[name] = (weight, score)
            if kept is not None:  # the others are in the totals
                totals += np.multiply(score, weight, dtype=np.int64)
        return Trail(self.names, verdict_of, verdicts, feasible, scores, totals)

    @property
    def _rows(self) -> Any:
        names: Any = self.names
        return names.rows
