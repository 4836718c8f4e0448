"""The question about one decision of the running scheduler, and our answer in the cluster as it is (or in a trial)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.columns.state import ClusterState
from stowplan.framework import search
from stowplan.framework.decision import FEASIBLE, UNSEEN, Decision
from stowplan.framework.decision import Verdict as Rejection
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod
from stowplan.shadow.verdict import PluginScore

INFEASIBLE = float("inf")


@dataclass(frozen=True, slots=True)
class OurAnswer:
    """`at`: the position of their node among the feasible ones. `gap`: how far the decision is from ours; 0: none."""

    decision: Decision
    at: int | None
    gap: float
    sampled: bool = False

    @property
    def agrees(self) -> bool:
        return not self.gap or self.sampled

    @property
    def best(self) -> list[str]:
        return self.decision.trail.best()

    @property
    def total_there(self) -> int | None:
        return None if self.at is None else int(self.decision.trail.totals[self.at])

    @property
    def total_here(self) -> int | None:
        totals = self.decision.trail.totals
        return int(totals.max()) if len(totals) else None

    def scores(self) -> tuple[PluginScore, ...]:
        """Return each plugin's score of their node and of the first of ours."""
        trail = self.decision.trail
        if not len(trail.totals):
            return ()
        here, found = int(trail.totals.argmax()), []
        for name, (weight, score) in trail.scores.items():
            there = None if self.at is None else score if isinstance(score, int) else int(score[self.at])
            found.append(PluginScore(name, weight, there, score if isinstance(score, int) else int(score[here])))
        return tuple(found)


@dataclass(frozen=True)
class DecisionQuestion:
    """`there`: the node that the running scheduler chose; empty: it found none. `percentage`: of the nodes it looks at,
    0 for kube-scheduler's own choice.
    """

    pod: Pod
    profile: Profile
    state: ClusterState
    there: str
    percentage: int = 0

    def ask(self) -> OurAnswer:
        decision = schedule_one(self.pod, self.state, self.profile, preempt=False)
        if not self.there:
            return OurAnswer(decision, None, 0 if decision.node is None else max(len(decision.trail.feasible), 1))
        if decision.node is None:
            return OurAnswer(decision, None, INFEASIBLE)
        totals, at = decision.trail.totals, self._position(decision)
        if at is None:
            return OurAnswer(decision, None, INFEASIBLE)
        gap = int(totals.max()) - int(totals[at])
        return OurAnswer(decision, at, gap, bool(gap) and self._best_of_a_sample(decision, at))

    def _position(self, decision: Decision) -> int | None:
        """Return where their node is among the feasible ones."""
        place, feasible = self._place(), decision.trail.feasible
        at = int(np.searchsorted(feasible, place)) if place is not None else len(feasible)
        return at if at < len(feasible) and feasible[at] == place else None

    def _place(self) -> int | None:
        """Return the position of their node among all nodes."""
        rows, row = self.state.table.live_rows(), self.state.table.row_of.get(self.there)
        at = len(rows) if row is None else int(np.searchsorted(rows, row))
        return at if at < len(rows) and rows[at] == row else None

    def _best_of_a_sample(self, decision: Decision, at: int) -> bool:
        """True if a scheduler that stops after enough feasible nodes may have seen none that is better."""
        trail = decision.trail
        listed = len(trail.names) if decision.limited_to is None else len(decision.limited_to)
        enough, feasible = search.wanted(listed, self.percentage), len(trail.feasible)
        if enough >= feasible or int((trail.totals > trail.totals[at]).sum()) > feasible - enough:
            return False
        totals = trail.totals.copy()
        totals[at] = totals.min() - 1  # their node is in the sample, and beside it are the worst
        sample = np.sort(trail.feasible[np.argsort(totals, kind="stable")[:enough]])
        rows = self.state.table.live_rows()[sample]
        found = schedule_one(self.pod, self.state, self.profile, preempt=False, within=rows)
        there = self._position(found)
        return there is not None and bool(found.trail.totals[there] == found.trail.totals.max())

    def rejection(self, answer: OurAnswer) -> Rejection | None:
        """Return why their node has no room for the pod, or why none has."""
        decision = answer.decision
        whole = decision.gated or decision.refused
        if whole is not None or answer.at is not None or not self.there:
            return whole
        place = self._place()
        if decision.error:
            return Rejection(decision.failure.plugin if decision.failure else "", "Error", (decision.error,))
        if place is None:
            return Rejection("", "", (f"there is no node {self.there}",))
        code = int(decision.trail.verdict_of[place]) if place < len(decision.trail.verdict_of) else UNSEEN
        return None if code in (UNSEEN, FEASIBLE) else decision.trail.verdicts[code]
