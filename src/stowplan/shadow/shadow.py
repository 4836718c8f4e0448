"""Judges every decision of another scheduler as it comes: would our configuration have decided the same?

    a pod of ours gets a node ────────────► what are the best nodes for it, in the cluster without it?
    it is reported as unschedulable ──────► is there no node for it?
    it stays so although there is one ────► after a grace period: pending there

A decision waits until the changes of the next moment are known (`window`), and the bindings of the pods that were
certainly decided before it (`patience` at most). If it is not ours in the cluster as the watch shows it, it may be
right in the cluster that its scheduler saw: `race_search`. There is no clock, and nothing is written: changes go in,
verdicts come out. A decision costs one of ours; one that differs, some more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from stowplan.framework.profile import Profile
from stowplan.objects.changes import Change
from stowplan.objects.pods import Pod
from stowplan.shadow import verdict as kinds
from stowplan.shadow import wording
from stowplan.shadow.history import WatchHistory
from stowplan.shadow.question import DecisionQuestion, OurAnswer
from stowplan.shadow.race_search import RaceSearch
from stowplan.shadow.transitions import Transition
from stowplan.shadow.verdict import ShadowVerdict
from stowplan.shadow.waiting import WaitingPods

LONGEST = 60.0  # seconds from a decision to its binding: that of a scheduler whose requests are throttled, say
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


class Shadow:
    """`profiles`: how pods are judged, by the name of the scheduler that they ask for; other pods are not judged.

    `counts`: verdicts by kind. `missed`: decisions that were made while nothing was seen.
    """

    def __init__(self, profiles: Mapping[str, Profile], settings: ShadowSettings | None = None) -> None:
        self.profiles, self.settings = dict(profiles), settings or ShadowSettings()
        self.history = WatchHistory()
        self.state = self.history.state
        self.state.scheduler_names = self.profiles
        for profile in self.profiles.values():
            profile.attach(self.state)
        self.counts: Counter[str] = Counter()
        self.missed = 0
        self._waiting = WaitingPods(self._question, self.settings.grace)
        self._stepped = 0  # the number of the last change that a step was taken with

    @property
    def judged(self) -> int:
        return self.counts.total()

    @property
    def undecided(self) -> int:
        """How many pods were reported as unschedulable that have a node here, and whose grace period is not over."""
        return self._waiting.undecided

    # -- what comes in

    def handle(self, change: Change, now: float, *, judged: bool = True) -> None:
        """Take in a change. `judged`: False for what a list says: nobody knows in which order that happened."""
        transition = self.history.handle(change, now, judged=judged)
        pod, order = transition.pod, self.history.order
        if pod is None or pod.scheduler_name not in self.profiles:
            return
        if transition.after is None:
            if pod.pending:
                order.forget(pod.uid)
        elif not pod.pending:
            order.bound(pod.uid)
        else:
            if judged:
                order.arrived(pod, transition.number, now)
            if is_unschedulable(pod):
                order.tried(pod.uid, transition.number, now)

    # -- what comes out

    def is_due(self, now: float) -> bool:
        """True if there is a step to take."""
        return self._next_is_due(now) or self._waiting.is_due(now)

    def step(self, now: float) -> list[ShadowVerdict]:
        """Take one step: a change takes place and the decision in it is judged, or a waiting pod is looked at again."""
        if self._next_is_due(now):
            found = self._change()
        else:
            found = [each for each in (self._waiting.look(now),) if each is not None]
        self.counts.update(each.kind for each in found)
        return found

    def skip(self) -> None:
        """Leave out the next change: a step with it raised."""
        upcoming = self.history.upcoming
        if upcoming and upcoming[0].number == self._stepped:
            upcoming.popleft()

    @property
    def unjudged(self) -> int:
        """How many decisions have arrived that are not due yet."""
        return sum(map(self._is_decision, self.history.upcoming))

    def behind(self, now: float) -> float:
        """Return for how many seconds the next change is overdue."""
        upcoming = self.history.upcoming
        return max(now - self.settings.window - upcoming[0].at, 0.0) if upcoming else 0.0

    def _next_is_due(self, now: float) -> bool:
        upcoming = self.history.upcoming
        if not upcoming:
            return False
        first = upcoming[0]
        if not first.judged:
            return True
        if now < first.at + self.settings.window:
            return False
        if now >= first.at + self.settings.patience or not self._is_decision(first):
            return True
        return not self.history.order.awaited_before(first.key[1])

    def _is_decision(self, transition: Transition) -> bool:
        before, after = transition.before, transition.after
        if not (isinstance(before, Pod) and isinstance(after, Pod)) or not transition.judged:
            return False
        if after.scheduler_name not in self.profiles or not before.pending:
            return False
        return bool(after.node_name) or (is_unschedulable(after) and _report(before) != _report(after))

    # -- one change

    def _change(self) -> list[ShadowVerdict]:
        history = self.history
        transition = history.upcoming[0]
        self._stepped = transition.number
        found = self._judge(transition) if self._is_decision(transition) else []
        pod = transition.pod
        if transition.binds and not transition.judged and pod is not None and pod.scheduler_name in self.profiles:
            self.missed += 1
        history.advance()
        history.forget(transition.at - max(LONGEST, self.settings.window))
        self._follow(transition)
        return found

    def _follow(self, transition: Transition) -> None:
        """Keep in mind which pods were reported as unschedulable."""
        pod = transition.pod
        self._waiting.changed(transition.matters)
        if pod is None or pod.scheduler_name not in self.profiles:
            return
        if transition.after is None or not pod.pending or pod.terminating:
            self._waiting.remove(pod.uid)
        elif is_unschedulable(pod):
            self._waiting.add(pod, transition.at)

    def _judge(self, transition: Transition) -> list[ShadowVerdict]:
        after = transition.after
        assert isinstance(after, Pod)
        if after.node_name:
            resolved = self._waiting.bound(after.uid, transition.at)
            return [*resolved, self._judge_binding(transition, after)]
        found = self._judge_report(transition, after)
        return [] if found is None else [found]

    def _question(self, pod: Pod, there: str = "") -> DecisionQuestion:
        return DecisionQuestion(pod, self.profiles[pod.scheduler_name], self.state, there, self.settings.percentage)

    def _judge_binding(self, transition: Transition, after: Pod) -> ShadowVerdict:
        before = transition.before
        assert isinstance(before, Pod)
        question = self._question(before, after.node_name)
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

    def _judge_report(self, transition: Transition, after: Pod) -> ShadowVerdict | None:
        """A pod was reported as unschedulable. None: there is a node, and whether it gets one is to be seen."""
        question = self._question(after)
        answer = question.ask()
        if answer.agrees:
            return _verdict(kinds.SAME, question, answer, transition.at, "")
        raced = self._race(transition, question, answer)
        if raced is None:
            self._waiting.dispute(after, transition.at)
        return raced

    def _race(self, transition: Transition, question: DecisionQuestion, answer: OurAnswer) -> ShadowVerdict | None:
        """Return the verdict that a race explains the decision, if one does."""
        if answer.decision.error:  # a plugin of ours fails, whatever the cluster
            return None
        settings, at = self.settings, transition.at
        nearby = self.history.nearby(transition, settings.window)
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
        upcoming = self.history.upcoming
        overdue = upcoming[-1].at - upcoming[0].at > 2 * self.settings.patience
        return len(upcoming) if overdue else 0

    def _in_doubt(self, transition: Transition) -> str:
        """Say so if a pod was decided before this one, and it is not known how."""
        uid = self.history.order.awaited_before(transition.key[1])
        pod = self.history.latest(uid) if uid else None
        return "" if pod is None else f" (pod {pod.key} was decided before, and how is not known)"


def is_unschedulable(pod: Pod) -> bool:
    """True if its scheduler found no node for a pod."""
    if not pod.pending:
        return False
    condition = pod.condition("PodScheduled")
    return condition is not None and condition.status == "False" and condition.reason == "Unschedulable"


def _report(pod: Pod) -> object:
    condition = pod.condition("PodScheduled")
    return None if condition is None else (condition.status, condition.reason, condition.message)


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
