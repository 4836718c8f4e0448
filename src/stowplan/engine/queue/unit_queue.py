"""Which unit is attempted next: the stages of waiting units, and how a unit moves between them.

                 ┌──────────── pop ───────────► in flight ── done ──►
    gated ──► active ◄── backoff ends ── backoff ◄── fail (error) ──┤
                 ▲                          ▲                       │
                 └── requeued ── unschedulable ◄── fail (rejected) ─┘

A rejected unit waits for a cluster event that one of its rejecting plugins registered for, and whose hint says that it
helps. Then it is requeued: through backoff, if that is not over yet. Events that happen while a unit is in flight are
remembered and looked at when it comes back. A unit for which pods are being evicted is requeued after the last eviction
was accepted. After five minutes a unit is attempted anyway.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator
from itertools import count
from typing import Any

from stowplan.engine.queue import heaps
from stowplan.engine.queue.cluster_events import EVERYTHING, ClusterEvent
from stowplan.engine.queue.gate import Gate
from stowplan.engine.queue.inflight_events import InflightEvents
from stowplan.engine.queue.order import Key, QueueOrder
from stowplan.engine.queue.record import QueueStage
from stowplan.engine.queue.requeue_hints import RequeueHints
from stowplan.engine.unit import Unit

TOLERATED = 100  # entries of units that are gone, besides as many as there are units


class UnitQueue:
    def __init__(
        self,
        gate: Gate,
        order: QueueOrder,
        hints: RequeueHints,
        *,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        longest_wait: float = 300.0,
    ) -> None:
        self.units: dict[Hashable, Unit] = {}
        self.incoming: Counter[tuple[str, str]] = Counter()  # how often units entered each stage, and why
        self.inflight = InflightEvents()
        self._gate, self._order, self._hints = gate, order, hints
        self._initial, self._max, self._longest = initial_backoff, max_backoff, longest_wait
        self._aging: deque[Unit] = deque()  # groups, in the order they came
        self._active: list[tuple[Key, int, int, Unit]] = []
        self._backoff: list[tuple[int, Key, int, int, Unit]] = []  # within one second, by the queue's order
        self._errors: list[tuple[float, int, int, Unit]] = []  # backoff that is never cut short: after errors, groups
        self._groups: list[tuple[Key, int, int, Unit]] = []  # the rejected groups among them, by the queue's order
        self._heaps: tuple[list[Any], ...] = (self._active, self._backoff, self._errors, self._groups)
        self._waiting: dict[tuple[str, str], dict[Hashable, Unit]] = {}  # units by (profile, rejecting plugin)
        self._oldest: deque[tuple[float, int, Unit]] = deque()  # unschedulable units, in the order they came
        self._tickets = count()
        self._stale = False  # the order of active units changed

    # -- in and out

    def enter(self, unit: Unit, now: float, *, again: bool = True) -> None:
        """Let a unit in that is new, or whose gate may have opened: it becomes active, or is gated.

        A group goes on with its last error's backoff, even if all its members are new. `again`: check all members at
        the gate, not only new ones.
        """
        record = unit.queued
        self._leave(unit)
        if unit.group and self._order.ages_after and unit.key not in self.units and not record.aged:
            self._aging.append(unit)
        self.units[unit.key] = unit
        if self._gated(unit, again=again):
            return
        if record.errors and record.timestamp + self.backoff(unit) > now:
            self._back_off(unit, now, "PodAdd", error=True)
        else:
            record.timestamp = now
            self._activate(unit, "PodAdd")

    def _gated(self, unit: Unit, *, again: bool = True) -> bool:
        """Keep a unit out until an event happens that a gating plugin registered for."""
        record = unit.queued
        record.gated_by = self._gate.check(unit, again=again)
        if record.gated_by is None:
            return False
        self._leave(unit)
        record.stage = QueueStage.GATED
        record.rejectors = frozenset((record.gated_by.plugin, *unit.gated.plugins))
        self._wait_for_events(unit)
        return True

    def _wait_for_events(self, unit: Unit) -> None:
        for plugin in unit.queued.rejectors:
            self._waiting.setdefault((unit.profile, plugin), {})[unit.key] = unit

    def check_gate(self, unit: Unit) -> None:
        """Gate a waiting unit again, if what the gate asks for is no longer there."""
        if unit.queued.stage is not QueueStage.GATED:
            self._gated(unit, again=False)

    def remove(self, key: Hashable) -> Unit | None:
        unit = self.units.pop(key, None)
        if unit is not None:
            self._leave(unit)
            self.inflight.end(unit)
            self._tidy()
        return unit

    def _tidy(self) -> None:
        """Forget units that are gone, once these are many. A replica that waits for the lease pops none of them."""
        most = 2 * len(self.units) + TOLERATED
        for heap in self._heaps:
            if len(heap) > most:
                heaps.tidy(heap)
        if len(self._aging) > most:
            self._aging = deque(unit for unit in self._aging if self.units.get(unit.key) is unit)

    def pop(self, now: float) -> Unit | None:
        """The next unit to attempt. If none is active, a rejected pod in backoff is taken early."""
        if self._backoff or self._errors or self._oldest:
            self._release(now)
        if self._aging:
            self._age(now)
        if self._stale:
            self._reorder_all()
        unit = heaps.pop(self._active) or (heaps.pop(self._backoff) if self._may_go_early() else None)
        if unit is None:
            return None
        self._leave(unit)
        unit.queued.stage = QueueStage.IN_FLIGHT
        unit.queued.activated = False
        unit.attempts += 1
        self.inflight.begin(unit)
        return unit

    def _may_go_early(self) -> bool:
        """True if a pod in backoff comes before all groups in backoff. Otherwise freed room is for the group."""
        pod, group = heaps.peek(self._backoff), heaps.peek(self._groups)
        return pod is not None and (group is None or bool(pod[1] < group[0]))

    def take_out(self, unit: Unit) -> None:
        """The unit got its nodes. It may come back by `fail`; until `done`, events are remembered for it."""
        if self.units.get(unit.key) is unit:
            del self.units[unit.key]
        self._leave(unit)

    def done(self, unit: Unit) -> None:
        """Events need not be remembered for this unit any more."""
        self.inflight.end(unit)

    def fail(self, unit: Unit, now: float, rejectors: Iterable[str] = (), pending: Iterable[str] = ()) -> None:
        """The attempt failed: these plugins rejected the unit, or (if there are none) an error happened."""
        record = unit.queued
        missed = self.inflight.missed(unit)
        again = record.stage is QueueStage.BACKOFF  # another pod of a group, right after the first
        self.inflight.end(unit)
        self._leave(unit)
        self.units[unit.key] = unit
        record.timestamp = now
        record.rejectors, record.pending = frozenset(rejectors), frozenset(pending)
        if not record.rejectors:
            record.errors += not (again and record.errors)
            if not self._gated(unit, again=not again):
                self._back_off(unit, now, "ScheduleAttemptFailure", error=True)
            return
        record.errors = 0
        record.failures += 1
        record.stage = QueueStage.UNSCHEDULABLE
        self.incoming["unschedulable", "ScheduleAttemptFailure"] += 1
        record.ticket = next(self._tickets)
        self._oldest.append((now, record.ticket, unit))
        self._wait_for_events(unit)
        if record.activated:
            self._requeue(unit, now, "ForceActivate")
        for event in missed:
            if record.stage is QueueStage.UNSCHEDULABLE:
                self._consider_unschedulable(unit, event, now)

    # -- cluster events

    def event(
        self, event: ClusterEvent, now: float, *, max_priority: int | None = None, except_unit: Unit | None = None
    ) -> None:
        """Requeue the units that this event may help: not those of a higher priority than `max_priority`, and not
        `except_unit`.
        """
        if self.inflight.units and self._hints.matters(event):
            self.inflight.note(event)
        self._note_order(event)
        if self._waiting:
            for unit in self._candidates(event):
                if unit is not except_unit and (max_priority is None or unit.lead.priority <= max_priority):
                    self._consider(unit, event, now)

    def event_for(self, unit: Unit, event: ClusterEvent, now: float) -> None:
        """An event that concerns only this unit."""
        if unit in self.inflight.units and self._hints.matters(event):
            self.inflight.note(event, unit)
        self._note_order(event)
        self._consider(unit, event, now)

    def _note_order(self, event: ClusterEvent) -> None:
        """Active units get new keys before the next pop, if this event changes the order."""
        if self._active and self._order.reordered_by:
            self._stale = self._stale or event is EVERYTHING or self._order.changes_with(event)

    def _consider(self, unit: Unit, event: ClusterEvent, now: float) -> None:
        stage = unit.queued.stage
        if stage is QueueStage.GATED and any(self._hints.helps(unit, each, event) for each in unit.queued.rejectors):
            self.enter(unit, now)
        elif stage is QueueStage.UNSCHEDULABLE:
            self._consider_unschedulable(unit, event, now)

    def _candidates(self, event: ClusterEvent) -> list[Unit]:
        found: dict[Hashable, Unit] = {}
        for (profile, plugin), units in self._waiting.items():
            if self._hints.concerns(profile, plugin, event):
                found.update(units)
        return list(found.values())

    def _consider_unschedulable(self, unit: Unit, event: ClusterEvent, now: float) -> None:
        """Requeue the unit if the event helps: at once if it only waited for another component, else after backoff."""
        helped = [plugin for plugin in unit.queued.rejectors if self._hints.helps(unit, plugin, event)]
        if not helped:
            return
        if unit.evicting:
            unit.queued.woken = True
        else:
            cause = "UnschedulableTimeout" if event is EVERYTHING else event.label
            self._requeue(unit, now, cause, at_once=not unit.queued.pending.isdisjoint(helped))

    # -- requeueing

    def _requeue(self, unit: Unit, now: float, cause: str, *, at_once: bool = False) -> None:
        unit.queued.woken = False
        if self._gated(unit):
            return
        if at_once:
            self._activate(unit, cause)
        else:
            self._back_off(unit, now, cause, error=False)

    def activate(self, unit: Unit) -> None:
        """Attempt this unit now, whatever it waits for; one in flight, soon after it comes back."""
        record = unit.queued
        if unit.evicting:
            record.woken = True
        elif record.stage in (QueueStage.UNSCHEDULABLE, QueueStage.BACKOFF):
            if not self._gated(unit):
                self._activate(unit, "ForceActivate")
        elif record.stage is QueueStage.IN_FLIGHT:
            record.activated = True

    def member_joined(self, unit: Unit, now: float) -> None:
        """A waiting group got another pod. It may be the missing one, but the group's backoff stands."""
        if self._gated(unit, again=False):
            return
        if unit.queued.stage is QueueStage.UNSCHEDULABLE:
            unit.queued.woken = False
            self._back_off(unit, now, "PodAdd", error=False)

    def forget_wakes(self, unit: Unit) -> None:
        """Events before this attempt count no more: new evictions may follow."""
        unit.queued.woken = False

    def evictions_failed(self, unit: Unit, now: float) -> None:
        """An eviction for this unit failed: attempt it again, after its backoff."""
        unit.evicting.clear()
        if unit.queued.stage is QueueStage.UNSCHEDULABLE and not self._gated(unit):
            self._back_off(unit, now, "PreemptionFailed", error=True)

    def evictions_done(self, unit: Unit, now: float) -> None:
        """The API server accepted all evictions for this unit: events that helped meanwhile count now."""
        if unit.queued.woken and unit.queued.stage is QueueStage.UNSCHEDULABLE:
            self._requeue(unit, now, "AssignedPodDelete")

    # -- time

    def next_deadline(self) -> float | None:
        """When time alone makes a unit ready; minus infinity if one is ready now."""
        if heaps.peek(self._active) is not None or self._may_go_early():
            return float("-inf")
        moments = [entry[0] for entry in (heaps.peek(self._errors), self._peek_oldest()) if entry is not None]
        if (pod := heaps.peek(self._backoff)) is not None:
            moments.append(pod[-1].queued.ready_at)
        return min(moments, default=None)

    def _release(self, now: float) -> None:
        """Requeue units whose backoff is over, and those that have been unschedulable for too long."""
        timed: tuple[list[Any], ...] = (self._backoff, self._errors)
        for heap in timed:
            while (entry := heaps.peek(heap)) is not None and entry[-1].queued.ready_at <= now:
                heapq.heappop(heap)
                self._activate(entry[-1], "BackoffComplete")
        while (oldest := self._peek_oldest()) is not None and oldest[0] <= now:
            self._oldest.popleft()
            oldest[1].queued.flushed = True
            self._consider_unschedulable(oldest[1], EVERYTHING, now)

    def _age(self, now: float) -> None:
        """Groups that have waited for long get another place in the order."""
        while self._aging and self._aging[0].since + self._order.ages_after <= now:
            unit = self._aging.popleft()
            unit.queued.aged = True
            if unit.queued.stage is QueueStage.ACTIVE and self.units.get(unit.key) is unit:
                self._activate(unit, "Aged")

    def _peek_oldest(self) -> tuple[float, Unit] | None:
        while self._oldest:
            since, ticket, unit = self._oldest[0]
            if unit.queued.ticket == ticket and unit.queued.stage is QueueStage.UNSCHEDULABLE:
                return since + self._longest, unit
            self._oldest.popleft()
        return None

    def backoff(self, unit: Unit) -> float:
        """1, 2, 4, 8, 10, 10 … seconds, by errors in a row or else by rejections."""
        times = unit.queued.errors or unit.queued.failures
        return 0.0 if self._max == 0 else min(self._max, self._initial * 2.0 ** min(max(times - 1, 0), 30))

    # -- moving units between stages

    def _activate(self, unit: Unit, cause: str) -> None:
        self._leave(unit)
        self.incoming["active", cause] += 1
        unit.queued.stage = QueueStage.ACTIVE
        self._push(unit)

    def _push(self, unit: Unit) -> None:
        record = unit.queued
        record.key, record.ticket = self._order.key(unit), next(self._tickets)
        heapq.heappush(self._active, (record.key, record.ticket, record.ticket, unit))

    def reorder(self, unit: Unit) -> None:
        """Push the unit again, if its place in the order changed."""
        if unit.queued.stage is QueueStage.ACTIVE and self._order.key(unit) != unit.queued.key:
            self._push(unit)

    def _reorder_all(self) -> None:
        """Give every active unit a new key; units with equal keys keep their order."""
        self._stale = False
        valid = sorted(entry for entry in self._active if entry[-1].queued.ticket == entry[-2])
        self._active.clear()
        for *_, unit in valid:
            self._push(unit)

    def _back_off(self, unit: Unit, now: float, cause: str, *, error: bool) -> None:
        record = unit.queued
        self._leave(unit)
        record.ready_at = record.timestamp + self.backoff(unit)
        if record.ready_at <= now:
            self._activate(unit, cause)
            return
        self.incoming["backoff", cause] += 1
        record.stage = QueueStage.BACKOFF
        ticket = record.ticket = next(self._tickets)
        if error or unit.group:  # an attempt at a group costs more, and room for all of it rarely comes at once
            heapq.heappush(self._errors, (record.ready_at, ticket, ticket, unit))
            if not error:
                heapq.heappush(self._groups, (self._order.key(unit), ticket, ticket, unit))
        else:
            heapq.heappush(self._backoff, (int(record.ready_at), self._order.key(unit), ticket, ticket, unit))

    def _leave(self, unit: Unit) -> None:
        """Take the unit out of its stage; its entries in heaps become void."""
        unit.queued.ticket = -1
        for plugin in unit.queued.rejectors:
            units = self._waiting.get((unit.profile, plugin))
            if units is not None:
                units.pop(unit.key, None)
                if not units:
                    del self._waiting[unit.profile, plugin]

    def set_backoff(self, *, initial_backoff: float, max_backoff: float) -> None:
        """Other backoffs, for units that enter from now on; all units have been removed."""
        self._initial, self._max = initial_backoff, max_backoff
        for heap in self._heaps:  # void entries have keys that may not compare with those of another sort plugin
            heap.clear()
        self._aging.clear()
        self._oldest.clear()
        self._stale = False

    def waiting(self) -> Iterator[tuple[str, str, int]]:
        """How many units wait because of each plugin of each profile."""
        return ((profile, plugin, len(units)) for (profile, plugin), units in self._waiting.items())

    def stages(self) -> Iterator[tuple[Hashable, QueueStage]]:
        return ((key, unit.queued.stage) for key, unit in self.units.items())
