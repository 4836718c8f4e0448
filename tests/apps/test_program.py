"""The life cycle of a program: what runs when, what ends it, in which order it ends, and its exit code."""

from __future__ import annotations

import asyncio
import io
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stowplan.apps.engine_loop import EngineLoop
from stowplan.apps.leader_election import ElectionSettings
from stowplan.apps.logging import Log
from stowplan.apps.program import Program
from stowplan.apps.watchdog.stack import PluginQuestion
from stowplan.embedded.cluster import Embedded
from stowplan.kube import credentials
from stowplan.kube.resources import RESOURCES
from stowplan.kube.responses import UnreachableError
from stowplan.objects.actions import Action
from stowplan.objects.changes import Change, Result


class Engine:
    """An engine that decides nothing."""

    def handle(self, change: Change | Result, now: float) -> list[Action]:
        return []

    def step(self, now: float) -> list[Action]:
        return []

    def next_deadline(self) -> float | None:
        return None

    def is_upkeep(self, action: Action) -> bool:
        return False


async def unused(action: Action) -> Result:
    raise AssertionError("nothing is sent")


class Scripted(Program):
    """Notes each step of its life, and does in it what a test wants (`on`)."""

    def __init__(self, kubeconfig: Path, election: ElectionSettings | None = None, **on: Callable[[], Any]) -> None:
        self.said = io.StringIO()
        super().__init__(Log(stream=self.said), election)
        self.steps: list[str] = []
        self._kubeconfig, self._on = kubeconfig, on
        self.engine_loop = EngineLoop(Engine(), perform=unused, record=lambda _: None)
        self.engine_loops = (self.engine_loop,)

    def _note(self, step: str) -> None:
        self.steps.append(step)
        if step in self._on:
            self._on[step]()

    def access(self, kubeconfig: str = "") -> credentials.Access:
        return credentials.load(kubeconfig or str(self._kubeconfig))

    async def prepare(self) -> None:
        self.client = self.open_client(self.access(), 2)
        self.resources.callback(self._note, "closed")
        self._note("prepared")

    def start(self) -> None:
        self.start_task(self._task())
        self.follow(self.client, RESOURCES["Node"], self.engine_loop.receive)

    async def _task(self) -> None:
        try:
            self._note("task runs")
            await asyncio.Event().wait()
        finally:
            self.steps.append("task ends")

    def caches_synced(self) -> None:
        self._note("synced")

    async def work(self) -> int:
        self._note("works")
        code = await super().work()
        self._note("stops")
        return code

    @property
    def lines(self) -> list[str]:
        return [line.split("] ")[1] for line in self.said.getvalue().splitlines()]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


def with_cluster(tmp_path: Path, story: Callable[[Path, Embedded], Any]) -> None:
    async def main() -> None:
        async with Embedded(with_controllers=False) as cluster:
            file = tmp_path / "kubeconfig"
            file.write_text(cluster.kubeconfig())
            await story(file, cluster)

    asyncio.run(main())


def fail() -> None:
    raise ZeroDivisionError("a bug")


def test_the_order_of_starting_and_of_ending(tmp_path: Path) -> None:
    async def story(kubeconfig: Path, _: Embedded) -> None:
        program = Scripted(kubeconfig, works=lambda: asyncio.get_running_loop().call_soon(program.stop))
        assert (program.leading, program.synced) == (True, False)
        assert await program.main() == 0
        assert program.steps == ["prepared", "task runs", "synced", "works", "stops", "task ends", "closed"]
        assert program.lines == ['"Stopping: writes under way are finished first"', '"Stopped"']
        assert program.synced and not program.engine_loop.deciding

    with_cluster(tmp_path, story)


def test_stopped_before_the_caches_are_synced(tmp_path: Path) -> None:
    async def story(kubeconfig: Path, cluster: Embedded) -> None:
        await cluster.stop()
        program = Scripted(kubeconfig)
        running = asyncio.ensure_future(program.main())
        await until(lambda: "Cannot follow" in program.said.getvalue())
        program.stop()
        assert await running == 0
        assert program.steps == ["prepared", "task runs", "task ends", "closed"]
        assert not any("Stop" in line for line in program.lines)

    with_cluster(tmp_path, story)


def test_a_task_that_fails_ends_the_program(tmp_path: Path) -> None:
    async def story(kubeconfig: Path, _: Embedded) -> None:
        program = Scripted(kubeconfig, works=lambda: program.start_task(broken()))

        async def broken() -> None:
            fail()

        assert await program.main() == 1
        assert program.steps[-3:] == ["stops", "task ends", "closed"]
        failure = '"A part of the program failed" error="ZeroDivisionError: a bug (test_program.py:'
        assert program.lines[0].startswith(failure)
        assert program.lines[1:] == ['"Stopped"'], "nothing is awaited"

    with_cluster(tmp_path, story)


def test_a_task_that_is_cancelled_by_nobody_of_the_program_ends_it(tmp_path: Path) -> None:
    """As by a library that is used wrongly: the program would go on without the task, and look alive."""

    async def story(kubeconfig: Path, _: Embedded) -> None:
        async def stray() -> None:
            raise asyncio.CancelledError

        program = Scripted(kubeconfig, works=lambda: program.start_task(stray()))
        assert await program.main() == 1
        failure = '"A part of the program failed" error="it was cancelled, and nobody told it to end"'
        assert program.lines == [failure, '"Stopped"']

    with_cluster(tmp_path, story)


DEAF = """
import asyncio
from stowplan.apps import program

async def main():
    program.on_stop_signal(lambda: None)
    print("ready", flush=True)
    while True:
        pass

program.SAME_SIGNAL = 0.2
asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_a_process_that_does_not_listen(number: signal.Signals) -> None:
    """Code of a plugin that nobody watches, a constructor say, may keep the event loop from turning."""
    with subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            process.send_signal(number)
            deadline = time.monotonic() + 30
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.3)
                process.send_signal(number)
            assert process.returncode == 128 + number
        finally:
            process.kill()


def test_before_the_process_must_end_the_lease_is_given_back(tmp_path: Path) -> None:
    """The next leader need not wait until the lease has run out, even though the event loop does not turn."""
    election = ElectionSettings(name="test", lease_duration=30.0, renew_deadline=20.0, retry_period=0.2)

    async def story(kubeconfig: Path, _: Embedded) -> None:
        marked: list[str] = []

        def mark(question: PluginQuestion, _: str) -> None:
            marked.append(question.about)
            fail()

        first, second = Scripted(kubeconfig, election), Scripted(kubeconfig, election)
        running = asyncio.ensure_future(first.main())
        await until(lambda: first.engine_loop.deciding)
        question = PluginQuestion("Odd", "filter", "default/web", "uid", "mine.py:12")
        first.mark_hung = mark  # type: ignore[method-assign, assignment]
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(first.last_words, question, question.problem(20))
        assert marked == ["default/web"]
        other = asyncio.ensure_future(second.main())
        await until(lambda: second.engine_loop.deciding)
        for program in (first, second):
            program.stop()
        await asyncio.gather(running, other)

    with_cluster(tmp_path, story)


@pytest.mark.parametrize("step", ["prepared", "synced", "works"])
def test_whatever_a_service_raises_it_is_closed(tmp_path: Path, step: str) -> None:
    async def story(kubeconfig: Path, _: Embedded) -> None:
        on: dict[str, Any] = {step: fail}
        program = Scripted(kubeconfig, **on)
        with pytest.raises(ZeroDivisionError):
            await program.main()
        assert program.steps[-1] == "closed"

    with_cluster(tmp_path, story)


def test_one_replica_leads_and_the_other_stands_by(tmp_path: Path) -> None:
    election = ElectionSettings(name="test", lease_duration=3.0, renew_deadline=2.0, retry_period=0.2)

    async def story(kubeconfig: Path, _: Embedded) -> None:
        first, second = Scripted(kubeconfig, election), Scripted(kubeconfig, election)
        assert not first.leading
        running = [asyncio.ensure_future(first.main())]
        await until(lambda: first.engine_loop.deciding)
        running.append(asyncio.ensure_future(second.main()))
        await until(lambda: "works" in second.steps)
        assert (first.leading, second.leading, second.engine_loop.deciding) == (True, False, False)
        first.stop()
        await until(lambda: second.engine_loop.deciding)
        second.stop()
        assert await asyncio.gather(*running) == [0, 0]
        assert not any("lost" in line for line in (*first.lines, *second.lines))

    with_cluster(tmp_path, story)


def test_a_lost_lease_ends_the_program(tmp_path: Path) -> None:
    election = ElectionSettings(name="test", lease_duration=1.0, renew_deadline=0.6, retry_period=0.1)

    async def story(kubeconfig: Path, cluster: Embedded) -> None:
        program = Scripted(kubeconfig, election)
        running = asyncio.ensure_future(program.main())
        await until(lambda: program.engine_loop.deciding)
        await cluster.stop()
        async with asyncio.timeout(60):
            assert await running == 1
        assert not program.engine_loop.deciding
        assert '"The lease is lost" lease="test"' in program.lines
        assert program.lines[-1] == '"Stopped"'
        assert not any("Stopping" in line for line in program.lines), "nothing is awaited"

    with_cluster(tmp_path, story)


def test_a_server_that_does_not_answer_in_time(tmp_path: Path) -> None:
    async def story(kubeconfig: Path, cluster: Embedded) -> None:
        await cluster.stop()
        program = Scripted(kubeconfig)
        program.sync_within = 0.3
        with pytest.raises(UnreachableError, match=r"could not be read within 0\.3 s: nodes: "):
            await program.main()

    with_cluster(tmp_path, story)
