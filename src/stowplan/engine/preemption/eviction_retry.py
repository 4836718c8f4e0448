"""Pods that have to go, whatever the server says.

What is left of a group with too few members on nodes cannot work. If the server refuses to evict one of them it is told
again after 1, 2, 4 … 10 seconds, until it goes, or the group has enough members after all. As long as it lets none of
them go, all stay: the group still works.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from stowplan.engine.groups.groups import Groups, Members
from stowplan.framework.pending_actions import PendingActions
from stowplan.objects.actions import Evict, Record
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod

FIRST, LONGEST = 1.0, 10.0  # seconds


class EvictionRetry:
    def __init__(self, groups: Groups, known: Mapping[str, Pod], outbox: PendingActions) -> None:
        self._groups, self._known, self._outbox = groups, known, outbox
        # By uid, who stays unless others of its group (the first entry) go.
        self._spared: dict[str, tuple[str, Evict, Record | None]] = {}

    def evict(self, wanted: Evict, now: float, event: Record | None = None, *, refusals: int = 0) -> Any:
        """The eviction, on its way. `event` is said once the pod was told to go."""
        group = self._groups.name_of(wanted.pod.uid)
        return self._outbox.send(wanted, now, partial(self._answered, wanted, event, group, refusals))

    def goes(self, uid: str, group: str, now: float) -> None:
        """The server lets a pod of this group go. Those of it that it did not let go may be too few now."""
        self._groups.goes(uid)
        for other in [each for each, (name, *_) in self._spared.items() if each not in self._known or name == group]:
            _, wanted, event = self._spared.pop(other)
            if other in self._known:
                self.refused(wanted, now, event)

    def refused(self, wanted: Evict, now: float, event: Record | None = None, *, refusals: int = 1) -> None:
        """It counts for its group again, unless that has too few members all the same."""
        uid = wanted.pod.uid
        self._groups.stays(uid)
        members = self._groups.of(uid)
        if members is None:
            return
        if not _short(members):
            self._spared[uid] = members.group.name, wanted, event
            return
        self._groups.told_to_go(uid)
        after = min(FIRST * 2.0 ** min(refusals - 1, 30), LONGEST)
        self._outbox.remind(now + after, partial(self._again, wanted, event, refusals))

    def _again(self, wanted: Evict, event: Record | None, refusals: int, _: Result, now: float) -> Iterator[Any]:
        pod, members = self._known.get(wanted.pod.uid), self._groups.of(wanted.pod.uid)
        if pod is None or pod.terminating:
            return
        if members is not None and not _short(members):
            self._groups.stays(pod.uid)
        else:
            yield self.evict(wanted, now, event, refusals=refusals)

    def _answered(
        self, wanted: Evict, event: Record | None, group: str, refusals: int, result: Result, now: float
    ) -> Iterator[Any]:
        if not result.fine and result.status not in (404, 410):
            self.refused(wanted, now, event, refusals=refusals + 1)
            return
        self.goes(wanted.pod.uid, group, now)
        if result.fine and event is not None:
            yield event


def _short(members: Members) -> bool:
    """Has it too few members, though all stay that the server has not let go yet?"""
    undecided = sum(uid not in members.going for uid in members.leaving)
    return members.too_few(len(members.bound) + len(members.on_their_way) + undecided)
