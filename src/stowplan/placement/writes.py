"""The writes in progress: their numbers and deadlines, and the phases of each placement (as in `decision_writes`).

If a write is refused or not answered, the rest of the plan is dropped, and the placement is decided again after a pause
that grows with each failure in a row. A write without an answer may have been carried out, and the watch may be late.
So its object is in doubt: it is read before the placement is decided again. Otherwise a plan could take a cluster from
one object because another one seems to list it, and that one may list it no longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stowplan.framework.sent_actions import SentActions
from stowplan.objects.actions import Action, Create, Delete, ObjectRef, ReadObject, Record
from stowplan.objects.changes import Result
from stowplan.objects.placements import API_VERSION, Placement
from stowplan.placement.decision_cache import ASSUMED_FOR, DecisionCache
from stowplan.placement.decision_writes import CONTROLLER, Phase, PlannedWrite

LONGEST_PAUSE = 300.0
_VERBS: dict[type, str] = {Create: "created", Delete: "deleted", ReadObject: "read"}


@dataclass(slots=True)
class WritesInProgress:
    """A placement's phases to come, and the writes of the present phase that are not answered."""

    placement: Placement
    phases: list[Phase]
    reads: bool = False  # it reads objects that are in doubt, and writes nothing
    phase: Phase = field(default_factory=Phase)
    awaited: dict[int, PlannedWrite] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """What follows for a placement from an answer. `done`: all its writes, or reads, have succeeded."""

    key: str
    actions: list[Action] = field(default_factory=list)
    done: bool = False
    retry_after: float | None = None  # seconds, if a write has failed


class PlacementWrites:
    def __init__(self, cache: DecisionCache, answer_within: float) -> None:
        self._cache, self._sent = cache, SentActions[str](answer_within)  # each is sent for the key of its placement
        self._plans: dict[str, WritesInProgress] = {}
        self._failures: dict[str, int] = {}  # in a row
        self._doubtful: dict[str, set[str]] = {}  # by placement: the decisions whose state is not known

    def start(self, placement: Placement, phases: list[Phase], now: float) -> list[Action]:
        """Return the writes of the first phase. There is at least one phase, and each has at least one write."""
        plan = self._plans[placement.key] = WritesInProgress(placement, phases)
        return self._send_next(plan, now)

    def doubt(self, key: str, decisions: Iterable[str]) -> None:
        """It is not known how these decisions of a placement are at the API server."""
        if found := set(decisions):
            self._doubtful[key] = self._doubtful.get(key, set()) | found

    def has_doubts(self, key: str) -> bool:
        """True if decisions of a placement must be read before it is decided."""
        return key in self._doubtful

    def read(self, placement: Placement, now: float) -> list[Action]:
        """Return the reads of a placement's decisions that are in doubt. They end as the writes of a plan do."""
        keys = sorted(self._doubtful[placement.key])
        reads = [PlannedWrite(ReadObject(kind="PlacementDecision", key=key)) for key in keys]
        plan = self._plans[placement.key] = WritesInProgress(placement, [Phase(reads)], reads=True)
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
        gone = isinstance(write.action, Delete | ReadObject) and result.status == 404
        unreadable = isinstance(write.action, ReadObject) and result.status == 403
        if not result.succeeded and not gone and not unreadable:
            return self._fail(key, plan, write, result, now)
        if unreadable:  # without the right to read, what the watch shows has to do
            plan.phase.events.append(_refusal(plan.placement, write, result))
        if plan.awaited:
            return WriteProgress(key)
        events, done = plan.phase.events, not plan.phases
        writes = [] if done else self._send_next(plan, now)
        if done:
            del self._plans[key]
            (self._doubtful if plan.reads else self._failures).pop(key, None)
        return WriteProgress(key, [*(self._sent.send(event, now) for event in events), *writes], done)

    def overdue(self, now: float) -> Result | None:
        """Return a result for the first write that was not answered in time."""
        return self._sent.overdue(now)

    def next_deadline(self) -> float | None:
        return self._sent.next_deadline()

    def forget(self, key: str) -> None:
        plan = self._plans.pop(key, None)
        self._failures.pop(key, None)
        self._doubtful.pop(key, None)
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
        unknown = plan.awaited.values() if _refused(result) else (write, *plan.awaited.values())
        self.doubt(key, (each.key for each in unknown if each.key))
        self._sent.forget(plan.awaited)
        for each in (write, *plan.awaited.values()):
            if each.key:
                self._cache.drop_assumed(each.key)
        del self._plans[key]
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(2.0 ** min(failures - 1, 10), LONGEST_PAUSE)
        return WriteProgress(key, [self._sent.send(_refusal(plan.placement, write, result), now)], retry_after=pause)


def _refused(result: Result) -> bool:
    """True if the server has not carried out the write, and not because it has another state than we know."""
    return 400 <= result.status < 500 and result.status not in (404, 409)


def _refusal(placement: Placement, write: PlannedWrite, result: Result) -> Record:
    """Return the event about a write that failed."""
    about = ObjectRef(placement.namespace, placement.name, placement.uid, "Placement", API_VERSION)
    verb = _VERBS.get(type(write.action), "written")
    what = write.action.key if isinstance(write.action, ReadObject) else write.key or f"the status of {placement.key}"
    note = f"{what} cannot be {verb}: {result.status} {result.message}"[:1000]
    return Record(
        pod=about, type="Warning", reason="BindFailed", action="Binding", note=note, reporting_controller=CONTROLLER
    )
