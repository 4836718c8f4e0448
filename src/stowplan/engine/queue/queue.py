"""Which unit is next: active, in backoff, unschedulable, gated.

                 ┌──────────── pop ───────────► in flight ── done ──►
    gated ──► active ◄── backoff over ── backoff ◄── fail (error) ──┤
                 ▲                          ▲                       │
                 └──── woken ── unschedulable ◄──── fail (rejected) ┘

A rejected unit waits until something happens that one of its rejecting plugins registered for, and whose hint says that
it helps; then it goes on, through backoff if that is not over yet. What happens while a unit is in flight is remembered
and looked at when it comes back. A unit for which pods are being evicted goes on when the last of them was told to go.
After five minutes a unit is tried anyway.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import count
from typing import Any

from stowplan.engine.queue.cluster_events import EVERYTHING, ClusterEvent, concerns
from stowplan.engine.queue.inflight_events import InflightEvents
from stowplan.engine.queue.unit import QueueStage, Unit
from stowplan.framework.interfaces import Wake
from stowplan.framework.verdict import Verdict

SortKey = Callable[[Unit], Any]
Helps = Callable[[Unit, str, Wake, ClusterEvent], bool]


class SchedulingQueue:
    def __init__(
        self,
        sort_key: SortKey,
        helps: Helps,
        wakes: Callable[[str, str], tuple[Wake, ...] | None],
        gate: Callable[[Unit, bool], Verdict | None],
        matters: Callable[[ClusterEvent], bool] = lambda _: True,
        *,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        longest_wait: float = 300.0,
        ages_after: float = 0.0,
    ) -> None:
        """`wakes(profile, plugin)` says what a plugin registered for, None if for everything; `gate`, who holds a unit
        back, is asked whenever one is about to become active or to back off, about all its pods (True) or only those of
        which it is not known. `matters`: did anybody register for it?
        Groups that have waited for `ages_after` seconds (0: none) may have another place in the order.
        """
        self.units: dict[Hashable, Unit] = {}
        self._sort_key, self._helps, self._wakes, self._gate = sort_key, helps, wakes, gate
        self._initial, self._max, self._longest = initial_backoff, max_backoff, longest_wait
        self._ages_after = ages_after
        self._aging: deque[Unit] = deque()  # groups in the order they came
        self._active: list[tuple[tuple[int, Any], int, int, Unit]] = []
        self._backoff: list[tuple[int, Any, int, int, Unit]] = []  # within one second the important ones go first
        self._patient: list[tuple[float, int, int, Unit]] = []  # who is not taken out of backoff early
        self._groups: list[tuple[Any, int, int, Unit]] = []  # those of them that were rejected, by their place
        self._waiting: dict[tuple[str, str], dict[Hashable, Unit]] = {}  # (profile, plugin) → units it holds back
        self._oldest: deque[tuple[float, int, Unit]] = deque()  # unschedulable units in the order they came
        self._order = count()
        self._sample: Any = None  # a sort key that others must be comparable with
        self.incoming: Counter[tuple[str, str]] = Counter()  # how often units entered each stage, and because of what
        self.flights = InflightEvents(matters)

    def __len__(self) -> int:
        return len(self.units)

    # -- in and out

    def enter(self, unit: Unit, now: float, *, anew: bool = True) -> None:
        """A unit that is new, or whose gate may have opened: into the active queue, or held back.

        What went wrong last time may be so recent that it waits still: a group's members may all be new. Not `anew`:
        what is known of its pods stands.
        """
        self._leave(unit)
        if unit.group and self._ages_after and unit.key not in self.units and not unit.aged:
            self._aging.append(unit)
        self.units[unit.key] = unit
        if self._held(unit, anew=anew):
            return
        if unit.errors and unit.timestamp + self.backoff(unit) > now:
            self._back_off(unit, now, "PodAdd", error=True)
        else:
            unit.timestamp = now
            self._activate(unit, "PodAdd")

    def _held(self, unit: Unit, *, anew: bool = True) -> bool:
        """Keep a unit out until something happens that the gating plugin registered for."""
        unit.gate = self._gate(unit, anew)
        if unit.gate is None:
            return False
        self._leave(unit)
        unit.stage, unit.rejectors = QueueStage.GATED, frozenset((unit.gate.plugin, *unit.holders))
        for plugin in unit.rejectors:
            self._waiting.setdefault((unit.profile, plugin), {})[unit.key] = unit
        return True

    def check(self, unit: Unit) -> None:
        """What the gate asks for may no longer be there: a unit that waits goes back to it, if so."""
        if unit.stage is not QueueStage.GATED:
            self._held(unit, anew=False)

    def remove(self, key: Hashable) -> Unit | None:
        unit = self.units.pop(key, None)
        if unit is not None:
            self._leave(unit)
            self.flights.land(unit)
        return unit

    def pop(self, now: float) -> Unit | None:
        """The next unit to try. With nothing active, a pod that only backs off after a rejection is taken early."""
        if self._backoff or self._patient or self._oldest:
            self._release(now)
        if self._aging:
            self._age(now)
        unit = _valid(self._active) or (_valid(self._backoff) if self._may_go_early() else None)
        if unit is None:
            return None
        self._leave(unit)
        unit.stage = QueueStage.IN_FLIGHT
        unit.attempts += 1
        unit.activated = False
        self.flights.begin(unit)
        return unit

    def _may_go_early(self) -> bool:
        """Does a pod that backs off come before all groups that do? Else it waits: room that comes is the group's."""
        pod, group = _peek(self._backoff), _peek(self._groups)
        return pod is not None and (group is None or bool(pod[1] < group[0]))

    def forget(self, unit: Unit) -> None:
        """The unit is on its way; it may come back by `fail`, and what happens until `done` is remembered for it."""
        if self.units.get(unit.key) is unit:
            del self.units[unit.key]
        self._leave(unit)

    def done(self, unit: Unit) -> None:
        """The unit was decided and needs no watch over what happens any more."""
        self.flights.land(unit)

    def fail(self, unit: Unit, now: float, rejectors: Iterable[str] = (), pending: Iterable[str] = ()) -> None:
        """The unit was rejected by these plugins, or (by none) something went wrong."""
        missed = self.flights.missed(unit)
        again = unit.stage is QueueStage.BACKOFF  # another pod of a group, in the wake of the first
        self.flights.land(unit)
        self._leave(unit)
        self.units[unit.key] = unit
        unit.timestamp = now
        unit.rejectors, unit.pending = frozenset(rejectors), frozenset(pending)
        if not unit.rejectors:
            unit.errors += not (again and unit.errors)
            if not self._held(unit, anew=not again):
                self._back_off(unit, now, "ScheduleAttemptFailure", error=True)
            return
        unit.errors = 0
        unit.failures += 1
        unit.stage = QueueStage.UNSCHEDULABLE
        self.incoming["unschedulable", "ScheduleAttemptFailure"] += 1
        unit.ticket = next(self._order)
        self._oldest.append((now, unit.ticket, unit))
        for plugin in unit.rejectors:
            self._waiting.setdefault((unit.profile, plugin), {})[unit.key] = unit
        if unit.activated:
            self._move_on(unit, now, "ForceActivate")
        for happening in missed:
            if unit.stage is QueueStage.UNSCHEDULABLE:
                self._look(unit, happening, now)

    # -- what happens

    def happen(
        self, happening: ClusterEvent, now: float, *, most_important: int | None = None, besides: Unit | None = None
    ) -> None:
        """Wake the units that this may help.

        It is nothing to units of a higher priority than `most_important`, and to the unit `besides`.
        """
        self.flights.note(happening)
        for unit in self._candidates(happening):
            if unit is not besides and (most_important is None or unit.lead.priority <= most_important):
                self._consider(unit, happening, now)

    def happen_to(self, unit: Unit, happening: ClusterEvent, now: float) -> None:
        """Something that is nobody else's business."""
        self.flights.note(happening, unit)
        self._consider(unit, happening, now)

    def _consider(self, unit: Unit, happening: ClusterEvent, now: float) -> None:
        """A gated unit may pass its gate now, an unschedulable one may have a place."""
        if unit.stage is QueueStage.GATED and any(self._helped(unit, plugin, happening) for plugin in unit.rejectors):
            self.enter(unit, now)
        elif unit.stage is QueueStage.UNSCHEDULABLE:
            self._look(unit, happening, now)

    def activate(self, unit: Unit) -> None:
        """Try this unit now, whatever it waits for; one in flight, soon after it comes back."""
        if unit.evicting:
            unit.woken = True
        elif unit.stage in (QueueStage.UNSCHEDULABLE, QueueStage.BACKOFF):
            if not self._held(unit):
                self._activate(unit, "ForceActivate")
        elif unit.stage is QueueStage.IN_FLIGHT:
            unit.activated = True

    def joined(self, unit: Unit, now: float) -> None:
        """Another pod of a group that waits: it may be what was missing, but the group's backoff stands."""
        if self._held(unit, anew=False):
            return
        if unit.stage is QueueStage.UNSCHEDULABLE:
            unit.woken = False
            self._back_off(unit, now, "PodAdd", error=False)

    def reorder(self, unit: Unit) -> None:
        """What its place in the order depends on may have changed."""
        if unit.stage is QueueStage.ACTIVE and self._place(unit) != unit.place:
            self._queue_up(unit)

    def retry(self, unit: Unit, now: float) -> None:
        """What was done for this unit failed: it is tried again, but not before its backoff is over."""
        unit.evicting.clear()
        if unit.stage is QueueStage.UNSCHEDULABLE and not self._held(unit):
            self._back_off(unit, now, "PreemptionFailed", error=True)

    def evicted(self, unit: Unit, now: float) -> None:
        """All pods that had to go for this unit were told to: what happened meanwhile counts now."""
        if unit.woken and unit.stage is QueueStage.UNSCHEDULABLE:
            self._move_on(unit, now, "AssignedPodDelete")

    def _candidates(self, happening: ClusterEvent) -> list[Unit]:
        found: dict[Hashable, Unit] = {}
        for (profile, plugin), units in self._waiting.items():
            wakes = self._wakes(profile, plugin)
            if happening is EVERYTHING or wakes is None or any(concerns(wake, happening) for wake in wakes):
                found.update(units)
        return list(found.values())

    def _look(self, unit: Unit, happening: ClusterEvent, now: float) -> None:
        """Does this help the unit? Then it goes on: at once if it only waited for others, else after its backoff."""
        helped = [plugin for plugin in unit.rejectors if self._helped(unit, plugin, happening)]
        if not helped:
            return
        if unit.evicting:
            unit.woken = True
        else:
            cause = "UnschedulableTimeout" if happening is EVERYTHING else happening.label
            self._move_on(unit, now, cause, at_once=not unit.pending.isdisjoint(helped))

    def _move_on(self, unit: Unit, now: float, cause: str, *, at_once: bool = False) -> None:
        unit.woken = False
        if self._held(unit):
            return
        if at_once:
            self._activate(unit, cause)
        else:
            self._back_off(unit, now, cause, error=False)

    def _helped(self, unit: Unit, plugin: str, happening: ClusterEvent) -> bool:
        wakes = self._wakes(unit.profile, plugin)
        if happening is EVERYTHING or wakes is None:
            return True
        return any(concerns(wake, happening) and self._helps(unit, plugin, wake, happening) for wake in wakes)

    # -- time

    def next_deadline(self) -> float | None:
        """When time alone makes a unit ready: now already, if one is."""
        if _peek(self._active) is not None or self._may_go_early():
            return float("-inf")
        moments = [entry[0] for entry in (_peek(self._patient), self._peek_oldest()) if entry is not None]
        if (pod := _peek(self._backoff)) is not None:
            moments.append(pod[-1].ready_at)
        return min(moments, default=None)

    def _release(self, now: float) -> None:
        heaps: tuple[list[Any], ...] = (self._backoff, self._patient)
        for heap in heaps:
            while (entry := _peek(heap)) is not None and entry[-1].ready_at <= now:
                heapq.heappop(heap)
                self._activate(entry[-1], "BackoffComplete")
        while (oldest := self._peek_oldest()) is not None and oldest[0] <= now:
            self._oldest.popleft()
            oldest[1].flushed = True
            self._look(oldest[1], EVERYTHING, now)

    def _age(self, now: float) -> None:
        """Groups that have waited for long find another place in the order."""
        while self._aging and self._aging[0].since + self._ages_after <= now:
            unit = self._aging.popleft()
            unit.aged = True
            if unit.stage is QueueStage.ACTIVE and self.units.get(unit.key) is unit:
                self._activate(unit, "Aged")

    def _peek_oldest(self) -> tuple[float, Unit] | None:
        while self._oldest:
            since, ticket, unit = self._oldest[0]
            if unit.ticket == ticket and unit.stage is QueueStage.UNSCHEDULABLE:
                return since + self._longest, unit
            self._oldest.popleft()
        return None

    def backoff(self, unit: Unit) -> float:
        """1, 2, 4, 8, 10, 10 … seconds, by errors in a row or else by rejections."""
        times = unit.errors or unit.failures
        return 0.0 if self._max == 0 else min(self._max, self._initial * 2.0 ** min(max(times - 1, 0), 30))

    # -- moving units

    def _activate(self, unit: Unit, cause: str) -> None:
        self._leave(unit)
        self.incoming["active", cause] += 1
        unit.stage = QueueStage.ACTIVE
        self._queue_up(unit)

    def _queue_up(self, unit: Unit) -> None:
        unit.place, unit.ticket = self._place(unit), next(self._order)
        heapq.heappush(self._active, (unit.place, unit.ticket, unit.ticket, unit))

    def _back_off(self, unit: Unit, now: float, cause: str, *, error: bool) -> None:
        self._leave(unit)
        unit.ready_at = unit.timestamp + self.backoff(unit)
        if unit.ready_at <= now:
            self._activate(unit, cause)
            return
        self.incoming["backoff", cause] += 1
        unit.stage = QueueStage.BACKOFF
        unit.ticket = next(self._order)
        if error or unit.group:  # a group takes longer to try, and room for all of it seldom comes at once
            heapq.heappush(self._patient, (unit.ready_at, unit.ticket, unit.ticket, unit))
            if not error:
                heapq.heappush(self._groups, (self._place(unit), unit.ticket, unit.ticket, unit))
        else:
            heapq.heappush(self._backoff, (int(unit.ready_at), self._place(unit), unit.ticket, unit.ticket, unit))

    def _place(self, unit: Unit) -> tuple[int, Any]:
        """Where in the order; a unit for which the sort plugin has no usable answer comes after all others."""
        try:
            key = self._sort_key(unit)
            if self._sample is None:
                self._sample = key
            bool(key < self._sample), bool(self._sample < key)
        except Exception:
            return 1, unit.timestamp
        return 0, key

    def _leave(self, unit: Unit) -> None:
        """Out of whatever it is in; entries in heaps become void."""
        unit.ticket = -1
        for plugin in unit.rejectors:
            units = self._waiting.get((unit.profile, plugin))
            if units is not None:
                units.pop(unit.key, None)
                if not units:
                    del self._waiting[unit.profile, plugin]

    def adopt(self, ages_after: float, *, initial_backoff: float, max_backoff: float) -> None:
        """Another order and other backoffs, for units that enter from now on."""
        self._ages_after, self._initial, self._max = ages_after, initial_backoff, max_backoff
        self._aging.clear()
        self._sample = None

    def waiting(self) -> Iterator[tuple[str, str, int]]:
        """How many units each plugin of each profile holds back."""
        return ((profile, plugin, len(units)) for (profile, plugin), units in self._waiting.items())

    def stages(self) -> Iterator[tuple[Hashable, QueueStage]]:
        return ((key, unit.stage) for key, unit in self.units.items())


def _peek(heap: list[Any]) -> Any | None:
    """The first valid entry of a heap; entries of units that moved on are thrown away."""
    while heap:
        entry = heap[0]
        if entry[-1].ticket == entry[-2]:
            return entry
        heapq.heappop(heap)
    return None


def _valid(heap: list[Any]) -> Unit | None:
    entry = _peek(heap)
    if entry is None:
        return None
    heapq.heappop(heap)
    unit: Unit = entry[-1]
    return unit
