"""What is under way for each placement: phases of writes, sent one after the other (`placement_plan` says why).

If a write is refused or never answered, the rest is dropped, the placement's decisions are again what the server shows,
and it is decided anew after a pause that grows with every failure in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from stowplan.framework.pending_actions import PendingActions
from stowplan.objects.actions import Create, Delete, ObjectRef, Record
from stowplan.objects.changes import Result
from stowplan.objects.placements import API_VERSION, Placement
from stowplan.placement.decision_cache import DecisionCache
from stowplan.placement.write_plan import Phase, PlannedWrite

BELIEVED = 30.0  # seconds that a write counts which the server has not shown yet
LONGEST_PAUSE = 300.0
CONTROLLER = "placementController"
_VERBS: dict[type, str] = {Create: "created", Delete: "deleted"}


class WritesInProgress:
    """The phases still to come, and what is awaited of the present one."""

    __slots__ = ("awaited", "phase", "phases")

    def __init__(self, phases: list[Phase]) -> None:
        self.phases = [phase for phase in phases if phase.writes]
        self.phase = Phase()
        self.awaited: dict[int, PlannedWrite] = {}


class PlacementWrites:
    """`settled(key, failed, now)` is told when a placement's writes are through, or given up."""

    def __init__(
        self, book: DecisionCache, outbox: PendingActions, settled: Callable[[str, bool, float], None]
    ) -> None:
        self._book, self._outbox, self._settled = book, outbox, settled
        self._plans: dict[str, WritesInProgress] = {}
        self._failures: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._plans

    def forget(self, key: str) -> None:
        plan = self._plans.pop(key, None)
        self._failures.pop(key, None)
        if plan is not None:
            self._outbox.forget(plan.awaited)

    def start(self, placement: Placement, phases: list[Phase], now: float) -> Iterator[Any]:
        """Write all this; nothing to write is fine, too."""
        plan = WritesInProgress(phases)
        if plan.phases:
            self._plans[placement.key] = plan
            yield from self._next(placement, plan, now)

    def pause(self, key: str) -> float:
        """How long to wait after so many failures."""
        return min(2.0 ** min(self._failures.get(key, 1) - 1, 10), LONGEST_PAUSE)

    def _next(self, placement: Placement, plan: WritesInProgress, now: float) -> Iterator[Any]:
        plan.phase = plan.phases.pop(0)
        for write in plan.phase.writes:
            if write.key:
                self._book.assume(write.key, write.becomes, now + BELIEVED)
            sent = self._outbox.send(write.action, now, partial(self._answered, placement))
            plan.awaited[sent.id] = write
            yield sent

    def _answered(self, placement: Placement, result: Result, now: float) -> Iterator[Any]:
        plan = self._plans[placement.key]
        write = plan.awaited.pop(result.id)
        if not result.fine and not (isinstance(write.action, Delete) and result.status == 404):
            yield from self._failed(placement, plan, write, result, now)
        elif not plan.awaited:
            yield from plan.phase.events
            if plan.phases:
                yield from self._next(placement, plan, now)
            else:
                del self._plans[placement.key]
                self._failures.pop(placement.key, None)
                self._settled(placement.key, False, now)

    def _failed(
        self, placement: Placement, plan: WritesInProgress, write: PlannedWrite, result: Result, now: float
    ) -> Iterator[Any]:
        """Nobody knows what the server has now but the server."""
        self._outbox.forget(plan.awaited)
        for each in (write, *plan.awaited.values()):
            if each.key:
                self._book.doubt(each.key)
        del self._plans[placement.key]
        self._failures[placement.key] = self._failures.get(placement.key, 0) + 1
        self._settled(placement.key, True, now)
        yield _refusal(placement, write, result)


def _refusal(placement: Placement, write: PlannedWrite, result: Result) -> Record:
    about = ObjectRef(placement.namespace, placement.name, placement.uid, "Placement", API_VERSION)
    verb = _VERBS.get(type(write.action), "written")
    what = write.key or f"the status of {placement.key}"
    note = f"{what} cannot be {verb}: {result.status} {result.message}"[:1000]
    return Record(
        pod=about, type="Warning", reason="BindFailed", action="Binding", note=note, reporting_controller=CONTROLLER
    )
