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

from stowplan.framework.profile import Profile
from stowplan.objects.changes import Change
from stowplan.objects.pods import Pod
from stowplan.shadow.history import WatchHistory
from stowplan.shadow.judge import DecisionJudge, ShadowSettings, is_unschedulable
from stowplan.shadow.transitions import Transition
from stowplan.shadow.verdict import ShadowVerdict
from stowplan.shadow.waiting import WaitingPods

LONGEST = 60.0  # seconds from a decision to its binding: that of a scheduler whose requests are throttled, say


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
        self._judge = DecisionJudge(self.history, self.profiles, self.settings)
        self._waiting = WaitingPods(self._judge.question, self.settings.grace)
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
        found = self._judged(transition) if self._is_decision(transition) else []
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

    def _judged(self, transition: Transition) -> list[ShadowVerdict]:
        after = transition.after
        assert isinstance(after, Pod)
        if after.node_name:
            resolved = self._waiting.bound(after.uid, transition.at)
            return [*resolved, self._judge.binding(transition, after)]
        found = self._judge.report(transition, after)
        if found is None:
            self._waiting.dispute(after, transition.at)
        return [] if found is None else [found]


def _report(pod: Pod) -> object:
    condition = pod.condition("PodScheduled")
    return None if condition is None else (condition.status, condition.reason, condition.message)
