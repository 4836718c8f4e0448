"""Watches over groups: those that wait for members, and those that are partially bound.

A group that waits is told how many of its pods exist, once it has not changed for a moment: not with each new pod. A
partially bound group is completed: its missing members go first and keep their nominated nodes. After a while its pods
are told which are bound and which are not. Or, if the group wants that, the bound members are evicted, unless a
disruption budget protects one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from stowplan.columns.state import ClusterState
from stowplan.engine import messages
from stowplan.engine.groups.group import GroupState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.outbox import Outbox
from stowplan.engine.preemption.eviction_retry import EvictionRetry
from stowplan.engine.queue.cluster_events import pod_left
from stowplan.engine.queue.record import QueueStage
from stowplan.engine.queue.scheduling_queue import SchedulingQueue
from stowplan.engine.reports import GroupComplete, GroupPartiallyBound, GroupWaits, Report
from stowplan.engine.unit import Unit
from stowplan.objects.actions import Evict, Nominate
from stowplan.objects.changes import Result
from stowplan.objects.disruption import Budgets, importance
from stowplan.objects.pods import Pod

TELL_AFTER = 1.0  # seconds since the group last changed
TELL_AGAIN_AFTER = 10.0  # seconds, at least, between messages to a partially bound group


class GroupMonitor:
    def __init__(
        self,
        state: ClusterState,
        queue: SchedulingQueue,
        groups: Groups,
        eviction_retry: EvictionRetry,
        outbox: Outbox,
        report: Callable[[Report], None],
    ) -> None:
        self._state, self._queue, self._groups = state, queue, groups
        self._retry, self._outbox, self._report = eviction_retry, outbox, report
        self._short_since: dict[str, float] = {}  # when groups were first seen below their minimum
        self._to_tell: dict[str, int] = {}  # reminders for groups that wait, by group
        self._partial: dict[str, int] = {}  # reminders for partially bound groups, by group
        self._partial_since: dict[str, float] = {}  # when groups were first seen partially bound, or last told so

    def clear(self) -> None:
        """All groups are counted again."""
        for reminders in (self._to_tell, self._partial):
            self._outbox.forget(reminders.values())
            reminders.clear()
        self._short_since.clear()
        self._partial_since.clear()

    def look(self, now: float) -> None:
        """Look at the groups that changed."""
        changed, self._groups.changed = self._groups.changed, {}
        for name in changed:
            found = self._groups.get(name)
            if found is None or not found.pods:
                self._forget(name)
                continue
            self._count(name, found, now)
            if self._gated_unit(name) is not None and name not in self._to_tell:
                self._to_tell[name] = self._outbox.remind(now + TELL_AFTER, partial(self._tell, name))
            self._look_at_partially_bound(name, found, now)
            unit = self._queue.units.get(name)
            if unit is not None and unit.queued.stage is QueueStage.GATED:
                self._drop_nominations(unit, now)
            elif unit is not None:
                self._queue.reorder(unit)

    def _forget(self, name: str) -> None:
        self._outbox.forget([self._to_tell.pop(name, 0), self._partial.pop(name, 0)])
        self._short_since.pop(name, None)
        self._partial_since.pop(name, None)

    def _count(self, name: str, found: GroupState, now: float) -> None:
        if not found.satisfied:
            self._short_since.setdefault(name, now)
        elif name in self._short_since:
            self._report(GroupComplete(name, len(found.pods), now - self._short_since.pop(name)))

    # -- groups that wait for members

    def _drop_nominations(self, unit: Unit, now: float) -> None:
        """A gated group keeps no nominated nodes: they are for pods that are attempted again and again."""
        state = self._state
        nominated = (
            [pod for uid, pod in unit.pods.items() if state.nominated_pods.node_of(uid)] if state.nominated_pods else []
        )
        for pod in nominated:
            left = pod_left(pod, state.nominated_pods.node_of(pod.uid))
            freed = state.nominated_pods.drop(pod.uid)
            self._outbox.send(Nominate(pod=messages.ref(pod), node_name=""), now)
            self._queue.events([left, *(pod_left(each, node) for each, node in freed)], now, except_unit=unit)

    def _gated_unit(self, name: str) -> Unit | None:
        """The waiting pods of a group, if the group or some of them are gated."""
        unit = self._queue.units.get(name)
        gated = unit is not None and (unit.queued.stage is QueueStage.GATED or bool(unit.gated.verdicts))
        return unit if gated else None

    def _tell(self, name: str, _: Result, now: float) -> None:
        del self._to_tell[name]
        unit, found = self._gated_unit(name), self._groups.get(name)
        if unit is None or found is None:
            return
        if found.updated + TELL_AFTER > now:  # more pods are coming
            self._to_tell[name] = self._outbox.remind(found.updated + TELL_AFTER, partial(self._tell, name))
            return
        told = self._queue.gate.messages(unit)
        if told == found.messages:
            return
        self._report(GroupWaits(name, next(filter(None, told.values()), "")))
        for uid, text in told.items():
            if text and found.messages.get(uid) != text:
                for action in messages.waits(unit.pods[uid], text):
                    self._outbox.send(action, now)
        found.messages = told

    # -- partially bound groups

    def _look_at_partially_bound(self, name: str, found: GroupState, now: float) -> None:
        """The time runs on while missing members are attempted again: their bindings may hang, again and again."""
        if found.satisfied or not found.bound:
            self._outbox.forget([self._partial.pop(name, 0)])
            self._partial_since.pop(name, None)
            return
        since, may_evict = self._partial_since.setdefault(name, now), found.group.evicts and not found.assumed
        if name in self._partial and not may_evict:
            return  # the reminder looks up which members are bound then
        bound_and_behind = found.left_behind()
        if bound_and_behind is None:
            return
        if may_evict and not self._never_attempted(name) and not self._protected(bound_and_behind[0]):
            self._evict_bound(*bound_and_behind, name, now)
        elif name not in self._partial:
            at = max(now, since + found.group.report_after)
            self._partial[name] = self._outbox.remind(at, partial(self._still_partially_bound, name))

    def _protected(self, pods: list[Pod]) -> list[Pod]:
        """The pods that a disruption budget protects, as in preemption."""
        return Budgets(self._state.store.budgets_of).split(sorted(pods, key=importance), lambda pod: pod)[0]

    def _never_attempted(self, name: str) -> bool:
        """After a start of the scheduler, one attempt to complete the group comes first."""
        unit = self._queue.units.get(name)
        return unit is not None and unit.queued.stage is not QueueStage.GATED and not unit.attempts

    def _still_partially_bound(self, name: str, _: Result, now: float) -> None:
        self._partial.pop(name, None)
        found = self._groups.get(name)
        bound_and_behind = None if found is None else found.left_behind()
        if found is None or bound_and_behind is None:
            return
        bound, behind = bound_and_behind
        note = _who(name, [*bound, *(found.pods[uid] for uid in found.assumed)], behind)
        if found.group.evicts and (protected := self._protected(bound)):
            note = f"{note}; {messages.protected(protected)}"
        self._report(GroupPartiallyBound(name, note, evicts=False))
        for pod in behind:
            self._outbox.send(messages.warning(pod, "PodGroupBoundInPart", "Scheduling", note), now)
        self._partial_since[name] = now + max(TELL_AGAIN_AFTER - found.group.report_after, 0.0)
        self._groups.changed[name] = None  # look again, as long as it lasts

    def _evict_bound(self, bound: list[Pod], behind: list[Pod], name: str, now: float) -> None:
        note = _who(name, bound, behind)
        self._report(GroupPartiallyBound(name, note, evicts=True))
        for pod in bound:
            self._groups.evicting(pod.uid)
            self._outbox.send(messages.warning(pod, "PodGroupTakenBack", "Evicting", note), now)
            self._retry.evict(Evict(pod=messages.ref(pod), reason="PreemptionByScheduler", message=note), now)


def _who(name: str, bound: list[Pod], behind: list[Pod]) -> str:
    return messages.half_bound(name, (len(bound), bound), (len(behind), behind))
