"""A group that has waited for long may claim the nodes that it found, so that room can accumulate for it.

One group at a time claims nodes, for a limited time, and each group only once while it waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from stowplan.engine.binding.assumed_pod import AssumedPod
from stowplan.engine.groups.groups import Groups
from stowplan.engine.queue.scheduling_queue import SchedulingQueue
from stowplan.engine.unit import Unit

CLAIM_LASTS = 300.0  # seconds


class NominationHold:
    def __init__(self, queue: SchedulingQueue, groups: Groups) -> None:
        self._queue, self._groups = queue, groups
        self._group, self._until = "", float("-inf")  # which group claims nodes, and until when
        self._had_claim: dict[str, None] = {}  # groups that have had their claim

    def nominations(self, unit: Unit, placed: Iterable[AssumedPod], now: float) -> str | dict[str, str] | None:
        """The nodes to nominate for a group that does not fit: those it found, by uid; "" for none, None: no change.

        The missing members of a partially bound group keep their nominations.
        """
        found = self._groups.get(unit.group)
        if found is not None and found.left_behind() is not None:
            return None
        short = found is not None and not found.satisfied  # members beyond the minimum are not urgent
        free = self._group == unit.group or now >= self._until or self._group not in self._queue.units
        if not short or not unit.queued.aged or not free:
            return ""
        if self._group != unit.group and unit.group not in self._had_claim:
            self._group, self._until = unit.group, now + CLAIM_LASTS
            self._had_claim = {each: None for each in self._had_claim if each in self._queue.units}
            self._had_claim[unit.group] = None
        if self._group == unit.group and now < self._until:
            return {each.uid: each.node_name for each in placed}
        return ""
