"""The latest decisions with their trails, in a ring bounded in bytes. A new decision pushes out the oldest ones.

Few trails are ever read, so they are packed: verdicts as small numbers, scores as bytes. Feasible nodes and totals
follow from these, and are computed again when a decision is read. Of pods only the names are kept: a pod may have
hundreds of kilobytes of annotations, and stays here long after it is deleted. Texts count as long as they are.

Decisions made on kept answers share the columns that they are read from; these count once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from stowplan.columns.nodes.answer_cache import AnswerHistory
from stowplan.framework.decision import FEASIBLE, Decision, Trail
from stowplan.framework.unread_trail import UnreadTrail
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.pods import Pod

DEFAULT_BYTES = 32 * 1024 * 1024
NOTHING = np.zeros(0, np.int64)
PER_NAME = 8
PER_DECISION = 2048  # bytes of a decision besides its arrays and texts, roughly
PER_VERDICT = 160
PER_NAMED_POD = 640


class DecisionLog:
    """`on_decision` is called with each decision, before it is packed."""

    def __init__(self, limit: int = DEFAULT_BYTES) -> None:
        self.on_decision: Callable[[Decision], None] | None = None
        self._limit = limit
        self._bytes = 0
        self._names: Any = ()
        self._histories: dict[AnswerHistory, SharedHistory] = {}
        self._decisions: OrderedDict[str, PackedDecision] = OrderedDict()

    def __len__(self) -> int:
        return len(self._decisions)

    @property
    def nbytes(self) -> int:
        return self._bytes

    def keep(self, decision: Decision) -> None:
        """Remember this decision as the pod's latest."""
        if self.on_decision is not None:
            self.on_decision(decision)
        packed = PackedDecision(decision)
        if decision.trail.names is not self._names:  # the nodes changed: their list is kept, too
            self._names = decision.trail.names
            packed.nbytes += PER_NAME * len(self._names)
        self._forget(decision.pod.uid)
        self._decisions[decision.pod.uid] = packed
        self._bytes += packed.nbytes
        if isinstance(decision.trail, UnreadTrail):
            self._share(decision.trail)
        while self._bytes > self._limit and len(self._decisions) > 1:
            self._forget(next(iter(self._decisions)))

    def latest(self, uid: str) -> Decision | None:
        found = self._decisions.get(uid)
        return None if found is None else found.unpacked()

    def _forget(self, uid: str) -> None:
        found = self._decisions.pop(uid, None)
        if found is not None:
            self._bytes -= found.nbytes
            self._let_go(found.history)

    def _share(self, trail: UnreadTrail) -> None:
        shared = self._histories.get(trail.history)
        if shared is None:
            shared = self._histories[trail.history] = SharedHistory(trail.history)
        shared.decisions += 1
        self._bytes += shared.growth(trail)

    def _let_go(self, history: AnswerHistory | None) -> None:
        shared = None if history is None else self._histories[history]
        if shared is not None:
            shared.decisions -= 1
            if not shared.decisions:
                del self._histories[shared.history]
                self._bytes -= shared.nbytes


class SharedHistory:
    """What decisions are read from, how many of them, and how many bytes of it are counted."""

    __slots__ = ("_columns", "_columns_bytes", "decisions", "history", "nbytes")

    def __init__(self, history: AnswerHistory) -> None:
        self.history, self.decisions, self.nbytes, self._columns_bytes = history, 0, 0, 0
        self._columns: dict[int, Any] = {}  # columns of scores beside the history, by id; several decisions share each

    def growth(self, trail: UnreadTrail) -> int:
        """Count its bytes with those of this trail, and return how many more there are than before."""
        for column in trail.columns:
            if id(column) not in self._columns:
                self._columns[id(column)] = column
                self._columns_bytes += column.nbytes
        before, self.nbytes = self.nbytes, self.history.nbytes + self._columns_bytes
        return self.nbytes - before


class PackedDecision:
    """A decision whose trail takes a few bytes per node. The decision itself is packed: it is not used elsewhere."""

    __slots__ = ("_decision", "nbytes")

    def __init__(self, decision: Decision) -> None:
        trail: Any = decision.trail
        decision.pod = _name_of(decision.pod)
        self._decision, self.nbytes = decision, PER_DECISION + len(decision.error)
        if isinstance(trail, UnreadTrail):
            self.nbytes += trail.unshared_bytes
            return
        if len(trail.feasible) == len(trail.verdict_of):
            trail.verdict_of = NOTHING  # all nodes were feasible
        elif len(trail.verdicts) < 127:
            trail.verdict_of = trail.verdict_of.astype(np.int8)
        trail.feasible = trail.totals = NOTHING
        self.nbytes += trail.verdict_of.nbytes
        for _, score in trail.scores.values():
            if score.__class__ is not int:
                self.nbytes += score.nbytes
        if decision.node is None:
            self._pack_failure(decision)

    def _pack_failure(self, decision: Decision) -> None:
        """What only a decision without a node has."""
        found, refusals = decision.post_filter, (decision.gated, decision.refused)
        if found is not None:
            if found.candidate is not None:
                victims = tuple(map(_name_of, found.candidate.victims))
                self.nbytes += PER_NAMED_POD * len(victims)
                found = replace(found, candidate=replace(found.candidate, victims=victims))
            decision.post_filter = found
            self.nbytes += sum(map(len, found.reasons))
        for verdict in (*decision.trail.verdicts, *(each for each in refusals if each is not None)):
            self.nbytes += PER_VERDICT + sum(map(len, verdict.reasons))
        self.nbytes += PER_NAME * len(decision.limited_to or ())

    @property
    def history(self) -> AnswerHistory | None:
        """What the trail is read from, if it shares that with other decisions."""
        trail = self._decision.trail
        return trail.history if isinstance(trail, UnreadTrail) else None

    def unpacked(self) -> Decision:
        packed = self._decision.trail
        if isinstance(packed, UnreadTrail):
            return replace(self._decision, trail=packed.filled())
        verdict_of = packed.verdict_of.astype(np.int32)
        if not len(verdict_of):
            verdict_of = np.full(len(packed.names), FEASIBLE, np.int32)
        looked = self._decision.refused is None and self._decision.gated is None
        feasible = (verdict_of == FEASIBLE).nonzero()[0] if looked else NOTHING
        scores = {name: (weight, wide(score)) for name, (weight, score) in packed.scores.items()}
        totals = np.zeros(len(feasible), np.int64)
        for weight, score in scores.values():
            totals += score * weight
        trail = Trail(packed.names, verdict_of, packed.verdicts, feasible, scores, totals, packed.outside)
        return replace(self._decision, trail=trail)


def _name_of(pod: Pod) -> Pod:
    """Return the pod's name and uid alone."""
    return Pod(ObjectMeta(pod.name, pod.namespace, pod.uid))


def wide(score: Any) -> Any:
    return score if isinstance(score, int) else score.astype(np.int64)
