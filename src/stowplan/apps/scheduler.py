"""`stowplan run`: a scheduler in a cluster. Wiring only: wire, engine, lease, pages and configuration put together.

    start:  configuration ─► wire ─► may we serve these names? ─► reflectors synced ─► lease ─► decisions
    stop:   no more decisions ─► bindings under way finish ─► events written ─► lease given back

Losing the lease ends the program, as with kube-scheduler: whoever starts it starts it anew. From the moment the lease
is not surely ours any more, nothing is written (`Transport.may_write`).
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from stowplan.apps import pages
from stowplan.apps.leading import Leading, somebody_schedules
from stowplan.apps.live import Live
from stowplan.apps.logs import Log
from stowplan.apps.options import Options, Running, load
from stowplan.apps.reload import Loaded, follow
from stowplan.apps.serving import Serving
from stowplan.engine import reports
from stowplan.engine.scheduler import Scheduler
from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.events import EventRecorder
from stowplan.kube.extenders import Extenders
from stowplan.kube.reflector import Reflector
from stowplan.kube.resources import RESOURCES
from stowplan.kube.transport import Transport
from stowplan.kube.writer import Writer
from stowplan.objects.errors import ConfigError, StowplanError

EVENT_WRITERS = 8
FINISH_WITHIN = 20.0  # seconds for bindings under way when told to stop
DRAIN_WITHIN = 30.0  # seconds for events


class Program:
    def __init__(
        self, options: Options, log: Log | None = None, *, serve_default: bool = False, signals: bool = True
    ) -> None:
        """`serve_default`: without a configuration serve `default-scheduler`; `signals`: end when told to by one."""
        self.options, self._signals = options, signals
        loaded, self._file = load(options, serve_default=serve_default)
        self.running = Running(options, loaded, log or Log(options.v, options.logging_format))
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[Any]] = []

    # -- from beginning to end

    async def main(self) -> int:
        """Run until told to stop (0) or until the lease is lost (1)."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT) if self._signals else ():
            with suppress(NotImplementedError, RuntimeError):
                loop.add_signal_handler(number, self.stop)
        client, events = Client(self._transport()), Client(self._transport(EVENT_WRITERS))
        serving = Serving(pages.of(self.running, loop), pages.doors(self.options, self._client_of))
        try:
            await self._refuse_to_double(client)
            serving.start()
            await self._work(client, events)
        except OSError as error:
            raise ConfigError(f"cannot listen on port {self.options.secure_port}: {error.strerror or error}") from None
        finally:
            serving.stop()
            await client.close()
            await events.close()
        return 1 if self.running.lost else 0

    def stop(self) -> None:
        self.running.stopping = True
        self._stop.set()

    async def _work(self, client: Client, events: Client) -> None:
        running, log = self.running, self.running.log
        recorder = EventRecorder(events, host=socket.gethostname(), on_problem=log.warning, writers=EVENT_WRITERS)
        live = running.live = self._live(client, recorder)
        self._begin(live.run(), recorder.run(), self._tick())
        self._reflect(client, self._kinds(running.loaded))
        if not await self._unless_stopped(self._all_synced()):
            return
        gc.collect()
        gc.freeze()  # what was listed stays; walking it again and again is time taken from decisions
        log.info("Caches are synced", nodes=len(live.engine.state.table.live_rows()), pods=len(live.engine.state.pods))
        Leading(running, lambda: self._client_of(""), self._lost).start()
        if self._file is not None:
            self._begin(follow(self._file, running.loaded, adopt=self._adopt, refuse=self._complain))
        await self._stop.wait()
        await self._end(live, recorder)

    async def _end(self, live: Live, recorder: EventRecorder) -> None:
        log = self.running.log
        if not self.running.lost:
            log.info("Stopping: bindings under way are finished first")
            finished = await live.finish(FINISH_WITHIN)
            recorder.resume()
            with suppress(TimeoutError):
                await asyncio.wait_for(recorder.drain(), DRAIN_WITHIN)
            if not finished:
                log.warning("Some bindings were not answered in time", seconds=FINISH_WITHIN)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.running.lease is not None:
            await asyncio.to_thread(self.running.lease.stop)
        log.info("Stopped")

    def _begin(self, *work: Any) -> None:
        for each in work:
            task = asyncio.ensure_future(each)
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """No part of the program may die unnoticed: without one of them it would only look alive."""
        if not task.cancelled() and task.exception() is not None:
            self.running.log.error("A part of the program failed", error=repr(task.exception()))
            self.running.lost = True
            self._stop.set()

    async def _unless_stopped(self, work: Any) -> bool:
        waiting, stopped = asyncio.ensure_future(work), asyncio.ensure_future(self._stop.wait())
        await asyncio.wait((waiting, stopped), return_when=asyncio.FIRST_COMPLETED)
        for each in (waiting, stopped):
            each.cancel()
        return not self._stop.is_set()

    # -- parts

    def _transport(self, connections: int = 0) -> Transport:
        connection = self.running.loaded.configuration.client_connection
        file = self.options.kubeconfig or connection.kubeconfig
        access = credentials.load(file or None, self.options.context or None)
        qps = connection.qps if connection.qps is not None else 0.0
        return Transport(
            access,
            connections=connections or self.options.connections,
            qps=qps,
            burst=connection.burst,
            may_write=lambda: self.running.lease is None or self.running.lease.leading,
            user_agent="stowplan",
        )

    def _client_of(self, kubeconfig: str) -> Client:
        file = kubeconfig or self.options.kubeconfig or self.running.loaded.configuration.client_connection.kubeconfig
        return Client(Transport(credentials.load(file or None, self.options.context or None), connections=2))

    def _live(self, client: Client, recorder: EventRecorder) -> Live:
        running, configuration = self.running, self.running.loaded.configuration
        engine = Scheduler(
            {name: running.metrics.timed(profile) for name, profile in running.loaded.profiles.items()},
            np.random.default_rng(),
            extenders=configuration.extenders,
            report=self._report,
            initial_backoff=configuration.pod_initial_backoff_seconds,
            max_backoff=configuration.pod_max_backoff_seconds,
            longest_wait=self.options.longest_wait,
        )
        writer = Writer(
            client,
            learn=lambda change, document=b"": running.reflectors["Pod"].learn(change, document),
            recorder=recorder,
            extenders=Extenders(configuration.extenders, self._document) if configuration.extenders else None,
            pod=lambda key: running.reflectors["Pod"].known.objects.get(key),
        )
        self._writer = writer
        return Live(
            engine,
            perform=writer.perform,
            record=recorder.record,
            busy=lambda is_busy: recorder.pause() if is_busy else recorder.resume(),
            stepped=running.metrics.stepped,
            problem=lambda text, **fields: running.log.warning(text, **fields),
        )

    def _document(self, kind: str, key: str) -> bytes | None:
        """The JSON of an object, as it came; or, if it was not kept when it came, what we keep of it."""
        known = self.running.reflectors[kind].known
        document = known.documents.get(key)
        if document is None and key in known.objects:
            document = msgspec.json.encode(known.objects[key], enc_hook=str)
        return document

    def _kinds(self, loaded: Loaded) -> frozenset[str]:
        return frozenset().union(*(profile.reads for profile in loaded.profiles.values()))

    def _reflect(self, client: Client, kinds: Iterable[str]) -> None:
        """One reflector for each kind that somebody reads; those that run already go on."""
        self._wire = client
        assert self.running.live is not None
        extenders = self.running.loaded.configuration.extenders
        raw = {"Pod"} if extenders else set()  # extenders want pods whole, and nodes unless they know them
        raw |= {"Node"} if any(not each.node_cache_capable for each in extenders) else set()
        for kind in sorted(set(kinds) - self.running.reflectors.keys()):
            if kind not in RESOURCES:
                raise ConfigError(f"a plugin reads {kind}, which nobody knows how to find")
            reflector = Reflector(
                client,
                RESOURCES[kind],
                self.running.live.take,
                on_problem=lambda text: self.running.log.warning("Cannot follow", problem=text),
                keep_raw=kind in raw,
            )
            self.running.reflectors[kind] = reflector
            self._begin(reflector.run())

    async def _all_synced(self) -> None:
        for reflector in self.running.reflectors.values():
            await reflector.synced.wait()
        await asyncio.sleep(0)  # what the last one told is taken in before anybody decides

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            if self.running.live is not None:
                self.running.metrics.look_at(self.running.live.engine)

    # -- leading

    def _lost(self) -> None:
        self.running.lost = True
        self._stop.set()

    async def _refuse_to_double(self, client: Client) -> None:
        if self.options.replace or "default-scheduler" not in self.running.loaded.profiles:
            return
        holder = await somebody_schedules(client, time.time(), self.running.log.warning)
        if holder:
            remedy = "stop it first, choose another schedulerName, or give --replace if it is about to go"
            raise ConfigError(f"default-scheduler is served by kube-scheduler ({holder}) already", remedy=remedy)

    # -- configuration

    def _adopt(self, new: Loaded) -> None:
        live, configuration = self.running.live, new.configuration
        assert live is not None
        self._reflect(self._wire, self._kinds(new))
        profiles = {name: self.running.metrics.timed(profile) for name, profile in new.profiles.items()}
        live.engine.adopt(
            profiles,
            time.monotonic(),
            extenders=configuration.extenders,
            initial_backoff=configuration.pod_initial_backoff_seconds,
            max_backoff=configuration.pod_max_backoff_seconds,
        )
        if configuration.extenders:
            self._writer.extenders = Extenders(configuration.extenders, self._document)
        self.running.loaded = new
        live.take(())
        self.running.log.info("The configuration is in force", profiles=", ".join(new.profiles), digest=new.digest[:12])

    def _complain(self, error: StowplanError) -> None:
        self.running.log.error("The configuration is refused, the old one stays in force", problem=str(error))

    # -- reports

    def _report(self, what: reports.Report) -> None:
        self.running.metrics.report(what)
        log = self.running.log
        match what:
            case reports.Bound() if log.v >= 2:
                log.info("Successfully bound pod to node", level=2, pod=what.pod, node=what.node_name)
            case reports.Failed() if what.error:
                log.error("Error scheduling pod; retrying", pod=what.pod, err=what.message)
            case reports.Failed() if log.v >= 2:
                log.info("Unable to schedule pod; waiting", level=2, pod=what.pod, err=what.message)
            case reports.Preempted() if log.v >= 2:
                log.info("Preempting", level=2, pod=what.pod, node=what.node_name, victims=what.victims)
            case _:
                return


def run(options: Options, ready: Callable[[Program], None] = lambda _: None) -> int:
    """Until stopped; the exit code."""
    from stowplan.kube import loops

    os.environ.setdefault("PYTHONUNBUFFERED", "1")

    async def main() -> int:
        program = Program(options)
        ready(program)
        return await program.main()

    with asyncio.Runner(loop_factory=loops.new) as runner:
        return runner.run(main())
