"""The judgement of one decision: ours in the cluster of the watch, then whether a sample or a race explains theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod
from stowplan.shadow import verdict as kinds
from stowplan.shadow import wording
from stowplan.shadow.history import WatchHistory
from stowplan.shadow.question import DecisionQuestion, OurAnswer
from stowplan.shadow.race_search import RaceSearch
from stowplan.shadow.transitions import Transition
from stowplan.shadow.verdict import ShadowVerdict

BACKLOG = 500  # changes that are overdue; beyond that searches are shorter


@dataclass(frozen=True)
class ShadowSettings:
    """`window`: seconds before and after a decision in which other changes may have been known later, or earlier.

    `patience`: seconds until a decision is judged although one before it is not known. `grace`: seconds that a pod may
    wait although there is a node for it. `percentage`: percentageOfNodesToScore of the running scheduler; 0: its own
    choice. `trials`: clusters that are tried for one decision.
    """

    window: float = 2.0
    patience: float = 10.0
    grace: float = 15.0
    percentage: int = 0
    trials: int = 80


class DecisionJudge:
    """Judges the decision that is the next change of a history."""

    def __init__(self, history: WatchHistory, profiles: Mapping[str, Profile], settings: ShadowSettings) -> None:
        self._history, self._profiles, self._settings = history, profiles, settings

    def question(self, pod: Pod, there: str = "") -> DecisionQuestion:
        return DecisionQuestion(
            pod, self._profiles[pod.scheduler_name], self._history.state, there, self._settings.percentage
        )

    def binding(self, transition: Transition, after: Pod) -> ShadowVerdict:
        before = transition.before
        assert isinstance(before, Pod)
        question = self.question(before, after.node_name)
        answer = question.ask()
        if not answer.gap:
            ties = len(answer.best)
            return _verdict(kinds.TIE if ties > 1 else kinds.SAME, question, answer, transition.at, _tie(ties))
        if answer.at is not None and is_unschedulable(before) and before.nominated_node == after.node_name:
            text = "it was nominated to this node, which has room: no other is looked at"
            return _verdict(kinds.SAME, question, answer, transition.at, text)
        if answer.sampled:
            text = f"{wording.lower_score(answer)}; not all feasible nodes are looked at"
            return _verdict(kinds.SAMPLED, question, answer, transition.at, text)
        raced = self._race(transition, question, answer)
        if raced is not None:
            return raced
        rejection = question.rejection(answer)
        kind = kinds.DIFFERENT if answer.decision.node is not None else kinds.PENDING_HERE
        text = wording.lower_score(answer) if answer.at is not None else wording.rejected(after.node_name, rejection)
        text += self._in_doubt(transition)
        by, reasons = ("", ()) if rejection is None else (rejection.plugin, rejection.reasons)
        return _verdict(kind, question, answer, transition.at, text, plugin=by, reasons=reasons)

    def report(self, transition: Transition, after: Pod) -> ShadowVerdict | None:
        """A pod was reported as unschedulable. None: there is a node, and whether it gets one is to be seen."""
        question = self.question(after)
        answer = question.ask()
        if answer.agrees:
            return _verdict(kinds.SAME, question, answer, transition.at, "")
        return self._race(transition, question, answer)

    def _race(self, transition: Transition, question: DecisionQuestion, answer: OurAnswer) -> ShadowVerdict | None:
        """Return the verdict that a race explains the decision, if one does."""
        if answer.decision.error:  # a plugin of ours fails, whatever the cluster
            return None
        settings, at = self._settings, transition.at
        nearby = self._history.nearby(transition, settings.window)
        trials = settings.trials if self._overdue() < BACKLOG else settings.trials // 8
        found = RaceSearch(question, answer, nearby, trials).find()
        if found is None:
            return None
        undone = [wording.change(each, transition) for each in found if each.number < transition.number]
        made = [wording.change(each, transition) for each in found if each.number > transition.number]
        text = wording.race(question.there, undone, made)
        return _verdict(kinds.RACE, question, answer, at, text, because=(*undone, *made))

    def _overdue(self) -> int:
        """How many changes have waited for longer than a decision has to."""
        upcoming = self._history.upcoming
        overdue = upcoming[-1].at - upcoming[0].at > 2 * self._settings.patience
        return len(upcoming) if overdue else 0

    def _in_doubt(self, transition: Transition) -> str:
        """Say so if a pod was decided before this one, and it is not known how."""
        uid = self._history.order.awaited_before(transition.key[1])
        pod = self._history.latest(uid) if uid else None
        return "" if pod is None else f" (pod {pod.key} was decided before, and how is not known)"


def is_unschedulable(pod: Pod) -> bool:
    """True if its scheduler found no node for a pod."""
    if not pod.pending:
        return False
    condition = pod.condition("PodScheduled")
    return condition is not None and condition.status == "False" and condition.reason == "Unschedulable"


def _tie(ties: int) -> str:
    return f"one of {ties} best nodes" if ties > 1 else ""


def _verdict(
    kind: str,
    question: DecisionQuestion,
    answer: OurAnswer,
    at: float,
    explanation: str,
    *,
    because: tuple[str, ...] = (),
    plugin: str = "",
    reasons: tuple[str, ...] = (),
) -> ShadowVerdict:
    pod, best = question.pod, answer.best
    return ShadowVerdict(
        kind, pod.key, pod.uid, pod.scheduler_name, at, question.there, best[0] if best else "", len(best),
        explanation, because, answer.total_there, answer.total_here,
        answer.scores() if kind not in (kinds.SAME, kinds.TIE) else (), plugin, reasons,
    )  # fmt: skip
