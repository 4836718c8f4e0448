"""Evictions that the API server refuses: retried while the victim's group is below its minimum.

The rest of a group that is below its minimum cannot work; nor may the rest of a group stay that is disrupted only as a
whole. If the API server refuses to evict one of its pods, the eviction is requested again after 1, 2, 4 … 10 seconds,
until it is accepted, or the group has enough members after all. While the API server accepts no eviction at all, all
members stay: the group still works.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from stowplan.engine.groups.group import GroupState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.outbox import Outbox
from stowplan.objects.actions import Evict, Record
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod

FIRST, LONGEST = 1.0, 10.0  # seconds


class EvictionRetry:
    def __init__(self, groups: Groups, known: Mapping[str, Pod], outbox: Outbox) -> None:
        """`known`: every pod that the API server told us about, by uid."""
        self._groups, self._known, self._outbox = groups, known, outbox
        # Refused evictions by uid, with the victim's group: retried only if another member of the group is evicted.
        self._spared: dict[str, tuple[str, Evict, Record | None]] = {}

    def evict(self, eviction: Evict, now: float, event: Record | None = None, *, refusals: int = 0) -> None:
        """Request an eviction. `event` is sent once the API server accepted it."""
        group = self._groups.name_of(eviction.pod.uid)
        self._outbox.send(eviction, now, partial(self._answered, eviction, event, group, refusals))

    def accepted(self, uid: str, group: str, now: float) -> None:
        """The eviction of a member was accepted. Members that were spared may be too few now."""
        self._groups.evicted(uid)
        for other in [each for each, (name, *_) in self._spared.items() if each not in self._known or name == group]:
            _, eviction, event = self._spared.pop(other)
            if other in self._known:
                self.refused(eviction, now, event)

    def refused(self, eviction: Evict, now: float, event: Record | None = None, *, refusals: int = 1) -> None:
        """The victim counts for its group again, unless the group is below its minimum all the same."""
        uid = eviction.pod.uid
        self._groups.eviction_failed(uid)
        found = self._groups.of(uid)
        if found is None:
            return
        if not _falls(found):
            self._spared[uid] = found.group.name, eviction, event
            return
        self._groups.evicting(uid)
        after = min(FIRST * 2.0 ** min(refusals - 1, 30), LONGEST)
        self._outbox.remind(now + after, partial(self._again, eviction, event, refusals))

    def _again(self, eviction: Evict, event: Record | None, refusals: int, _: Result, now: float) -> None:
        pod, found = self._known.get(eviction.pod.uid), self._groups.of(eviction.pod.uid)
        if pod is None or pod.terminating:
            return
        if found is not None and not _falls(found):
            self._groups.eviction_failed(pod.uid)
        else:
            self.evict(eviction, now, event, refusals=refusals)

    def _answered(
        self, eviction: Evict, event: Record | None, group: str, refusals: int, result: Result, now: float
    ) -> None:
        if not result.succeeded and result.status not in (404, 410):
            self.refused(eviction, now, event, refusals=refusals + 1)
            return
        self.accepted(eviction.pod.uid, group, now)
        if result.succeeded and event is not None:
            self._outbox.send(event, now)


def _falls(found: GroupState) -> bool:
    """True if the group cannot stay even with the pods whose eviction the API server has not accepted."""
    undecided = sum(uid not in found.evicted for uid in found.evicting)
    return found.falls(len(found.bound) + len(found.assumed) + undecided, torn=found.torn)
