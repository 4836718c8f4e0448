"""Events about pods, written to events.k8s.io from a queue, so that they never delay a binding.

As in kube-scheduler, events that differ in their note only and repeat within six minutes become a series. The first
repetition is written at once. Later ones are counted, and the count is written after half an hour, when the series is
over, or by `drain`. An event is lost only if the queue is full.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from stowplan.kube import action_requests, prepared_requests
from stowplan.kube.client import Client
from stowplan.kube.resources import EVENTS
from stowplan.kube.responses import Response, WireError
from stowplan.objects.actions import Record
from stowplan.objects.texts import shortened

SERIES_OVER_AFTER = 360.0  # seconds without a repetition until a series is over
SERIES_WRITE_INTERVAL = 1800.0  # seconds between two writes of the count of a series
WRITE_TIMEOUT = 120.0  # seconds of retries for one event
MAX_QUEUE = 100_000
MAX_SERIES = 50_000  # series that are kept in memory
# A pod is bound once: this event never repeats, and there are as many as pods, so it starts no series.
UNREPEATED = "Scheduled"
MAX_NAME = 253
_NUMBERS = re.compile(r"\d+")


class _Series(msgspec.Struct):
    """An event with its repetitions, and how much of it has been written."""

    event: Record
    name: str
    first: datetime
    last: datetime
    at: float  # the time of the last repetition, by the clock
    written_at: float
    count: int = 1
    written: int = 1
    created: bool = False
    queued: bool = False
    writing: bool = False  # a writer is writing it; a second writer could overtake the first

    @property
    def series_field(self) -> dict[str, int | str]:
        return {"count": self.count, "lastObservedTime": action_requests.micro_time(self.last)}


class EventRecorder:
    """Run `run` as a task, and call `record` in the same event loop. `pause` stops the writing until `resume`."""

    def __init__(
        self,
        client: Client,
        *,
        host: str,
        on_problem: Callable[[str], None] = lambda _: None,
        writers: int = 4,
        max_queue: int = MAX_QUEUE,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._host, self._on_problem, self._writers = client, host, on_problem, writers
        self._clock, self._now, self._max_queue = clock, now, max_queue
        self._queue: deque[_Series] = deque()
        self._series: dict[tuple[str, ...], _Series] = {}
        self._wakeup, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._paused = False
        self._writing = 0
        self._last_stamp = 0

    @property
    def waiting(self) -> int:
        """The number of events that are not yet written."""
        return len(self._queue) + self._writing

    # -- recording

    def record(self, event: Record) -> None:
        """Queue an event."""
        key = _key(event)
        series = self._series.get(key)
        if series is not None and self._clock() - series.at < SERIES_OVER_AFTER:
            self._repeat(series)
            return
        if series is not None:
            self._close(key)
        series = self._first(event)
        if event.reason != UNREPEATED:
            self._series[key] = series
            if len(self._series) > MAX_SERIES:
                self._close(next(iter(self._series)))
        self._enqueue(series)

    def _first(self, event: Record) -> _Series:
        moment, at = self._now(), self._clock()
        # As in kube-scheduler, the name ends with a timestamp in nanoseconds, which must be unique.
        self._last_stamp = max(self._last_stamp + 1, int(moment.timestamp() * 1e6) * 1000)
        name = f"{event.pod.name}.{self._last_stamp:x}"
        fitting = name if len(name) <= MAX_NAME else f"event.{self._last_stamp:x}"
        return _Series(event, fitting, moment, moment, at, at)

    def _repeat(self, series: _Series) -> None:
        series.count, series.last, series.at = series.count + 1, self._now(), self._clock()
        if series.written == 1 or series.at - series.written_at >= SERIES_WRITE_INTERVAL:
            self._write_count(series)

    def _write_count(self, series: _Series) -> None:
        series.written, series.written_at = series.count, self._clock()
        self._enqueue(series)

    def _enqueue(self, series: _Series) -> None:
        """Queue a series once. A series that is being written is queued again by its writer."""
        if series.queued:
            return
        if len(self._queue) >= self._max_queue:
            self._on_problem(f"events: {len(self._queue)} wait to be written; lost: {series.event.note}")
            return
        series.queued = True
        self._idle.clear()
        if not series.writing:
            self._queue.append(series)
            self._wakeup.set()

    def close_idle_series(self) -> None:
        """Close the series that are over, and write the counts that are due."""
        now = self._clock()
        for key, series in list(self._series.items()):
            if now - series.at >= SERIES_OVER_AFTER:
                self._close(key)
            elif series.count > series.written and now - series.written_at >= SERIES_WRITE_INTERVAL:
                self._write_count(series)

    def _close(self, key: tuple[str, ...]) -> None:
        series = self._series.pop(key)
        if series.count > series.written:
            self._write_count(series)

    # -- writing

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._writers):
                tasks.create_task(self._keep_writing())
            tasks.create_task(self._keep_closing())

    async def drain(self) -> None:
        """Wait until all recorded events are written; `run` must be running."""
        for key in list(self._series):
            self._close(key)
        self.resume()
        await self._idle.wait()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._wakeup.set()

    async def _keep_closing(self) -> None:
        while True:
            await asyncio.sleep(SERIES_OVER_AFTER / 6)
            self.close_idle_series()

    async def _keep_writing(self) -> None:
        while True:
            while self._paused or not self._queue:
                self._wakeup.clear()
                await self._wakeup.wait()
            series = self._queue.popleft()
            self._writing += 1
            series.queued, series.writing = False, True
            try:
                await self._write(series)
            finally:
                self._writing -= 1
                series.writing = False
            if series.queued:  # it was repeated in the meantime
                self._queue.append(series)
            if not self.waiting:
                self._idle.set()

    async def _write(self, series: _Series) -> None:
        until = asyncio.get_running_loop().time() + WRITE_TIMEOUT
        try:
            response = await (self._patch(series, until) if series.created else self._create(series, until))
        except (WireError, UnicodeEncodeError) as error:  # a plugin may give an event any reason
            self._on_problem(f"events: lost: {shortened(series.event.note)}: {error}")
            return
        series.created = response.ok or (response.status == 409 and response.maybe_applied)
        if not series.created:
            self._on_problem(f"events: lost: {series.event.note}: {response.status} {response.message}")

    async def _create(self, series: _Series, until: float) -> Response:
        if series.count == 1:
            prepared = prepared_requests.event(series.event, name=series.name, at=series.first, host=self._host)
            if prepared is not None:
                return await self._client.post(*prepared, until=until)
        counted = series.series_field if series.count > 1 else None
        request = action_requests.event(
            series.event, name=series.name, at=series.first, host=self._host, series=counted
        )
        return await self._client.send(request, until=until)

    async def _patch(self, series: _Series, until: float) -> Response:
        key = f"{_namespace(series)}/{series.name}"
        response = await self._client.patch(EVENTS, key, {"series": series.series_field}, until=until)
        # Events are deleted after an hour; then the series is created again, with its count.
        return await self._create(series, until) if response.status == 404 else response


def _key(event: Record) -> tuple[str, ...]:
    """What repetitions have in common: all but the note, or all but the numbers in it."""
    related = event.related.uid or event.related.name if event.related is not None else ""
    note = _NUMBERS.sub("", event.note) if event.by_note else ""
    return event.pod.uid, event.reason, event.action, event.type, event.reporting_controller, related, note


def _namespace(series: _Series) -> str:
    return series.event.pod.namespace or "default"
