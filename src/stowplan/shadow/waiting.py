"""Pods that their scheduler reported as unschedulable: is there a node for one of them now, and for how long already?

A scheduler tries such a pod again when something changes that may help, after a backoff of some seconds. So a node that
is there for a pod counts only after a grace period. Each pod is looked at a few times in a grace period, if anything
has changed, and only so many in a second.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from stowplan.objects.pods import Pod
from stowplan.shadow import verdict as kinds
from stowplan.shadow.question import DecisionQuestion, OurAnswer
from stowplan.shadow.verdict import ShadowVerdict

LOOKS = 3  # at each pod in a grace period
PAUSE = 0.05  # seconds between two looks


@dataclass(slots=True)
class WaitingPod:
    """`since`: since when there has been a node for it. `disputed`: there was one at the time of the report."""

    pod: Pod
    due: float
    since: float | None = None
    disputed: bool = False
    told: bool = False
    version: int = -1  # of the cluster when it was looked at last


class WaitingPods:
    def __init__(self, ask: Callable[[Pod], DecisionQuestion], grace: float) -> None:
        self._ask, self._grace = ask, grace
        self._pods: OrderedDict[str, WaitingPod] = OrderedDict()  # by uid; the next one to look at comes first
        self._version = 0
        self._paused_until = float("-inf")

    @property
    def undecided(self) -> int:
        return sum(each.disputed and not each.told for each in self._pods.values())

    def changed(self, matters: bool) -> None:
        """The cluster has changed; `matters`: in a way that decisions may see."""
        self._version += matters

    def add(self, pod: Pod, now: float) -> None:
        """A pod was reported as unschedulable, or has changed since."""
        found = self._pods.get(pod.uid)
        if found is None:
            self._pods[pod.uid] = WaitingPod(pod, now + self._grace / LOOKS)
        else:
            found.pod = pod

    def dispute(self, pod: Pod, now: float) -> None:
        """There is a node for a pod that was just reported as unschedulable."""
        found = self._pods.get(pod.uid)
        if found is None:
            found = self._pods[pod.uid] = WaitingPod(pod, now + self._grace / LOOKS)
        found.pod, found.disputed = pod, True
        found.since = now if found.since is None else found.since

    def bound(self, uid: str, now: float) -> list[ShadowVerdict]:
        """A pod has its node. If there was one for it before, its scheduler was only later."""
        found = self._pods.pop(uid, None)
        if found is None or not found.disputed or found.told or found.since is None:
            return []
        return [self._resolved(found, now, f"it has its node {now - found.since:.1f} s after that")]

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def is_due(self, now: float) -> bool:
        first = next(iter(self._pods.values()), None)
        return first is not None and first.due <= now and now >= self._paused_until

    def look(self, now: float) -> ShadowVerdict | None:
        """Look at the pod that is due. Return a verdict if one can be given now."""
        uid, found = next(iter(self._pods.items()))
        self._pods.move_to_end(uid)
        found.due = now + self._grace / LOOKS
        if found.version == self._version and found.since is None:
            return None
        found.version, self._paused_until = self._version, now + PAUSE
        question = self._ask(found.pod)
        answer = question.ask()
        if answer.decision.node is None:
            was_disputed, found.disputed = found.disputed and not found.told, False
            verdict = self._resolved(found, now, "and now there is none any more") if was_disputed else None
            found.since, found.told = None, False
            return verdict
        if found.since is None:
            found.since = now
        if found.told or now - found.since < self._grace:
            return None
        found.told = True
        return self._overdue(found, question, answer, now)

    def _resolved(self, found: WaitingPod, now: float, how: str) -> ShadowVerdict:
        pod = found.pod
        text = f"there was a node when it was reported as unschedulable, {how}"
        return ShadowVerdict(kinds.RACE, pod.key, pod.uid, pod.scheduler_name, now, "", "", 0, text)

    def _overdue(self, found: WaitingPod, question: DecisionQuestion, answer: OurAnswer, now: float) -> ShadowVerdict:
        pod, best, since = question.pod, answer.best, now - (found.since or now)
        condition = pod.condition("PodScheduled")
        text = f"for {since:.0f} s there has been a node for it; there: {condition.message if condition else ''}"
        return ShadowVerdict(
            kinds.PENDING_THERE, pod.key, pod.uid, pod.scheduler_name, now, "", best[0], len(best), text,
            total_here=answer.total_here,
        )  # fmt: skip
