"""Pods that have to go, whatever the server says.

What is left of a group with too few members on nodes cannot work. If the server refuses to evict one of them it is told
again after 1, 2, 4 … 10 seconds, until it goes, or the group has enough members after all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from stowplan.engine.groups import Groups
from stowplan.engine.outbox import Outbox
from stowplan.objects.actions import Evict, Record
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod

FIRST, LONGEST = 1.0, 10.0  # seconds


class Insisting:
    def __init__(self, groups: Groups, known: Mapping[str, Pod], outbox: Outbox) -> None:
        self._groups, self._known, self._outbox = groups, known, outbox

    def evict(self, wanted: Evict, now: float, event: Record | None = None, *, refusals: int = 0) -> Any:
        """The eviction, on its way. `event` is said once the pod was told to go."""
        return self._outbox.send(wanted, now, partial(self._answered, wanted, event, refusals))

    def refused(self, wanted: Evict, now: float, event: Record | None = None, *, refusals: int = 1) -> None:
        """It counts for its group again, unless that has too few members all the same."""
        uid = wanted.pod.uid
        self._groups.stays(uid)
        members = self._groups.of(uid)
        if members is not None and members.placed < members.group.minimum:
            self._groups.told_to_go(uid)
            after = min(FIRST * 2.0 ** min(refusals - 1, 30), LONGEST)
            self._outbox.remind(now + after, partial(self._again, wanted, event, refusals))

    def _again(self, wanted: Evict, event: Record | None, refusals: int, _: Result, now: float) -> Iterator[Any]:
        pod = self._known.get(wanted.pod.uid)
        if pod is not None and not pod.terminating:
            yield self.evict(wanted, now, event, refusals=refusals)

    def _answered(
        self, wanted: Evict, event: Record | None, refusals: int, result: Result, now: float
    ) -> Iterator[Any]:
        if not result.fine and result.status not in (404, 410):
            self.refused(wanted, now, event, refusals=refusals + 1)
        elif result.fine and event is not None:
            yield event
