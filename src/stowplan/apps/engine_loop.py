"""The engine at work: what the wire tells goes in, what the engine wants done goes out, all on one event loop.

    reflectors ──┐                             ┌──► bindings, patches, evictions, questions (tasks)
                 ├─► inbox ─► handle ─► step ──┤
    results ─────┘      ▲                      └──► events (a queue of their own, written when nobody waits to be bound)
                        └───────── answers ◄───────

What came in is always taken in before the next decision. Not more than so many bindings are under way at once: beyond
that a server only queues them, and decisions made later are made knowing more. What plugins keep in step besides
(`engine.reconcilers`) holds up no decision, and is left as it is when the program ends.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, Protocol, TypeVar

from stowplan.objects.actions import Action, Ask, Bind, Create, Delete, Patch, Record
from stowplan.objects.changes import Change, Result

COUNTED = (Bind, Patch, Create, Delete, Ask)
SAYS_MUCH = (400, 401, 403, 405, 415, 422)  # no matter of timing: somebody has to set something right
MOST_UNDER_WAY = 128
STRETCH = 0.005  # seconds of deciding before the event loop has its turn
LONGEST_REST = 1.0  # seconds; also how often `beat` is renewed while there is nothing to do


class Engine(Protocol):
    """A machine without a clock."""

    def handle(self, change: Change | Result, now: float) -> list[Action]: ...

    def step(self, now: float) -> list[Action]: ...

    def next_deadline(self) -> float | None: ...

    def is_upkeep(self, action: Action) -> bool: ...


E = TypeVar("E", bound=Engine)


class EngineLoop(Generic[E]):
    def __init__(
        self,
        engine: E,
        *,
        perform: Callable[[Action], Awaitable[Result]],
        record: Callable[[Record], None],
        busy: Callable[[bool], None] = lambda _: None,
        stepped: Callable[[float], None] = lambda _: None,
        problem: Callable[..., None] = lambda *_, **__: None,
        ready: Callable[[], bool] = lambda: True,
        most_under_way: int = MOST_UNDER_WAY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`busy` is told whether pods wait to be bound; `stepped` how many seconds a step took; `problem` what an
        operator should know; `ready` says whether enough is known to decide upon.
        """
        self.engine, self.deciding = engine, False
        self.beat = clock()
        self._perform, self._record, self._busy, self._stepped = perform, record, busy, stepped
        self._problem, self._ready = problem, ready
        self._most_under_way, self._clock = most_under_way, clock
        self._inbox: deque[Change | Result] = deque()
        self._news = asyncio.Event()
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, changes: Iterable[Change | Result]) -> None:
        """Something came; it is looked at on the loop's next turn."""
        self._inbox.extend(changes)
        self._news.set()

    def start_deciding(self) -> None:
        self.deciding = True
        self._news.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.beat = self._clock()
            self.take_in()
            if self._decide():
                await asyncio.sleep(0)
            elif not self._inbox:
                await self._rest()

    async def finish(self, seconds: float) -> bool:
        """No more decisions; wait for what is under way. Whether all of it was answered in time."""
        self.deciding = False
        until = self._clock() + seconds
        while self._tasks and self._clock() < until:
            await asyncio.wait(self._tasks, timeout=until - self._clock(), return_when=asyncio.FIRST_COMPLETED)
            self.take_in()
        return not self._tasks

    def take_in(self) -> None:
        """Look at all that came."""
        now = self._clock()
        while self._inbox:
            change = self._inbox.popleft()
            try:
                self._send(self.engine.handle(change, now))
            except Exception as error:  # one object that cannot be dealt with must not stop the scheduling of others
                self._problem("A change could not be dealt with", error=repr(error), change=repr(change)[:300])

    def _decide(self) -> bool:
        """Step for a while; whether anything was done."""
        begun = now = self._clock()
        while self._has_work(now) and now - begun < STRETCH:
            self._send(self.engine.step(now))
            before, now = now, self._clock()
            self._stepped(now - before)
        return now > begun

    def _has_work(self, now: float) -> bool:
        if not self.deciding or not self._ready() or self._inbox or self._under_way >= self._most_under_way:
            return False
        deadline = self.engine.next_deadline()
        return deadline is not None and deadline <= now

    async def _rest(self) -> None:
        """Until something comes, or time alone makes a step worth taking."""
        self._busy(self._under_way > 0)
        self._news.clear()
        now, deadline = self._clock(), self.engine.next_deadline()
        idle = self._under_way >= self._most_under_way or not self.deciding or not self._ready()
        wait = LONGEST_REST if deadline is None or idle else min(deadline - now, LONGEST_REST)
        try:
            async with asyncio.timeout(max(wait, 0.0)):
                await self._news.wait()
        except TimeoutError:
            return

    def _send(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Record):
                self._record(action)
                continue
            if isinstance(action, Bind):
                self._busy(True)
            upkeep = self.engine.is_upkeep(action)
            if upkeep and not self.deciding:
                continue
            counted = isinstance(action, COUNTED) and not upkeep
            self._under_way += counted
            task = asyncio.ensure_future(self._do(action, counted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _do(self, action: Action, counted: bool) -> None:
        try:
            result = await self._perform(action)
            self.take((result,))
            if result.status in SAYS_MUCH and not isinstance(action, Ask) and not _is_lost_race(action, result):
                self._say(action, result)
        finally:
            self._under_way -= counted

    def _say(self, action: Action, result: Result) -> None:
        pod = getattr(action, "pod", None)
        about = (
            f"{action.kind} {action.key}" if isinstance(action, Patch | Create | Delete) else getattr(pod, "name", "")
        )
        what = type(action).__name__
        self._problem("The API server refuses", action=what, about=about, status=result.status, why=result.message)


def _is_lost_race(action: Action, result: Result) -> bool:
    """A test at the head of a JSON patch failed: somebody else wrote first."""
    return isinstance(action, Patch) and isinstance(action.body, list) and result.status == 422
