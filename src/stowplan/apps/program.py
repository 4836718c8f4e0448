"""The life cycle of a service: `stowplan run`, `stowplan place` and `stowplan score-agent` are each a `Program`.

    prepare   the service opens connections, and checks what must hold before it starts
    start     pages are served; engine loops, the event recorder and reflectors run as tasks
    sync      every reflector has listed its kind
    lead      engine loops decide once this replica holds the lease; without leader election they decide at once
    work      until a signal, a lost lease or a failed task
    end       no more decisions ─► writes under way are answered ─► events are written ─► tasks are cancelled
              ─► the lease is released ─► the pages close ─► connections close

A lost lease ends the program with exit code 1, as with kube-scheduler: a supervisor starts it again. Nothing is written
from the moment when the lease may have expired (`Transport.may_write`). A failed task ends the program, too: without
one of its tasks the program would only look alive. So does a task that ends as cancelled, unless the program cancelled
it. A `Watchdog` looks after plugins that do not answer.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from stowplan.apps import leader_election, memory, quick_start, reviews
from stowplan.apps.engine_loop import Engine, EngineLoop
from stowplan.apps.leader_election import ElectionSettings
from stowplan.apps.logging import Log
from stowplan.framework.plugin_faults import error_text
from stowplan.kube import event_loop
from stowplan.kube.client import Client
from stowplan.kube.credentials import Access
from stowplan.kube.events import EventRecorder
from stowplan.kube.lease_thread import LeaseThread
from stowplan.kube.reflector import RECHECK_INTERVAL, Reflector, Sink
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import UnreachableError
from stowplan.kube.transport import Transport
from stowplan.kube.unreadable import UnreadableObject
from stowplan.objects.actions import Record
from stowplan.serving import descriptors

if TYPE_CHECKING:
    from stowplan.apps.http_server import HttpServer
    from stowplan.apps.watchdog.stack import PluginQuestion
    from stowplan.apps.watchdog.watchdog import Watchdog

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SAME_SIGNAL = 1.0  # seconds in which signals count as one: a terminal and a parent process may both send it
RELEASE_WITHIN = 1.5  # seconds for the lease, where the process has to end
T = TypeVar("T")


class Program(ABC):
    finish_within = 20.0  # seconds for writes under way at the end
    drain_within = 30.0  # seconds for events at the end
    sync_within: float | None = None  # seconds until a server that does not answer is an error; None: wait for it
    writes = "writes"  # what the log calls the writes that are finished at the end

    def __init__(self, log: Log, election: ElectionSettings | None = None) -> None:
        """`election`: the lease to hold; None if the program leads at once."""
        self.log = log
        self.engine_loops: Sequence[EngineLoop[Engine]] = ()  # set by a service that decides
        self.recorder: EventRecorder | None = None  # opened by a service that writes events
        self.reflectors: dict[str, Reflector] = {}  # by kind
        self.lease: LeaseThread | None = None
        self.resources = AsyncExitStack()  # what is closed at the very end, the last one first
        self._election = election
        self._stop = asyncio.Event()
        self._stopping = False  # in good order: the lease is released, not lost
        self._failed = False
        self._tasks: list[asyncio.Task[None]] = []
        self._cancelling = False  # the program cancels its tasks
        self.watchdog: Watchdog | None = None
        self._server_of: dict[str, str] = {}  # by kind
        self._problems: dict[str, str] = {}  # the last one, by server
        self._credentials_told: dict[str, float] = {}  # when each problem may be logged again

    # -- what a service defines

    @abstractmethod
    async def prepare(self) -> None:
        """Open connections, and check what must hold before the program starts."""

    @abstractmethod
    def start(self) -> None:
        """Add reflectors (`follow`), and start tasks of the service's own (`start_task`)."""

    @abstractmethod
    def access(self, kubeconfig: str = "") -> Access:
        """How to reach the API server, or the one that this kubeconfig names. Each event loop needs its own."""

    def server(self) -> HttpServer | None:
        """Return a server of the pages, if there is one."""
        return None

    def caches_synced(self) -> None:  # noqa: B027 - a service may have nothing to do then
        """Called once every reflector has listed its kind, before decisions begin."""

    def leading_begins(self) -> None:  # noqa: B027 - a service with engine loops has nothing more to do then
        """Called once this replica leads."""

    def unreadable(self, found: UnreadableObject) -> None:  # noqa: B027 - the log says it in any case
        """Called with each object that cannot be read, once."""

    async def work(self) -> int:
        """Work until the program is stopped, or until the work is done. Return the exit code."""
        await self._stop.wait()
        return 0

    # -- how it stands

    @property
    def leading(self) -> bool:
        return self._election is None if self.lease is None else self.lease.leading

    @property
    def synced(self) -> bool:
        return bool(self.reflectors) and all(each.synced.is_set() for each in self.reflectors.values())

    # -- from start to end

    async def main(self) -> int:
        """Run the program. Return the exit code, which is 1 if the lease was lost or a task failed."""
        server, code = None, 0
        try:
            await self.prepare()
            server = self.server()
            if server is not None:
                server.start()
            self._start_tasks()
            with quick_start.first_lists():
                await self.unless_stopped(self.wait_for_sync())
            if not self._stop.is_set():
                self.caches_synced()
                self._campaign()
                code = await self.work()
                await self._end()
        finally:
            if server is not None:
                server.stop()
            await self._cancel_tasks()
            await self.resources.aclose()
        return 1 if self._failed else code

    def stop(self) -> None:
        """End the program in good order."""
        self._stopping = True
        self._stop.set()

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return the result of this work; None if the program is stopped first, which cancels the work."""
        working, stopped = asyncio.ensure_future(work), asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            return None
        finally:
            for each in (working, stopped):
                each.cancel()
            await asyncio.gather(working, stopped, return_exceptions=True)

    def _start_tasks(self) -> None:
        for loop in self.engine_loops:
            self.start_task(loop.run())
        if self.recorder is not None:
            self.start_task(self.recorder.run())
        self.start_task(memory.keep_trimmed())
        self.start()

    async def _end(self) -> None:
        if self.engine_loops and not self._failed:
            await self._finish()
        await self._cancel_tasks()
        if self.lease is not None:
            await asyncio.to_thread(self.lease.stop)
        if self.engine_loops:
            self.log.info("Stopped")

    async def _finish(self) -> None:
        self.log.info(f"Stopping: {self.writes} under way are finished first")
        finished = [await loop.finish(self.finish_within) for loop in self.engine_loops]
        if self.recorder is not None:
            self.recorder.resume()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.drain_within):
                    await self.recorder.drain()
        if not all(finished):
            self.log.warning(f"Some {self.writes} were not answered in time", seconds=self.finish_within)

    # -- tasks

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this until the program ends; if it fails the program fails."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._task_ended)
        self._tasks.append(task)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            error = "" if self._cancelling else "it was cancelled, and nobody told it to end"
        else:
            raised = task.exception()
            error = "" if raised is None else error_text(raised)
        if error:
            self.log.error("A part of the program failed", error=error)
            self._fail()

    async def _cancel_tasks(self) -> None:
        self._cancelling = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _fail(self) -> None:
        self._failed = True
        self._stop.set()

    # -- plugins that do not answer

    def plugin_hung(self, question: PluginQuestion, problem: str) -> None:  # noqa: B027 - not every service has plugins
        """A call of a plugin was interrupted."""

    def mark_hung(self, question: PluginQuestion, problem: str) -> None:  # noqa: B027 - the same
        """Note where the next leader finds it that this call resists."""

    def last_words(self, question: PluginQuestion | None, problem: str) -> None:
        """A call of a plugin resists, and the process ends. This is called in a thread of its own."""
        try:
            if question is not None:
                self.mark_hung(question, problem)
        finally:
            if self.lease is not None:
                self.lease.stop(RELEASE_WITHIN)

    # -- connections and caches

    def open_client(self, access: Access, connections: int, *, qps: float = 0.0, burst: int = 100) -> Client:
        """Return a client that is closed when the program ends. It writes only while this replica leads."""
        access.on_problem = self._credentials_failed
        transport = Transport(access, connections=connections, qps=qps, burst=burst, may_write=lambda: self.leading)
        client = Client(transport)
        self.resources.push_async_callback(client.close)
        return client

    def open_recorder(self, writers: int, *, qps: float = 0.0, burst: int = 100) -> EventRecorder:
        """Return the program's event recorder. It has connections of its own: events do not delay other writes."""
        client = self.open_client(self.access(), writers, qps=qps, burst=burst)
        self.recorder = EventRecorder(client, host=socket.gethostname(), on_problem=self.log.warning, writers=writers)
        return self.recorder

    def record(self, event: Record) -> None:
        assert self.recorder is not None, "events are recorded once the program is prepared"
        self.recorder.record(event)

    def client_of(self, kubeconfig: str = "") -> Client:
        """Return a client for the event loop of another thread."""
        access = self.access(kubeconfig)
        access.on_problem = self._credentials_failed
        return Client(Transport(access, connections=reviews.CONNECTIONS))

    def _credentials_failed(self, problem: str) -> None:
        """Log it once a minute, whichever of the clients noticed it."""
        now = time.monotonic()
        if now >= self._credentials_told.get(problem, now):
            self._credentials_told[problem] = now + 60.0
            self.log.warning("Credentials cannot be renewed", problem=problem)

    def follow(
        self,
        client: Client,
        resource: ApiResource,
        sink: Sink,
        *,
        server: str = "",
        namespace: str = "",
        keep_raw: bool = False,
        recheck_after: float = RECHECK_INTERVAL,
    ) -> Reflector:
        """Follow the objects of a kind, in one namespace or in all; `server` names the server, if there are several."""

        def note(problem: str) -> None:
            self._problems[server] = problem
            self.log.warning("Cannot follow", **({"where": server} if server else {}), problem=problem)

        reflector = Reflector(
            client,
            resource,
            sink,
            namespace=namespace,
            on_problem=note,
            on_unreadable=self.unreadable,
            keep_raw=keep_raw,
            recheck_after=recheck_after,
        )
        self.reflectors[resource.kind], self._server_of[resource.kind] = reflector, server
        self.start_task(reflector.run())
        return reflector

    async def wait_for_sync(self) -> None:
        try:
            async with asyncio.timeout(self.sync_within):
                for reflector in self.reflectors.values():
                    await reflector.synced.wait()
        except TimeoutError:
            server = next(self._server_of[kind] for kind, each in self.reflectors.items() if not each.synced.is_set())
            why = self._problems.get(server, "no answer")
            raise UnreachableError(f"{server} could not be read within {self.sync_within:g} s: {why}") from None
        await asyncio.sleep(0)  # the engine handles what was listed last before anything is decided

    # -- the lease

    def _campaign(self) -> None:
        if self._election is None:
            self._begin_deciding()
            return
        self.lease = leader_election.campaign(
            self._election, self.client_of, self.log, won=self._begin_deciding, ended=self._lease_ended
        )

    def _begin_deciding(self) -> None:
        for loop in self.engine_loops:
            loop.start_deciding()
        self.leading_begins()

    def _lease_ended(self) -> None:
        if self._stopping or self._election is None:
            return
        self.log.error("The lease is lost", lease=self._election.name)
        for loop in self.engine_loops:
            loop.stop_deciding()
        self._fail()


def run(make: Callable[[], Program]) -> int:
    """Run a program until a signal stops it. Return the exit code."""
    descriptors.raise_limit()

    async def main() -> int:
        program = make()
        with watched(program):
            on_stop_signal(program.stop, program.watchdog)
            return await program.main()

    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        return runner.run(main())


@contextmanager
def watched(program: Program) -> Iterator[None]:
    """Look after the plugins of a program, if it has any. Only the main thread can be looked after."""
    if not program.engine_loops or threading.current_thread() is not threading.main_thread():
        yield
        return
    from stowplan.apps.watchdog.watchdog import Watchdog  # imports what plugins use, and some programs have none

    with Watchdog(program.log, hung=program.plugin_hung, last_words=program.last_words) as program.watchdog:
        yield


def on_stop_signal(stop: Callable[[], None], watchdog: Watchdog | None = None) -> None:
    """Call this on SIGTERM and on SIGINT (Ctrl-C). With a watchdog they end a plugin's call, too, which hangs.

    A second signal ends the process at once, whatever it is doing.
    """
    stopped_at = float("inf")
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop)
        by_loop = signal.getsignal(number)

        def handle(number: int, top: FrameType | None, by_loop: Any = by_loop) -> None:
            nonlocal stopped_at
            now = time.monotonic()
            if now - stopped_at >= SAME_SIGNAL:
                os._exit(128 + number)
            stopped_at = min(stopped_at, now)
            by_loop(number, top)

        if callable(by_loop):
            signal.signal(number, handle)
    if watchdog is not None:
        watchdog.cover(STOP_SIGNALS)
