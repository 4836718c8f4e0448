"""The engine on an event loop: changes in, actions out, results in; the limit of writes in progress, and the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from stowplan.apps.engine_loop import MANY_IN_PROGRESS, EngineLoop
from stowplan.engine.pods import assumed
from stowplan.engine.reconcilers import MOST_WRITES
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.actions import Action, Bind, Patch, Record
from stowplan.objects.changes import Put, Result
from stowplan.testing.builders import a_node, a_pod, a_profile


class Server:
    """Binds pods once a test allows it."""

    def __init__(self, live_of: Callable[[], EngineLoop[Scheduler]]) -> None:
        self.pods: dict[str, Any] = {}
        self.bound: dict[str, str] = {}
        self.events: list[Record] = []
        self.open = asyncio.Event()
        self.open.set()
        self.kept, self.patched = asyncio.Event(), 0
        self.kept.set()
        self.most = self.now = 0
        self._live_of = live_of

    async def perform(self, action: Action) -> Result:
        if isinstance(action, Patch):
            self.patched += 1
            await self.kept.wait()
        if not isinstance(action, Bind):
            return Result(action.id)
        self.now += 1
        self.most = max(self.most, self.now)
        await self.open.wait()
        self.now -= 1
        self.bound[action.pod.name] = action.node_name
        self._live_of().receive([Put(assumed(self.pods[action.pod.uid], action.node_name))])
        return Result(action.id)


def scene(**options: Any) -> tuple[EngineLoop[Scheduler], Server]:
    engine = Scheduler({"default-scheduler": a_profile()}, np.random.default_rng(0))
    found: list[EngineLoop[Scheduler]] = []
    server = Server(lambda: found[0])
    found.append(EngineLoop(engine, perform=server.perform, record=server.events.append, **options))
    return found[0], server


def submit(live: EngineLoop[Scheduler], server: Server, number: int) -> None:
    pods = [a_pod(f"p{each}", cpu="10m") for each in range(number)]
    server.pods |= {pod.uid: pod for pod in pods}
    live.receive([Put(a_node("a", cpu=64)), Put(a_node("b", cpu=64)), *map(Put, pods)])


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.002)


def run(test: Any) -> None:
    asyncio.run(test)


def test_pods_are_bound_and_events_recorded() -> None:
    async def story() -> None:
        live, server = scene()
        task = asyncio.create_task(live.run())
        live.start_deciding()
        submit(live, server, 40)
        await until(lambda: len(server.events) == 40 and len(server.bound) == 40 and not live.engine.assumed_pods)
        task.cancel()

    run(story())


def test_changes_that_arrive_while_it_is_cancelled_do_not_keep_it_running() -> None:
    async def story() -> None:
        live, server = scene()
        task = asyncio.create_task(live.run())
        await asyncio.sleep(0.01)  # it sleeps
        submit(live, server, 1)
        task.cancel()
        await asyncio.wait((task,), timeout=60)
        assert task.cancelled()

    run(story())


def test_results_of_many_writes_are_handled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        live, server = scene()
        gathered, gatherings = asyncio.Event(), 0

        async def gather(_: EngineLoop[Scheduler]) -> None:
            nonlocal gatherings
            gatherings += 1
            await gathered.wait()

        monkeypatch.setattr(EngineLoop, "_gather_results", gather)
        server.open.clear()
        task = asyncio.create_task(live.run())
        live.start_deciding()
        submit(live, server, MANY_IN_PROGRESS)
        await until(lambda: gatherings == 1)
        assert server.now == MANY_IN_PROGRESS
        server.open.set()
        await until(lambda: len(server.bound) == MANY_IN_PROGRESS)
        assert len(live.engine.assumed_pods) == MANY_IN_PROGRESS  # answered, and not handled yet
        gathered.set()
        await until(lambda: not live.engine.assumed_pods)
        assert gatherings == 1
        task.cancel()

    run(story())


def test_nothing_is_decided_before_start_deciding() -> None:
    async def story() -> None:
        live, server = scene()
        task = asyncio.create_task(live.run())
        submit(live, server, 3)
        await until(lambda: len(live.engine.queue.units) == 3)
        assert not server.bound
        live.start_deciding()
        await until(lambda: len(server.bound) == 3)
        task.cancel()

    run(story())


def test_nothing_is_decided_until_it_is_ready() -> None:
    async def test() -> None:
        known = False
        live, server = scene(ready=lambda: known)
        task = asyncio.ensure_future(live.run())
        live.start_deciding()
        submit(live, server, 3)
        await asyncio.sleep(0.05)
        assert server.bound == {}
        known = True
        live.receive(())
        await until(lambda: len(server.bound) == 3)
        task.cancel()

    run(test())


def test_the_number_of_writes_in_progress_is_limited() -> None:
    async def story() -> None:
        live, server = scene(max_in_progress=5)
        server.open.clear()
        task = asyncio.create_task(live.run())
        live.start_deciding()
        submit(live, server, 30)
        await until(lambda: server.now == 5)
        await asyncio.sleep(0)
        assert len(live.engine.assumed_pods) == 5 and len(live.engine.queue.units) == 25
        server.open.set()
        await until(lambda: len(server.bound) == 30)
        assert server.most == 5
        task.cancel()

    run(story())


class SlowReconciler:
    """Reconciles fifty objects, slowly."""

    reconciles = ("Pod",)
    writes: ClassVar = {"ReplicaSet": ("patch",)}

    def post_bind(self, *_: object) -> tuple[()]:
        return ()

    def reconcile(self, changed: object, cluster: object) -> list[Patch]:
        return [Patch(kind="ReplicaSet", key=f"default/{number}", body={}) for number in range(50) if changed is None]


def test_writes_of_reconcilers_delay_no_decision_and_are_not_finished_at_the_end() -> None:
    async def story() -> None:
        live, server = scene(max_in_progress=3)
        keeping = EnabledPlugin("Keeping", SlowReconciler())
        plain = live.engine.profiles["default-scheduler"]
        points = {**plain.points, "postBind": (*plain.points["postBind"], keeping)}
        live.engine.adopt({"default-scheduler": Profile("default-scheduler", points)}, 0.0)
        server.kept.clear()
        task = asyncio.create_task(live.run())
        live.start_deciding()
        submit(live, server, 20)
        await until(lambda: len(server.bound) == 20 and server.patched >= MOST_WRITES)
        assert server.patched == MOST_WRITES, "all of them unanswered"
        live.deciding = False
        server.kept.set()
        assert await live.finish(60.0)
        assert server.patched == MOST_WRITES, "no further writes"
        task.cancel()

    run(story())


@pytest.mark.parametrize(
    ("opens", "finished"),
    [pytest.param(True, True, id="answered"), pytest.param(False, False, id="not answered")],
)
def test_finish_waits_for_writes_in_progress(opens: bool, finished: bool) -> None:
    async def story() -> None:
        live, server = scene(max_in_progress=2)
        server.open.clear()
        task = asyncio.create_task(live.run())
        live.start_deciding()
        submit(live, server, 4)
        await until(lambda: server.now == 2)
        if opens:
            asyncio.get_running_loop().call_later(0.02, server.open.set)
        assert await live.finish(60.0 if opens else 0.05) is finished
        assert len(server.bound) == (2 if opens else 0), "no decision after that"
        server.open.set()
        task.cancel()

    run(story())


def test_on_busy_reports_whether_pods_wait_to_be_bound() -> None:
    async def story() -> None:
        told: list[bool] = []
        live, server = scene(on_busy=told.append)
        task = asyncio.create_task(live.run())
        live.start_deciding()
        submit(live, server, 3)
        await until(lambda: len(server.bound) == 3 and told[-1:] == [False])
        assert True in told
        task.cancel()

    run(story())


@pytest.mark.parametrize("error", [MemoryError(), asyncio.CancelledError(), KeyError("oops")], ids=repr)
def test_a_step_that_raises_is_logged_and_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def story() -> None:
        problems: list[tuple[str, dict[str, Any]]] = []
        live, server = scene(on_problem=lambda text, **about: problems.append((text, about)))
        step, failures = live.engine.step, iter(range(3))

        def sometimes(now: float) -> list[Action]:
            if next(failures, None) is not None:
                raise error
            return step(now)

        monkeypatch.setattr(live.engine, "step", sometimes)
        task = asyncio.create_task(live.run())
        live.start_deciding()
        submit(live, server, 3)
        await until(lambda: len(server.bound) == 3)
        assert [(text, about["in_a_row"]) for text, about in problems] == [("A step failed", row) for row in (1, 2, 3)]
        assert "(test_engine_loop.py:" in problems[0][1]["error"]
        task.cancel()

    run(story())


def test_an_attempt_whose_failure_fails_is_the_pods_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod gets its event from the last net, and is tried again."""

    async def story() -> None:
        live, server = scene(clock=lambda: 0.0)
        attempts = live.engine.attempts
        failed = attempts._fail
        broken = iter([True])

        def attempt(*_: Any) -> None:
            raise MemoryError

        def fail(*arguments: Any) -> None:
            if next(broken, False):
                raise MemoryError
            failed(*arguments)

        monkeypatch.setattr(attempts, "_attempt", attempt)
        monkeypatch.setattr(attempts, "_fail", fail)
        live.start_deciding()
        submit(live, server, 1)
        live.handle_inbox()
        live._step(0.0)
        (event,) = server.events
        assert event.reason == "FailedScheduling" and "internal error: MemoryError" in event.note

    run(story())


def test_a_change_that_raises_anything_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        problems: list[str] = []
        live, _ = scene(on_problem=lambda text, **_: problems.append(text))
        handle = live.engine.handle

        def picky(change: Any, now: float) -> list[Action]:
            if change.object.name == "bad":
                raise asyncio.CancelledError
            return handle(change, now)

        monkeypatch.setattr(live.engine, "handle", picky)
        live.receive([Put(a_node("bad")), Put(a_node("good"))])
        live.handle_inbox()
        assert problems == ["A change could not be dealt with"]
        assert list(live.engine.state.table.row_of) == ["good"]

    run(story())


def test_a_deadline_that_cannot_be_told_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sort keys of plugins are compared for it."""

    async def story() -> None:
        problems: list[str] = []
        live, server = scene(on_problem=lambda text, **_: problems.append(text))
        told, asked = live.engine.next_deadline, iter([True, True, True])

        def moody() -> float | None:
            if next(asked, False):
                raise TypeError("'<' not supported")
            return told()

        monkeypatch.setattr(live.engine, "next_deadline", moody)
        task = asyncio.create_task(live.run())
        live.start_deciding()
        submit(live, server, 1)
        await until(lambda: bool(server.bound))
        assert problems == ["A step failed"] * 3
        task.cancel()

    run(story())


def test_an_action_that_cannot_be_sent_counts_as_unanswered() -> None:
    async def story() -> None:
        problems: list[str] = []

        async def perform(action: Action) -> Result:
            raise UnicodeEncodeError("utf-8", "x", 0, 1, "no")

        live, server = scene(on_problem=lambda text, **_: problems.append(text))
        live._perform = perform
        task = asyncio.create_task(live.run())
        live.start_deciding()
        submit(live, server, 1)
        await until(lambda: "An action failed" in problems and not live._in_progress)
        task.cancel()

    run(story())
