"""Events: each one is written, repeats become series, and nothing waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
from aiohttp import web

from stowplan.kube import events
from stowplan.kube.events import EventRecorder
from stowplan.objects.actions import PodRef, Record
from tests.kube.fakes import Fake, a_client, answered, refused, serving, until

EVENTS = "/apis/events.k8s.io/v1/namespaces/ns/events"


def an_event(name: str = "p", *, reason: str = "FailedScheduling", note: str = "0/1", related: str = "") -> Record:
    return Record(
        pod=PodRef("ns", name, f"uid-{name}"),
        type="Warning",
        reason=reason,
        action="Scheduling",
        note=note,
        reporting_controller="stowplan",
        related=PodRef("ns", related, related) if related else None,
    )


class Server:
    """Keeps events by name."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.hiccups: list[web.Response] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.at_once = 0
        self.most_at_once = 0

    async def __call__(self, request: web.Request) -> web.Response:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.001)
        await self.gate.wait()
        self.at_once -= 1
        if self.hiccups:
            return self.hiccups.pop(0)
        body, name = await request.json(), request.path.rpartition("/")[2]
        if request.method == "POST":
            name = body["metadata"]["name"]
            if name in self.events:
                return refused(409, "exists")
            self.events[name] = body
        elif name not in self.events:
            return refused(404, "not found")
        else:
            self.events[name] |= body
        return answered({}, 201)


class Running:
    def __init__(self, fake: Fake, recorder: EventRecorder, server: Server, now: list[float]) -> None:
        self.fake, self.recorder, self.server, self.now = fake, recorder, server, now
        self.problems: list[str] = []

    @property
    def requests(self) -> list[str]:
        return [method for method, _, _ in self.fake.asked]


@asynccontextmanager
async def recording(**options: Any) -> AsyncIterator[Running]:
    server, now = Server(), [1_000.0]
    async with serving(server) as fake, a_client(fake) as client:
        running = Running(fake, None, server, now)  # type: ignore[arg-type]
        running.recorder = EventRecorder(
            client,
            host="host",
            on_problem=running.problems.append,
            clock=lambda: now[0],
            now=lambda: datetime.fromtimestamp(now[0], UTC),
            **options,
        )
        task = asyncio.create_task(running.recorder.run())
        yield running
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_event_in_kubernetes_words() -> None:
    async with recording() as running:
        running.recorder.record(an_event(related="other"))
        await running.recorder.drain()
        ((method, path, body),) = running.fake.asked
        assert (method, path) == ("POST", EVENTS)
        assert body == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"p.{1000 * 10**9:x}", "namespace": "ns"},
            "eventTime": "1970-01-01T00:16:40.000000Z",
            "reportingController": "stowplan",
            "reportingInstance": "stowplan-host",
            "action": "Scheduling",
            "reason": "FailedScheduling",
            "type": "Warning",
            "note": "0/1",
            "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "p", "uid": "uid-p"},
            "related": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "other", "uid": "other"},
        }


async def test_the_first_repeat_is_written_and_the_others_are_counted() -> None:
    async with recording() as running:
        for step in range(5):
            running.now[0] = 1000 + 100 * step
            running.recorder.record(an_event(note=f"0/{step}"))
            await until(lambda: not running.recorder.waiting)
        assert running.requests == ["POST", "PATCH"]
        assert running.fake.asked[1][2] == {"series": {"count": 2, "lastObservedTime": "1970-01-01T00:18:20.000000Z"}}
        await running.recorder.drain()
        (event,) = running.server.events.values()
        assert (event["note"], event["series"]["count"]) == ("0/0", 5)
        assert running.fake.asked[2][2] == {"series": {"count": 5, "lastObservedTime": "1970-01-01T00:23:20.000000Z"}}


async def test_a_repeat_does_not_overtake_the_event_that_is_being_written() -> None:
    async with recording() as running:
        running.server.gate.clear()
        running.recorder.record(an_event())
        await until(lambda: running.server.at_once)
        running.recorder.record(an_event())
        running.recorder.record(an_event())
        running.server.gate.set()
        await running.recorder.drain()
        (event,) = running.server.events.values()
        assert (running.requests, event["series"]["count"], running.problems) == (["POST", "PATCH"], 3, [])


async def test_after_six_silent_minutes_a_repeat_is_a_new_event() -> None:
    async with recording() as running:
        for at in (1000, 1010, 1020, 1381):
            running.now[0] = at
            running.recorder.record(an_event())
        await running.recorder.drain()
        counts = [event.get("series", {}).get("count", 1) for event in running.server.events.values()]
        assert counts == [3, 1]


async def test_the_count_of_a_series_is_written_in_time() -> None:
    async with recording() as running:
        for at in (1000, 1001, 1002):
            running.now[0] = at
            running.recorder.record(an_event("over"))
            running.recorder.record(an_event("going-on"))
        for at in range(1300, 3000, 300):
            running.now[0] = at
            running.recorder.record(an_event("going-on"))
            running.recorder.close_idle_series()
        await until(lambda: not running.recorder.waiting)
        counts = {name.partition(".")[0]: event["series"]["count"] for name, event in running.server.events.items()}
        assert counts == {"over": 3, "going-on": 9}


async def test_other_events_are_not_repeats() -> None:
    async with recording() as running:
        running.recorder.record(an_event())
        running.recorder.record(an_event(reason="Preempted"))
        running.recorder.record(an_event(related="other"))
        running.recorder.record(an_event("q"))
        await running.recorder.drain()
        assert running.requests == ["POST"] * 4
        assert len(running.server.events) == 4


async def test_events_whose_notes_matter_are_a_series_by_note() -> None:
    async with recording() as running:
        for note in ("no PodGroup", "1 of 3 pods exist", "2 of 3 pods exist"):  # a slow group must not fill the server
            running.recorder.record(msgspec.structs.replace(an_event(note=note), by_note=True))
        await running.recorder.drain()
        told = {event["note"]: event.get("series", {}).get("count", 1) for event in running.server.events.values()}
        assert told == {"no PodGroup": 1, "1 of 3 pods exist": 2}


async def test_related_objects_without_a_uid_are_distinguished_by_name() -> None:
    async with recording() as running:
        for name in ("p-decision-1", "p-decision-2"):
            related = PodRef("ns", name, "")
            running.recorder.record(msgspec.structs.replace(an_event(), related=related))
        await running.recorder.drain()
        assert len(running.server.events) == 2


async def test_a_series_whose_event_was_deleted_is_written_as_a_new_one() -> None:
    async with recording() as running:
        running.recorder.record(an_event())
        await until(lambda: not running.recorder.waiting)
        running.server.events.clear()
        running.recorder.record(an_event())
        await running.recorder.drain()
        (event,) = running.server.events.values()
        assert (running.requests, event["series"]["count"]) == (["POST", "PATCH", "POST"], 2)


async def test_many_events_over_few_connections_and_none_is_lost() -> None:
    async with recording(writers=3) as running:
        running.server.hiccups = [refused(503), refused(429)]
        for number in range(200):
            running.recorder.record(an_event(f"p{number}", reason="Scheduled"))
        await running.recorder.drain()
        assert len(running.server.events) == 200
        assert (running.server.most_at_once, running.problems) == (3, [])


async def test_bindings_may_go_first() -> None:
    async with recording() as running:
        running.recorder.pause()
        running.recorder.record(an_event())
        for _ in range(50):
            await asyncio.sleep(0)
        assert (running.requests, running.recorder.waiting) == ([], 1)
        running.recorder.resume()
        await until(lambda: running.requests == ["POST"])


async def test_lost_events_are_reported() -> None:
    async with recording(max_queue=1, writers=1) as running:
        running.server.hiccups = [refused(403, "not you")]
        running.recorder.pause()
        running.recorder.record(an_event("a", note="first"))
        running.recorder.record(an_event("b", note="second"))
        await running.recorder.drain()
        assert running.problems == [
            "events: 1 wait to be written; lost: second",
            "events: lost: first: 403 not you",
        ]


async def test_an_event_that_cannot_be_encoded_is_lost_and_the_next_one_is_written() -> None:
    async with recording(writers=1) as running:
        running.recorder.record(an_event("a", reason="\ud800", note="first \ud800"))
        running.recorder.record(an_event("b", note="second \ud800"))
        await running.recorder.drain()
        assert [each["note"] for each in running.server.events.values()] == ["second ?"]
        assert len(running.problems) == 1 and running.problems[0].startswith("events: lost: first ?: ")


async def test_events_that_cannot_repeat_are_not_remembered() -> None:
    async with recording() as running:
        for number in range(10):
            running.recorder.record(an_event(f"p{number}", reason=events.UNREPEATED))
        assert running.recorder._series == {}
        await running.recorder.drain()


async def test_names_fit_and_differ() -> None:
    async with recording() as running:
        for reason in ("A", "B", "C"):
            running.recorder.record(an_event("x" * 253, reason=reason))
        await running.recorder.drain()
        assert len(running.server.events) == 3
        assert all(len(name) <= 253 for name in running.server.events)
