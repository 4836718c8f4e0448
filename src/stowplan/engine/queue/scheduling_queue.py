"""The scheduling queue, as the rest of the engine sees it: pods come, change and leave; units are popped and come back.

A pod without a node, of one of our profiles, becomes a unit or joins the unit of its group. `unit_queue` says which
unit is next. Cluster events requeue the units that they may help. A unit over which a plugin hung in three attempts is
set aside: it is attempted again when one of its pods changes, or when the configuration does. One over which the whole
scheduler had to be ended waits for longer each time, or until one of its pods changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from stowplan.columns.state import ClusterState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.messages import times_hung
from stowplan.engine.queue.cluster_events import ASSIGNED, UNSCHEDULED, ClusterEvent, by_others
from stowplan.engine.queue.gate import GROUP, Gate
from stowplan.engine.queue.order import Key, QueueOrder
from stowplan.engine.queue.record import QueueStage
from stowplan.engine.queue.requeue_hints import RequeueHints
from stowplan.engine.queue.unit_queue import UnitQueue
from stowplan.engine.unit import Unit
from stowplan.framework.profile import Profile
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

MOST_HANGS = 3  # attempts in which a plugin hung, until the unit is set aside

ERRORS_OF_HUNG = 5  # so many errors in a row mean the longest backoff: others have their turn until then
FIRST_AFTER_END, LONGEST_AFTER_END = 10.0, 3600.0  # seconds


class SchedulingQueue(UnitQueue):
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        state: ClusterState,
        groups: Groups,
        *,
        initial_backoff: float,
        max_backoff: float,
        longest_wait: float,
    ) -> None:
        self.gate = Gate(profiles, state, groups)
        super().__init__(
            self.gate,
            QueueOrder(profiles, state, groups),
            RequeueHints(profiles, state),
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            longest_wait=longest_wait,
        )
        self._profiles, self._grouped = profiles, groups
        self._reconfigured = False
        self.unit_of: dict[str, Hashable] = {}  # the key of each pod's unit, by the pod's uid

    def find(self, uid: str) -> Unit | None:
        """The unit that a pod is in."""
        return self.units.get(self.unit_of.get(uid))

    def place_of(self, unit: Unit) -> Key:
        """What the active queue orders a unit by; nothing changes."""
        return self._order.key(unit)

    # -- pods

    def add_pod(self, pod: Pod, now: float) -> None:
        """Take in a pod without a node, or a new version of it."""
        profile = self._profiles.get(pod.scheduler_name)
        if profile is None or pod.terminating:
            self.remove_pod(pod.uid, now)
            return
        group, broken = self._grouped.find_name(pod, profile) if profile.group_plugins else ("", "")
        unit = self.units.get(self.unit_of.get(pod.uid, group or pod.uid))
        if unit is not None and pod.uid in unit.pods:
            if (unit.group, unit.profile) == (group, profile.scheduler_name):
                self._pod_changed(unit, pod, now)
                return
            self.remove_pod(pod.uid, now)  # it changed to another group
            unit = self.units.get(group or pod.uid)
        if unit is None or unit.profile != profile.scheduler_name:
            unit = Unit([pod], profile.scheduler_name, now, group)
            if pod.status.conditions and (times := times_hung(pod)):  # before this scheduler was started, say
                unit.queued.hung, unit.queued.errors = 1, ERRORS_OF_HUNG
                unit.queued.ended = 1 if self._reconfigured else times  # other plugins: they deserve another chance
            if group:
                self._continue_backoff(unit)
        else:
            unit.add(pod)
        unit.broken = broken
        self.unit_of[pod.uid] = unit.key
        if unit.group and unit.queued.stage in (QueueStage.BACKOFF, QueueStage.UNSCHEDULABLE):
            self.member_joined(unit, now)
        elif unit.queued.stage is not QueueStage.IN_FLIGHT:
            self.enter(unit, now, again=False)

    def _continue_backoff(self, unit: Unit) -> None:
        """A new unit of a group that failed before goes on waiting where the old one was."""
        found = self._grouped.get(unit.group)
        if found is not None and found.errors:
            unit.queued.errors, unit.queued.timestamp = found.errors, found.failed_at

    def _pod_changed(self, unit: Unit, pod: Pod, now: float) -> None:
        """Plugins are asked whether a change helps. Only a group that waits for members is looked at right away."""
        was_gated, old = pod.uid in unit.gated.verdicts, unit.pods[pod.uid]
        unit.add(pod)
        if (unit.queued.hung >= MOST_HANGS or unit.queued.ended) and by_others(old) != by_others(pod):
            self._revive(unit, now)
            return
        gate = unit.queued.gated_by
        if gate is not None and gate.plugin == GROUP:
            self.enter(unit, now, again=False)
        elif was_gated and unit.queued.stage is not QueueStage.IN_FLIGHT:
            self._check_member(unit, pod, now)

    def _check_member(self, unit: Unit, pod: Pod, now: float) -> None:
        """A gated member of a group may pass now."""
        try:
            refused = self.gate.check_member(pod, unit.profile)
        except PluginError:
            return
        if refused is None:
            self.enter(unit, now, again=False)

    def remove_pod(self, uid: str, now: float) -> None:
        """The pod is not to be scheduled any more. The rest of its group may be too few now, or agree now."""
        unit = self.units.get(self.unit_of.pop(uid, None))
        if unit is None:
            return
        unit.remove(uid)
        if not unit.pods:
            self.remove(unit.key)
        elif unit.queued.stage is QueueStage.GATED:
            self.enter(unit, now, again=False)
        elif unit.queued.stage is not QueueStage.IN_FLIGHT:
            self.check_gate(unit)

    def return_pod(self, unit: Unit, pod: Pod) -> None:
        """Put a pod back into its unit, which is about to fail."""
        unit.add(pod)
        self.unit_of[pod.uid] = unit.key

    def drop_pod(self, unit: Unit, uid: str) -> None:
        """The pod got a node."""
        unit.remove(uid)
        self.unit_of.pop(uid, None)

    def repair(self, unit: Unit, now: float) -> str:
        """A plugin raised before the unit was attempted. Return what is still wrong; empty if the unit was taken in
        again.
        """
        wrong, unit.broken = unit.broken, ""
        group, unit.broken = self._grouped.find_name(unit.lead, self._profiles[unit.profile])
        if unit.broken or group == unit.group:
            return unit.broken or wrong
        self.remove(unit.key)
        for pod in unit.pods.values():
            self.unit_of.pop(pod.uid, None)
            self.add_pod(pod, now)
        return ""

    def activate_pods(self, uids: Iterable[str]) -> None:
        """Attempt these pods soon, if they are waiting."""
        for uid in uids:
            unit = self.find(uid)
            if unit is not None:
                self.activate(unit)

    # -- plugins that hang

    def hung(self, unit: Unit) -> bool:
        """A plugin hung in the unit's last attempt. True if the unit is set aside now."""
        record = unit.queued
        if record.hung_at == unit.attempts:
            return False  # another call of the same attempt
        record.hung_at, record.hung = unit.attempts, record.hung + 1
        if record.hung < MOST_HANGS or record.stage is QueueStage.IN_FLIGHT:
            return False  # from a flight it returns by `fail`
        self._set_aside(unit)
        return True

    def backoff(self, unit: Unit) -> float:
        """Of a unit over which the scheduler had to be ended: 10 s, 1 min, 6 min, 36 min, and then an hour."""
        if not unit.queued.ended:
            return super().backoff(unit)
        return min(LONGEST_AFTER_END, FIRST_AFTER_END * 6.0 ** min(unit.queued.ended - 1, 30))

    def fail(self, unit: Unit, now: float, rejectors: Iterable[str] = (), pending: Iterable[str] = ()) -> None:
        unit.queued.ended = 0  # this time the scheduler went on
        if unit.queued.hung < MOST_HANGS:
            super().fail(unit, now, rejectors, pending)
            return
        self.inflight.end(unit)
        self.units[unit.key] = unit
        self._set_aside(unit)

    def _set_aside(self, unit: Unit) -> None:
        """Neither time nor any event brings the unit back: each attempt would stop the scheduler for seconds."""
        record = unit.queued
        self._leave(unit)
        record.stage, record.rejectors, record.pending = QueueStage.UNSCHEDULABLE, frozenset(), frozenset()

    def _revive(self, unit: Unit, now: float) -> None:
        """A unit that was set aside has changed: it is as good as new."""
        unit.queued.hung = unit.queued.errors = unit.queued.ended = 0
        self.enter(unit, now)

    # -- cluster events

    def events(
        self,
        events: Iterable[ClusterEvent],
        now: float,
        *,
        max_priority: int | None = None,
        except_unit: Unit | None = None,
    ) -> None:
        """Requeue the units that these events may help: not those of a higher priority than `max_priority`, and not
        `except_unit`.
        """
        for event in events:
            if event.resource == UNSCHEDULED and event.new is not None:
                self.event_for_pod(event.new.uid, event, now)
                continue
            if self._grouped.enabled:
                self._group_event(event, now)
            self.event(event, now, max_priority=max_priority, except_unit=except_unit)

    def event_for_pod(self, uid: str, event: ClusterEvent, now: float) -> None:
        """An event that concerns only this pod."""
        unit = self.find(uid)
        if unit is not None:
            self.event_for(unit, event, now)

    def _group_event(self, event: ClusterEvent, now: float) -> None:
        if event.resource == ASSIGNED:
            self._member_assigned(event, now)
        elif event.new is not None:
            self._group_object_changed(event.new.key, now)

    def _member_assigned(self, event: ClusterEvent, now: float) -> None:
        """A pod that comes to a node or leaves one changes what its group is missing."""
        pod = event.new or event.old
        profile = None if pod is None else self._profiles.get(pod.scheduler_name)
        if profile is None or not profile.group_plugins or event.action not in ("Add", "Delete"):
            return
        try:
            group = self._grouped.group_of(pod, profile)
        except PluginError:
            return
        unit = None if group is None else self.units.get(group.name)
        if unit is not None and unit.queued.stage is QueueStage.GATED:
            self.enter(unit, now, again=False)
        elif unit is not None and unit.queued.stage is not QueueStage.IN_FLIGHT:
            self.check_gate(unit)

    def _group_object_changed(self, name: str, now: float) -> None:
        """The object of a group may ask for less now. Other changes, such as its status, do not help."""
        unit, found = self.units.get(name), self._grouped.get(name)
        waits = unit is not None and unit.queued.stage in (QueueStage.BACKOFF, QueueStage.UNSCHEDULABLE)
        if unit is not None and found is not None and waits:
            before = found.group
            self._grouped.refresh(unit)
            if found.group != before:
                self.member_joined(unit, now)

    # -- another configuration

    def clear(self, *, initial_backoff: float, max_backoff: float) -> None:
        """The profiles have other plugins now: remove all units, and forget what the old plugins said."""
        self._reconfigured = True
        self._hints.clear()
        for key in list(self.units):
            self.remove(key)
        self.unit_of.clear()
        self._order.clear()
        self.set_backoff(initial_backoff=initial_backoff, max_backoff=max_backoff)
