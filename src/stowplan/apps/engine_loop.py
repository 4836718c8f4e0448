"""An engine on an event loop: changes go in, actions come out.

    reflectors ──┐                             ┌──► bindings, patches, evictions, questions (tasks)
                 ├─► inbox ─► handle ─► step ──┤
    results ─────┘      ▲                      └──► events (a queue of their own, written while no binding waits)
                        └───────── results ◄───────

All changes in the inbox are handled before the next decision. The number of writes in progress is limited: beyond that
the API server would only queue them, and a later decision knows more. The writes of reconcilers (`is_upkeep`) delay no
decision, and are not finished when the program ends.

Whatever a change or a step raises ends neither the loop nor the program: it is logged, the pod that was attempted fails
by name (`step_failed`), and the loop goes on; if steps fail again and again, after a pause.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, Protocol, TypeVar, runtime_checkable

from stowplan.framework.plugin_faults import error_text, is_ctrl_c
from stowplan.objects.actions import Action, Ask, Bind, Create, Delete, Patch, Record
from stowplan.objects.changes import Change, Result
from stowplan.objects.texts import described

LIMITED = (Bind, Patch, Create, Delete, Ask)
PERMANENT = (400, 401, 403, 405, 415, 422)  # statuses that an operator has to act upon
MAX_IN_PROGRESS = 128
MANY_IN_PROGRESS, GATHERING = 32, 0.01  # writes, and seconds: a server answers some of so many in so short a time
TIME_SLICE = 0.005  # seconds of deciding before other tasks of the event loop run
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0  # seconds after a step that raised; twice as long each time in a row
LONGEST_SLEEP = 1.0  # seconds; `heartbeat` is renewed at least this often


class Engine(Protocol):
    """A state machine without a clock: changes in, actions out."""

    def handle(self, change: Change | Result, now: float) -> list[Action]: ...

    def step(self, now: float) -> list[Action]: ...

    def next_deadline(self) -> float | None: ...

    def is_upkeep(self, action: Action) -> bool: ...


@runtime_checkable
class Resilient(Protocol):
    """An engine that can fail the unit of a step that raised."""

    def step_failed(self, problem: str, now: float) -> list[Action]: ...


E = TypeVar("E", bound=Engine, covariant=True)


class EngineLoop(Generic[E]):
    def __init__(
        self,
        engine: E,
        *,
        perform: Callable[[Action], Awaitable[Result]],
        record: Callable[[Record], None],
        on_busy: Callable[[bool], None] = lambda _: None,
        on_step: Callable[[float], None] = lambda _: None,
        on_problem: Callable[..., None] = lambda *_, **__: None,
        ready: Callable[[], bool] = lambda: True,
        max_in_progress: int = MAX_IN_PROGRESS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_busy` is called with whether bindings wait, `on_step` with the seconds that a step took, and `on_problem`
        with a log line for the operator. `ready` returns whether the engine knows enough to decide.
        """
        self.engine, self.deciding = engine, False
        self.heartbeat = clock()
        self._perform, self._record, self._on_busy, self._on_step = perform, record, on_busy, on_step
        self._on_problem, self._ready = on_problem, ready
        self._max_in_progress, self._clock = max_in_progress, clock
        self._inbox: deque[Change | Result] = deque()
        self._wakeup = asyncio.Event()
        self._in_progress = 0
        self._failed_steps = 0  # in a row
        self._paused_until = float("-inf")
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def silence(self) -> float:
        """Seconds since the last heartbeat."""
        return self._clock() - self.heartbeat

    def receive(self, changes: Iterable[Change | Result]) -> None:
        """Put changes into the inbox; they are handled on the loop's next turn."""
        self._inbox.extend(changes)
        self._wakeup.set()

    def stop_deciding(self) -> None:
        self.deciding = False

    def start_deciding(self) -> None:
        self.deciding = True
        self._wakeup.set()

    async def run(self) -> None:
        """Handle changes and decide, until cancelled."""
        while True:
            self.heartbeat = self._clock()
            self.handle_inbox()
            if self._decide() and self._in_progress < self._max_in_progress:
                await asyncio.sleep(0)
            elif self._in_progress >= MANY_IN_PROGRESS:
                await self._gather_results()
            elif not self._inbox:
                await self._sleep()

    async def finish(self, seconds: float) -> bool:
        """Stop deciding, and wait for writes in progress. Return True if all were answered in time."""
        self.stop_deciding()
        until = self._clock() + seconds
        while self._tasks and self._clock() < until:
            await asyncio.wait(self._tasks, timeout=until - self._clock(), return_when=asyncio.FIRST_COMPLETED)
            self.handle_inbox()
        return not self._tasks

    def handle_inbox(self) -> None:
        """Handle all changes that have arrived."""
        now = self._clock()
        while self._inbox:
            change = self._inbox.popleft()
            try:
                self.send(self.engine.handle(change, now))
            except BaseException as error:  # one bad object must not stop the scheduling of others
                if is_ctrl_c(error):
                    raise
                problem, about = error_text(error), described(change, 300)
                self._on_problem("A change could not be dealt with", error=problem, change=about)

    def _decide(self) -> bool:
        """Step for one time slice. Return True if there was anything to do."""
        begun = now = self._clock()
        while self._has_work(now) and now - begun < TIME_SLICE:
            self._step(now)
            before, now = now, self._clock()
            self._on_step(now - before)
        return now > begun

    def _step(self, now: float) -> None:
        try:
            self.send(self.engine.step(now))
            self._failed_steps = 0
        except BaseException as error:  # whatever it is, memory that ran out included
            if is_ctrl_c(error):
                raise
            self._step_failed(error_text(error), now)

    def _step_failed(self, problem: str, now: float) -> None:
        self._failed_steps += 1
        pause = min(FIRST_PAUSE * 2.0 ** min(self._failed_steps - 1, 20), LONGEST_PAUSE)
        self._paused_until = now + pause
        self._on_problem("A step failed", error=problem, in_a_row=self._failed_steps)
        engine: object = self.engine
        if isinstance(engine, Resilient):
            try:
                self.send(engine.step_failed(problem, now))
            except Exception as error:
                self._on_problem("The pod of a failed step could not be told", error=error_text(error))

    def _has_work(self, now: float) -> bool:
        if not self.deciding or not self._ready() or self._inbox or self._in_progress >= self._max_in_progress:
            return False
        if now < self._paused_until:
            return False
        deadline = self._next_deadline(now)
        return deadline is not None and deadline <= now

    def _next_deadline(self, now: float) -> float | None:
        try:
            return self.engine.next_deadline()
        except BaseException as error:  # of a plugin: its keys are compared, and it may say when it is due
            if is_ctrl_c(error):
                raise
            self._step_failed(error_text(error), now)
            return self._paused_until

    async def _gather_results(self) -> None:
        """Many writes are in progress: what is answered within a moment is handled at once, not one by one.

        (The server has enough to do for longer than that.)
        """
        self._on_busy(True)
        await asyncio.sleep(GATHERING)

    async def _sleep(self) -> None:
        """Sleep until a change arrives, or until the engine's next deadline."""
        self._on_busy(self._in_progress > 0)
        self._wakeup.clear()
        now = self._clock()
        deadline = self._next_deadline(now) if now >= self._paused_until else self._paused_until
        idle = self._in_progress >= self._max_in_progress or not self.deciding or not self._ready()
        wait = LONGEST_SLEEP if deadline is None or idle else min(deadline - now, LONGEST_SLEEP)
        wait = max(wait, min(self._paused_until - now, LONGEST_SLEEP))
        try:
            async with asyncio.timeout(max(wait, 0.0)):
                await self._wakeup.wait()
        except TimeoutError:
            return

    def send(self, actions: Iterable[Action]) -> None:
        """Carry out actions of the engine."""
        for action in actions:
            if isinstance(action, Record):
                self._record(action)
                continue
            if isinstance(action, Bind):
                self._on_busy(True)
            upkeep = self.engine.is_upkeep(action)
            if upkeep and not self.deciding:
                continue
            limited = isinstance(action, LIMITED) and not upkeep
            self._in_progress += limited
            task = asyncio.ensure_future(self._do(action, limited))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _do(self, action: Action, limited: bool) -> None:
        try:
            result = await self._performed(action)
            self.receive((result,))
            if result.status in PERMANENT and not isinstance(action, Ask) and not _is_lost_race(action, result):
                self._report_refusal(action, result)
        finally:
            self._in_progress -= limited

    async def _performed(self, action: Action) -> Result:
        try:
            return await self._perform(action)
        except Exception as error:  # a body of a plugin that cannot be encoded, say; it is not known how far it came
            self._on_problem("An action failed", action=type(action).__name__, error=error_text(error))
            return Result(action.id, 0, error_text(error))

    def _report_refusal(self, action: Action, result: Result) -> None:
        pod = getattr(action, "pod", None)
        about = (
            f"{action.kind} {action.key}" if isinstance(action, Patch | Create | Delete) else getattr(pod, "name", "")
        )
        what = type(action).__name__
        self._on_problem("The API server refuses", action=what, about=about, status=result.status, why=result.message)


def _is_lost_race(action: Action, result: Result) -> bool:
    """True if the test at the head of a JSON patch failed: another writer was first."""
    return isinstance(action, Patch) and isinstance(action.body, list) and result.status == 422
