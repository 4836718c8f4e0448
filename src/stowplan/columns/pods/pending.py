"""Pods that have no node yet: how many of them match a question.

Decisions have no use for it, what is said about policies has. So pods are only remembered at first; they are counted,
and kept in step from then on, once somebody asks.
"""

from __future__ import annotations

from stowplan.columns.pods.match_counts import LabelSet, MatchCounts
from stowplan.objects.affinity import PodQuery
from stowplan.objects.applications import DRIVER, identity
from stowplan.objects.pods import Pod

NOWHERE = 0  # the one row of a count without nodes


class PendingPods:
    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._counting: MatchCounts | None = None
        self._sets: dict[str, LabelSet] = {}  # where each pod is counted, if anybody asked
        self.drivers: dict[str, Pod] = {}  # those of them that will want executors

    def heard(self, pod: Pod, gone: bool) -> None:
        """A pod came, changed or went."""
        before = self._pods.pop(pod.uid, None)
        self.drivers.pop(pod.uid, None)
        if before is not None and self._counting is not None:
            self._counting.remove(before, self._sets.pop(pod.uid), 1, False)
        if gone or pod.terminating or not pod.pending:
            return
        self._pods[pod.uid] = pod
        if identity(pod).role == DRIVER:
            self.drivers[pod.uid] = pod
        if self._counting is not None:
            self._count(pod, self._counting)

    def count(self, query: PodQuery) -> int:
        """Those that match; pods on their way to a node are among them until they are bound."""
        if self._counting is None:
            self._counting = MatchCounts()
            for pod in self._pods.values():
                self._count(pod, self._counting)
        counter, _ = self._counting.ask((query,), False, 1)
        return counter.tally.count(NOWHERE)

    def _count(self, pod: Pod, counting: MatchCounts) -> None:
        self._sets[pod.uid] = counting.add(pod, NOWHERE, 1, False)
