"""Events about pods, written to events.k8s.io from a queue: they may come late, but never delay a binding.

As kube-scheduler has it: what repeats within six minutes, in everything but its note, becomes a series. Its first
repeat is written at once, further ones are counted and written after half an hour, when the series has been silent
for six minutes, or at the end. `drain` writes all there is. Nothing is lost unless the queue outgrows its limit.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from stowplan.kube import action_requests
from stowplan.kube.client import Client
from stowplan.kube.resources import EVENTS
from stowplan.kube.responses import Response, WireError
from stowplan.objects.actions import Record

OVER_AFTER = 360.0  # seconds of silence until a repeat is a new event
REFRESHED_AFTER = 1800.0  # seconds until a series that goes on is written again
GIVEN_UP_AFTER = 120.0  # seconds of trying to write one event
LONGEST_QUEUE = 100_000
REMEMBERED = 50_000  # events that a repeat can be told from
# A pod is bound once: this event cannot repeat, and there are as many as pods, so it is not remembered.
ONCE = "Scheduled"
LONGEST_NAME = 253


class _Told(msgspec.Struct):
    """An event, how often it came, and of how many times the server was told."""

    event: Record
    name: str
    first: datetime
    last: datetime
    at: float  # when it came last, by the clock
    written_at: float
    count: int = 1
    written: int = 1
    created: bool = False
    queued: bool = False
    busy: bool = False  # a writer has it; a second one would overtake the first

    @property
    def series(self) -> dict[str, Any]:
        return {"count": self.count, "lastObservedTime": action_requests.micro_time(self.last)}


class EventRecorder:
    """`run` it as a task, and `record` in the same event loop. `pause` holds the writing back until `resume`."""

    def __init__(
        self,
        client: Client,
        *,
        host: str,
        on_problem: Callable[[str], None] = lambda _: None,
        writers: int = 4,
        longest_queue: int = LONGEST_QUEUE,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._host, self._on_problem, self._writers = client, host, on_problem, writers
        self._clock, self._now, self._longest_queue = clock, now, longest_queue
        self._queue: deque[_Told] = deque()
        self._told: dict[tuple[str, ...], _Told] = {}
        self._news, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._paused = False
        self._writing = 0
        self._last_stamp = 0

    @property
    def waiting(self) -> int:
        """How many are yet to be written."""
        return len(self._queue) + self._writing

    # -- taking note

    def record(self, event: Record) -> None:
        """Take note of an event; it is written when there is time."""
        key = _key(event)
        told = self._told.get(key)
        if told is not None and self._clock() - told.at < OVER_AFTER:
            self._repeat(told)
            return
        if told is not None:
            self._close(key)
        told = self._first(event)
        if event.reason != ONCE:
            self._told[key] = told
            if len(self._told) > REMEMBERED:
                self._close(next(iter(self._told)))
        self._enqueue(told)

    def _first(self, event: Record) -> _Told:
        moment, at = self._now(), self._clock()
        # Named as kube-scheduler names them, after the nanosecond; two of the same one must differ.
        self._last_stamp = max(self._last_stamp + 1, int(moment.timestamp() * 1e6) * 1000)
        name = f"{event.pod.name}.{self._last_stamp:x}"
        fitting = name if len(name) <= LONGEST_NAME else f"event.{self._last_stamp:x}"
        return _Told(event, fitting, moment, moment, at, at)

    def _repeat(self, told: _Told) -> None:
        told.count, told.last, told.at = told.count + 1, self._now(), self._clock()
        if told.written == 1 or told.at - told.written_at >= REFRESHED_AFTER:
            self._write_count(told)

    def _write_count(self, told: _Told) -> None:
        told.written, told.written_at = told.count, self._clock()
        self._enqueue(told)

    def _enqueue(self, told: _Told) -> None:
        """What waits already will be written as it is by then; what is being written waits for its writer."""
        if told.queued:
            return
        if len(self._queue) >= self._longest_queue:
            self._on_problem(f"events: {len(self._queue)} wait to be written; lost: {told.event.note}")
            return
        told.queued = True
        self._idle.clear()
        if not told.busy:
            self._queue.append(told)
            self._news.set()

    def tidy(self) -> None:
        """Close the series that are over, and write the counts that were not written for long."""
        now = self._clock()
        for key, told in list(self._told.items()):
            if now - told.at >= OVER_AFTER:
                self._close(key)
            elif told.count > told.written and now - told.written_at >= REFRESHED_AFTER:
                self._write_count(told)

    def _close(self, key: tuple[str, ...]) -> None:
        told = self._told.pop(key)
        if told.count > told.written:
            self._write_count(told)

    # -- writing

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._writers):
                tasks.create_task(self._keep_writing())
            tasks.create_task(self._keep_tidy())

    async def drain(self) -> None:
        """Until all that was recorded is written; `run` must be running."""
        for key in list(self._told):
            self._close(key)
        self.resume()
        await self._idle.wait()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._news.set()

    async def _keep_tidy(self) -> None:
        while True:
            await asyncio.sleep(OVER_AFTER / 6)
            self.tidy()

    async def _keep_writing(self) -> None:
        while True:
            while self._paused or not self._queue:
                self._news.clear()
                await self._news.wait()
            told = self._queue.popleft()
            self._writing += 1
            told.queued, told.busy = False, True
            try:
                await self._write(told)
            finally:
                self._writing -= 1
                told.busy = False
            if told.queued:  # it was told of again meanwhile
                self._queue.append(told)
            if not self.waiting:
                self._idle.set()

    async def _write(self, told: _Told) -> None:
        until = asyncio.get_running_loop().time() + GIVEN_UP_AFTER
        try:
            answer = await (self._patch(told, until) if told.created else self._create(told, until))
        except WireError as error:
            self._on_problem(f"events: lost: {told.event.note}: {error}")
            return
        told.created = answer.ok or (answer.status == 409 and answer.maybe_applied)
        if not told.created:
            self._on_problem(f"events: lost: {told.event.note}: {answer.status} {answer.message}")

    async def _create(self, told: _Told, until: float) -> Response:
        series = told.series if told.count > 1 else None
        request = action_requests.event(told.event, name=told.name, at=told.first, host=self._host, series=series)
        return await self._client.send(request, until=until)

    async def _patch(self, told: _Told, until: float) -> Response:
        key = f"{_namespace(told)}/{told.name}"
        answer = await self._client.patch(EVENTS, key, {"series": told.series}, until=until)
        # After an hour events are deleted; then it is written anew, with its count.
        return await self._create(told, until) if answer.status == 404 else answer


def _key(event: Record) -> tuple[str, ...]:
    """All but the note."""
    related = event.related.uid or event.related.name if event.related is not None else ""
    return event.pod.uid, event.reason, event.action, event.type, event.reporting_controller, related


def _namespace(told: _Told) -> str:
    return told.event.pod.namespace or "default"
