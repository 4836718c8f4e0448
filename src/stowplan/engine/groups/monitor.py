"""Groups that are watched over: those that wait for members, and those that are bound in part.

A group that waits is told how many of its pods exist once it has not changed for a moment, not with each one that
comes. One that is bound in part is completed: its missing members go first, and keep the nodes they had been given.
After a while it is told who is bound and who is not. Or, if it wants that, those that are bound are evicted, unless a
disruption budget protects one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from stowplan.engine import messages
from stowplan.engine.binding.assumed_pod import assumed
from stowplan.engine.groups.groups import Members
from stowplan.engine.preemption.eviction_retry import EvictionRetry
from stowplan.engine.queue.admission import Admission
from stowplan.engine.queue.cluster_events import ASSIGNED, ClusterEvent
from stowplan.engine.queue.unit import QueueStage, Unit
from stowplan.engine.reports import GroupComplete, GroupInPart, GroupWaits, Report
from stowplan.framework.pending_actions import PendingActions
from stowplan.objects.actions import Evict, Nominate
from stowplan.objects.changes import Result
from stowplan.objects.disruption import Budgets, importance
from stowplan.objects.pods import Pod

TOLD_AFTER = 1.0  # seconds since the group last changed
AGAIN_AFTER = 10.0  # seconds, at least, until a group that is bound in part is told so again


class GroupMonitor:
    def __init__(
        self, admission: Admission, insisting: EvictionRetry, outbox: PendingActions, report: Callable[[Report], None]
    ) -> None:
        self._admission, self._insisting, self._outbox, self._report = admission, insisting, outbox, report
        self._short: dict[str, float] = {}  # since when groups were seen to have too few members on nodes
        self._to_tell: dict[str, int] = {}  # reminders, by group
        self._in_part: dict[str, int] = {}
        self._since: dict[str, float] = {}  # when groups had the first member on a node, or were last told so

    def adopt(self) -> None:
        """The groups are counted anew."""
        for reminders in (self._to_tell, self._in_part):
            self._outbox.forget(reminders.values())
            reminders.clear()
        self._short.clear()
        self._since.clear()

    def look(self, now: float) -> Iterator[Any]:
        """Look at the groups that changed."""
        groups = self._admission.groups
        changed, groups.changed = groups.changed, {}
        for name in changed:
            members = groups.get(name)
            if members is None or not members.pods:
                self._outbox.forget([self._to_tell.pop(name, 0), self._in_part.pop(name, 0)])
                self._short.pop(name, None)
                self._since.pop(name, None)
                continue
            self._count(name, members, now)
            if self._waits(name) is not None and name not in self._to_tell:
                self._to_tell[name] = self._outbox.remind(now + TOLD_AFTER, partial(self._tell, name))
            yield from self._in_part_only(name, members, now)
            unit = self._admission.queue.units.get(name)
            if unit is not None and unit.stage is QueueStage.GATED:
                yield from self._let_go(unit, now)
            elif unit is not None:
                self._admission.queue.reorder(unit)

    def _count(self, name: str, members: Members, now: float) -> None:
        if not members.satisfied:
            self._short.setdefault(name, now)
        elif name in self._short:
            self._report(GroupComplete(name, len(members.pods), now - self._short.pop(name)))

    # -- too few members

    def _let_go(self, unit: Unit, now: float) -> Iterator[Any]:
        """Nodes are kept for pods that are tried again and again; a group that is held back keeps none."""
        state = self._admission.state
        promised = (
            [pod for uid, pod in unit.pods.items() if state.nominations.node_of(uid)] if state.nominations else []
        )
        for pod in promised:
            left = ClusterEvent(ASSIGNED, "Delete", assumed(pod, state.nominations.node_of(pod.uid)), None)
            state.nominations.drop(pod.uid)
            yield Nominate(pod=messages.ref(pod), node_name="")
            self._admission.happened([left], now, besides=unit)

    def _waits(self, name: str) -> Unit | None:
        """The waiting pods of a group that is held back, or of which some are."""
        unit = self._admission.queue.units.get(name)
        return unit if unit is not None and (unit.stage is QueueStage.GATED or unit.held) else None

    def _tell(self, name: str, result: Result, now: float) -> Iterator[Any]:  # noqa: ARG002
        del self._to_tell[name]
        unit, members = self._waits(name), self._admission.groups.get(name)
        if unit is None or members is None:
            return
        if members.updated + TOLD_AFTER > now:  # more are coming
            self._to_tell[name] = self._outbox.remind(members.updated + TOLD_AFTER, partial(self._tell, name))
            return
        told = self._admission.gate.told(unit)
        if told == members.told:
            return
        self._report(GroupWaits(name, next(filter(None, told.values()), "")))
        for uid, text in told.items():
            if text and members.told.get(uid) != text:
                yield from messages.failure(unit.pods[uid], text, error=False, nominated=None)
        members.told = told

    # -- bound in part

    def _in_part_only(self, name: str, members: Members, now: float) -> Iterator[Any]:
        """Its time runs on while what is missing is tried again: a binding may hang, again and again."""
        if members.satisfied or not members.bound:
            self._outbox.forget([self._in_part.pop(name, 0)])
            self._since.pop(name, None)
            return
        since, free = self._since.setdefault(name, now), members.group.evicts and not members.on_their_way
        if name in self._in_part and not free:
            return  # whoever is bound by then is looked up then
        half = self._admission.groups.half_bound(members)
        if half is None:
            return
        if free and not self._untried(name) and not self._protected(half[0]):
            yield from self._take_back(*half, name, now)
        elif name not in self._in_part:
            at = max(now, since + members.group.told_after)
            self._in_part[name] = self._outbox.remind(at, partial(self._still_in_part, name))

    def _protected(self, pods: list[Pod]) -> list[Pod]:
        """Those that a disruption budget protects, as in preemption."""
        return Budgets(self._admission.state.store.budgets_of).split(sorted(pods, key=importance), lambda pod: pod)[0]

    def _untried(self, name: str) -> bool:
        """After a start it is tried to complete the group first."""
        unit = self._admission.queue.units.get(name)
        return unit is not None and unit.stage is not QueueStage.GATED and not unit.attempts

    def _still_in_part(self, name: str, result: Result, now: float) -> Iterator[Any]:  # noqa: ARG002
        self._in_part.pop(name, None)
        members = self._admission.groups.get(name)
        half = None if members is None else self._admission.groups.half_bound(members)
        if members is None or half is None:
            return
        note = self._who(name, [*half[0], *(members.pods[uid] for uid in members.on_their_way)], half[1])
        if members.group.evicts and (kept := self._protected(half[0])):
            note = f"{note}; {messages.protected(kept)}"
        self._report(GroupInPart(name, note, evicts=False))
        for pod in half[1]:
            yield messages.warning(pod, "PodGroupBoundInPart", "Scheduling", note)
        self._since[name] = now + max(AGAIN_AFTER - members.group.told_after, 0.0)
        self._admission.groups.changed[name] = None  # and again, as long as it lasts

    @staticmethod
    def _who(name: str, bound: list[Pod], behind: list[Pod]) -> str:
        return messages.half_bound(name, (len(bound), bound), (len(behind), behind))

    def _take_back(self, bound: list[Pod], behind: list[Pod], name: str, now: float) -> Iterator[Any]:
        note = self._who(name, bound, behind)
        self._report(GroupInPart(name, note, evicts=True))
        for pod in bound:
            self._admission.groups.told_to_go(pod.uid)
            yield messages.warning(pod, "PodGroupTakenBack", "Evicting", note)
            evict = Evict(pod=messages.ref(pod), reason="PreemptionByScheduler", message=note)
            yield self._insisting.evict(evict, now)
