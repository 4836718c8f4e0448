"""Cached answers about a few rows that changed, asked one node at a time.

A binding changes one row, and an array operation costs about a microsecond however short the array is. So a plugin may
have a second form of its filter and score, for one node: `fits` and `rate`, as in `per_node`. If every plugin whose
answers are cached has it, the rows that changed are asked about in that form. `check_plugin` compares both forms.

A filter that looks at the node object alone (`local = "node"`) is not asked again about a feasible node on which only
pods changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stowplan.columns.nodes.answer_cache import TOTAL, VERDICT, CachedAnswers
from stowplan.columns.nodes.best_rows import LOWEST
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import FEASIBLE, UNRESOLVABLE, UNSCHEDULABLE, Verdict
from stowplan.framework.per_node import refusals
from stowplan.framework.plugin_calls import call, wrong
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.framework.scoring import MAX_SCORE
from stowplan.objects.pods import Pod
from stowplan.objects.texts import shortened

FEW = 8  # rows; for more, arrays are faster


class RowQuestions:
    """The filters and scorers of one cached answer, as questions about one node."""

    __slots__ = ("_about_pods", "_filters", "_scorers")

    def __init__(self, filters: Sequence[EnabledPlugin[Any]], scorers: Sequence[EnabledPlugin[Any]]) -> None:
        self._filters, self._scorers = tuple(filters), tuple(scorers)
        self._about_pods = tuple(each for each in filters if getattr(each.plugin, "local", "") != "node")

    def refresh(self, pod: Pod, state: ClusterState, rows: Sequence[int], answers: CachedAnswers) -> None:
        """Ask about these rows again."""
        changed_at, best_rows, ranking = state.table.node_version, answers.best_rows, answers.ranking
        for row in rows:
            node = OneNode(state, row)
            before = int(answers.columns[VERDICT][row])
            judged = before == FEASIBLE and changed_at[row] <= answers.clock
            answers.note(row)
            columns = answers.columns
            verdict = self._verdict(pod, node, self._about_pods if judged else self._filters, answers)
            columns[VERDICT][row] = verdict
            total = 0
            for enabled in self._scorers:
                rating = columns[enabled.name][row] = _rating(enabled, pod, node)
                total += enabled.weight * rating
            if self._scorers:
                columns[TOTAL][row] = total
            if (before == FEASIBLE) != (verdict == FEASIBLE):
                answers.feasible_set += 1
            if best_rows is not None:
                best_rows.put(row, ranking.rank(row, total) if verdict == FEASIBLE else LOWEST)

    @staticmethod
    def _verdict(pod: Pod, node: OneNode, filters: Sequence[EnabledPlugin[Any]], answers: CachedAnswers) -> int:
        for enabled in filters:
            answer = call(enabled, enabled.plugin.fits, pod, node)
            if answer is None:
                continue
            given = call(enabled, refusals, answer, node.name)
            if given:
                code = UNSCHEDULABLE if all(resolvable for _, resolvable in given) else UNRESOLVABLE
                reasons = tuple(shortened(reason) for reason, _ in given)
                number: int = answers.verdict_codes.number(Verdict(enabled.name, code, reasons))
                return number
        return FEASIBLE


def row_questions(
    filters: Sequence[EnabledPlugin[Any]], scorers: Sequence[EnabledPlugin[Any]], profile: Profile
) -> RowQuestions | None:
    """The questions of these plugins; None if one of them has no form for one node."""
    key = (tuple([each.name for each in filters]), tuple([each.name for each in scorers]))
    known: dict[object, RowQuestions | None] = profile.row_questions
    if key not in known:
        fit = all(hasattr(each.plugin, "fits") for each in filters)
        rate = all(hasattr(each.plugin, "rate") for each in scorers)
        known[key] = RowQuestions(filters, scorers) if fit and rate else None
    return known[key]


def _rating(enabled: EnabledPlugin[Any], pod: Pod, node: OneNode) -> int:
    rating = call(enabled, enabled.plugin.rate, pod, node)
    if type(rating) is not int or not 0 <= rating <= MAX_SCORE:
        raise wrong(enabled, enabled.plugin.rate, rating, f"a whole number within 0 and {MAX_SCORE} was due")
    return rating
