"""Pods that have no node yet: how many of them match a query, and which of them meet a condition.

Most decisions do not need the answers. A query or a condition is therefore answered from all pods the first time, and
its answer is kept up to date from then on.

A pod that is assumed to be on a node, or is there in a trial, still waits for the API server's word. It is among the
pods that meet a condition, and not among those that are counted: it counts on its node.
"""

from __future__ import annotations

from collections.abc import Callable

from stowplan.columns.pods.match_counts import LabelSet, MatchCounts
from stowplan.objects.affinity import PodQuery
from stowplan.objects.pods import Pod

ROW = 0  # the only row of the counts, which have no nodes


class PendingPods:
    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._counting: MatchCounts | None = None
        self._sets: dict[str, LabelSet] = {}  # where each pod is counted, once there was a query
        self._placed: set[str] = set()  # uids of those that are assumed to be on a node
        self._meeting: dict[Callable[[Pod], bool], dict[str, Pod]] = {}  # by condition

    def update(self, pod: Pod, gone: bool) -> None:
        """A pod is new, has changed, or (`gone`) is deleted."""
        before = self._pods.pop(pod.uid, None)
        for met in self._meeting.values():
            met.pop(pod.uid, None)
        if before is not None:
            self._uncount(before)
        if gone or pod.terminating or not pod.pending:
            self._placed.discard(pod.uid)
            return
        self._pods[pod.uid] = pod
        for condition, met in self._meeting.items():
            if condition(pod):
                met[pod.uid] = pod
        if self._counting is not None:
            self._count(pod, self._counting)

    def placed(self, uid: str) -> None:
        """A pod is assumed to be on a node."""
        pod = self._pods.get(uid)
        if pod is not None:
            self._uncount(pod)
            self._placed.add(uid)

    def displaced(self, uid: str) -> None:
        """It is not any more."""
        if uid in self._placed:
            self._placed.remove(uid)
            if self._counting is not None:
                self._count(self._pods[uid], self._counting)

    def waits(self, uid: str) -> bool:
        """True if the pod is one of those that are counted."""
        return uid in self._pods and uid not in self._placed

    def count(self, query: PodQuery) -> int:
        """Return how many pods match. Assumed pods are not among them."""
        if self._counting is None:
            self._counting = MatchCounts()
            for pod in self._pods.values():
                self._count(pod, self._counting)
        counter, _ = self._counting.ask((query,), False, 1)
        return counter.tally.count(ROW)

    def meeting(self, condition: Callable[[Pod], bool]) -> list[Pod]:
        """Return the pods that meet a condition: a function of the pod alone, the same object for every call."""
        met = self._meeting.get(condition)
        if met is None:
            met = self._meeting[condition] = {uid: pod for uid, pod in self._pods.items() if condition(pod)}
        return list(met.values())

    def _count(self, pod: Pod, counting: MatchCounts) -> None:
        if pod.uid not in self._placed:
            self._sets[pod.uid] = counting.add(pod, ROW, 1, False)

    def _uncount(self, pod: Pod) -> None:
        labels = self._sets.pop(pod.uid, None)
        if labels is not None and self._counting is not None:
            self._counting.remove(pod, labels, 1, False)
