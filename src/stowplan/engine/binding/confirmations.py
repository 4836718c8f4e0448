"""Pods that are bound by the answer to their binding, until the watch shows it.

An answer may be wrong: something between us and the API server said "created", and nothing was. The room of such a pod
must not be held for ever. So a pod that the watch does not confirm in time is read again:

    bound ── the watch shows it ─► out
      │ CONFIRM_WITHIN
      ▼
    read ─┬─ on its node: the reader passes it on as the watch would ─► out
          ├─ no answer: read again later
          ├─ gone ─► `missing`
          └─ there, and after SETTLE_WITHIN still not on its node ─► `unbound`: it is scheduled again

Pods are read a few at a time: if the watch is broken, it will show most of them by itself soon. While every pod is
confirmed no reminder is left behind.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from stowplan.engine import messages
from stowplan.engine.binding.assumed_pod import AssumedPod, BindStep
from stowplan.engine.outbox import Outbox
from stowplan.objects.actions import Read
from stowplan.objects.changes import Result

CONFIRM_WITHIN = 15.0  # seconds until a pod that the watch does not show bound is read
SETTLE_WITHIN = 1.0  # seconds until what was read has been handled
MOST_READS = 50  # in a second


class Confirmations:
    def __init__(self, outbox: Outbox, assumed_pods: dict[str, AssumedPod]) -> None:
        """`assumed_pods`: all of them, by uid."""
        self._outbox, self._assumed_pods = outbox, assumed_pods
        self._waiting: deque[tuple[float, AssumedPod]] = deque()  # by the time when each is read
        self._reminder = 0
        self.missing: list[str] = []  # uids of pods that the API server does not have
        self.unbound: list[AssumedPod] = []  # pods that are not bound after all

    def add(self, assumed_pod: AssumedPod, now: float) -> None:
        """The answer to its binding says that the pod is bound."""
        self._waiting.append((now + CONFIRM_WITHIN, assumed_pod))
        if not self._reminder:
            self._remind(now + CONFIRM_WITHIN)

    def confirmed(self) -> None:
        """A pod was seen bound."""
        waiting = self._waiting
        while waiting and not self._waits(waiting[0][1]):
            waiting.popleft()
        if not waiting and self._reminder:
            self._outbox.forget([self._reminder])
            self._reminder = 0

    def _waits(self, assumed_pod: AssumedPod) -> bool:
        return self._assumed_pods.get(assumed_pod.uid) is assumed_pod and assumed_pod.step is BindStep.BOUND

    def _remind(self, at: float) -> None:
        self._reminder = self._outbox.remind(at, self._due)

    def _due(self, _: Result, now: float) -> None:
        self._reminder, reads = 0, 0
        while self._waiting and self._waiting[0][0] <= now and reads < MOST_READS:
            assumed_pod = self._waiting.popleft()[1]
            if self._waits(assumed_pod):
                reads += 1
                read = partial(self._was_read, assumed_pod)
                self._outbox.send(Read(pod=messages.ref(assumed_pod.pod)), now, read)
        if self._waiting:
            self._remind(max(self._waiting[0][0], now + 1.0))

    def _was_read(self, assumed_pod: AssumedPod, result: Result, now: float) -> None:
        if not self._waits(assumed_pod):
            return
        if result.status in (404, 410):
            self.missing.append(assumed_pod.uid)
        elif result.succeeded:
            self._outbox.remind(now + SETTLE_WITHIN, partial(self._settled, assumed_pod))
        else:
            self.add(assumed_pod, now)

    def _settled(self, assumed_pod: AssumedPod, _: Result, now: float) -> None:  # noqa: ARG002
        if self._waits(assumed_pod):
            self.unbound.append(assumed_pod)
