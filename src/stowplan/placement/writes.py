"""The writes in progress: their numbers and deadlines, and the phases of each placement (as in `decision_writes`).

If a write is refused or not answered, the rest of the plan is dropped, the placement's decisions are again what the
API server shows, and the placement is decided again after a pause that grows with each failure in a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stowplan.framework.sent_actions import SentActions
from stowplan.objects.actions import Action, Create, Delete, ObjectRef, Record
from stowplan.objects.changes import Result
from stowplan.objects.placements import API_VERSION, Placement
from stowplan.placement.decision_cache import ASSUMED_FOR, DecisionCache
from stowplan.placement.decision_writes import CONTROLLER, Phase, PlannedWrite

LONGEST_PAUSE = 300.0
_VERBS: dict[type, str] = {Create: "created", Delete: "deleted"}


@dataclass(slots=True)
class WritesInProgress:
    """A placement's phases to come, and the writes of the present phase that are not answered."""

    placement: Placement
    phases: list[Phase]
    phase: Phase = field(default_factory=Phase)
    awaited: dict[int, PlannedWrite] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """What follows for a placement from an answer. `done`: all its writes have succeeded."""

    key: str
    actions: list[Action] = field(default_factory=list)
    done: bool = False
    retry_after: float | None = None  # seconds, if a write has failed


class PlacementWrites:
    def __init__(self, cache: DecisionCache, answer_within: float) -> None:
        self._cache, self._sent = cache, SentActions[str](answer_within)  # each is sent for the key of its placement
        self._plans: dict[str, WritesInProgress] = {}
        self._failures: dict[str, int] = {}  # in a row

    def start(self, placement: Placement, phases: list[Phase], now: float) -> list[Action]:
        """Return the writes of the first phase. There is at least one phase, and each has at least one write."""
        plan = self._plans[placement.key] = WritesInProgress(placement, phases)
        return self._send_next(plan, now)

    def answered(self, result: Result, now: float) -> WriteProgress | None:
        """One write was answered. The next phase is sent after the last answer of the present one.

        Return None if the answer is no longer awaited.
        """
        key = self._sent.pop(result.id)
        if key is None:
            return None
        plan = self._plans[key]
        write = plan.awaited.pop(result.id)
        if not result.succeeded and not (isinstance(write.action, Delete) and result.status == 404):
            return self._fail(key, plan, write, result, now)
        if plan.awaited:
            return WriteProgress(key)
        events, done = plan.phase.events, not plan.phases
        writes = [] if done else self._send_next(plan, now)
        if done:
            del self._plans[key]
            self._failures.pop(key, None)
        return WriteProgress(key, [*(self._sent.send(event, now) for event in events), *writes], done)

    def overdue(self, now: float) -> Result | None:
        """Return a result for the first write that was not answered in time."""
        return self._sent.overdue(now)

    def next_deadline(self) -> float | None:
        return self._sent.next_deadline()

    def forget(self, key: str) -> None:
        plan = self._plans.pop(key, None)
        self._failures.pop(key, None)
        if plan is not None:
            self._sent.forget(plan.awaited)

    def _send_next(self, plan: WritesInProgress, now: float) -> list[Action]:
        plan.phase, actions = plan.phases.pop(0), list[Action]()
        for write in plan.phase.writes:
            if write.key:
                self._cache.assume(write.key, write.becomes, now + ASSUMED_FOR)
            action = self._sent.send(write.action, now, plan.placement.key)
            plan.awaited[action.id] = write
            actions.append(action)
        return actions

    def _fail(self, key: str, plan: WritesInProgress, write: PlannedWrite, result: Result, now: float) -> WriteProgress:
        """Drop the plan: what became of its other writes is only known when the API server shows it."""
        self._sent.forget(plan.awaited)
        for each in (write, *plan.awaited.values()):
            if each.key:
                self._cache.drop_assumed(each.key)
        del self._plans[key]
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(2.0 ** min(failures - 1, 10), LONGEST_PAUSE)
        return WriteProgress(key, [self._sent.send(_refusal(plan.placement, write, result), now)], retry_after=pause)


def _refusal(placement: Placement, write: PlannedWrite, result: Result) -> Record:
    """Return the event about a write that failed."""
    about = ObjectRef(placement.namespace, placement.name, placement.uid, "Placement", API_VERSION)
    verb = _VERBS.get(type(write.action), "written")
    what = write.key or f"the status of {placement.key}"
    note = f"{what} cannot be {verb}: {result.status} {result.message}"[:1000]
    return Record(
        pod=about, type="Warning", reason="BindFailed", action="Binding", note=note, reporting_controller=CONTROLLER
    )
