"""`stowplan run`: a scheduler in a cluster. Wiring only: wire, engine, lease, pages and configuration put together.

    start:  configuration ─► wire ─► may we serve these names? ─► reflectors synced ─► lease ─► decisions
    stop:   no more decisions ─► bindings under way finish ─► events written ─► lease given back

Losing the lease ends the program, as with kube-scheduler: whoever starts it starts it anew. From the moment the lease
is not surely ours any more, nothing is written (`Transport.may_write`).
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from stowplan.apps import report_log
from stowplan.apps.engine_loop import EngineLoop
from stowplan.apps.leader_election import LeaderElector, somebody_schedules
from stowplan.apps.logging import Log
from stowplan.apps.program import Tasks, when_told_to_stop
from stowplan.apps.run.options import RunningScheduler, RunOptions, beside_kube_scheduler
from stowplan.apps.run.recount import Recounter
from stowplan.apps.run.reload import ConfigFile, LoadedConfiguration, follow
from stowplan.engine import reports
from stowplan.engine.scheduler import Scheduler
from stowplan.kube import credentials, event_loop
from stowplan.kube.client import Client
from stowplan.kube.events import EventRecorder
from stowplan.kube.extenders import Extenders
from stowplan.kube.reflector import Reflector
from stowplan.kube.resources import RESOURCES
from stowplan.kube.transport import Transport
from stowplan.kube.writer import Writer
from stowplan.objects.errors import ConfigError, StowplanError

if TYPE_CHECKING:
    from stowplan.apps.http_server import HttpServer

CONNECTIONS, EVENT_WRITERS = 64, 8
HELD_BACK = 20_000  # events; beyond that they are written although pods wait to be bound
FINISH_WITHIN = 20.0  # seconds for bindings under way when told to stop
DRAIN_WITHIN = 30.0  # seconds for events
LOOK_AT_PLUGINS_EVERY = 5  # seconds
SYNCED_WITHIN = 30.0  # seconds to list what a changed configuration needs besides


class SchedulerService:
    def __init__(
        self, options: RunOptions, without_file: Callable[[], LoadedConfiguration], log: Log | None = None
    ) -> None:
        """`without_file` is the configuration where the options name none."""
        self.options = options
        self._file = None if options.config is None else ConfigFile(options.config)
        loaded = without_file() if self._file is None else self._file.load()
        self.running = RunningScheduler(options, loaded, log or Log(options.v, options.logging_format))
        self._parts = Tasks(self._failed)
        self._extenders: Extenders | None = None
        self._recounts = Recounter(self.running)

    # -- from beginning to end

    async def main(self) -> int:
        """Run until told to stop (0) or until the lease is lost (1)."""
        client, events = Client(self._transport(CONNECTIONS)), Client(self._transport(EVENT_WRITERS))
        serving = self._serving() if self.options.secure_port or self.options.plain_port else None
        try:
            await self._refuse_to_double(client)
            if serving is not None:
                serving.start()
            await self._work(client, events)
        finally:
            if serving is not None:
                serving.stop()
            await self._end_parts()
            await client.close()
            await events.close()
        return 1 if self.running.lost else 0

    def stop(self) -> None:
        self.running.stopping = True
        self._parts.stop.set()

    def _serving(self) -> HttpServer:
        """What is not served need not be imported, which takes longer than all the rest."""
        from stowplan.apps import http_server
        from stowplan.apps.run import pages

        loop = asyncio.get_running_loop()
        return http_server.HttpServer(pages.of(self.running, loop), http_server.doors(self.options, self._client_of))

    async def _work(self, client: Client, events: Client) -> None:
        running, log = self.running, self.running.log
        recorder = EventRecorder(events, host=socket.gethostname(), on_problem=log.warning, writers=EVENT_WRITERS)
        live = running.live = self._live(client, recorder)
        self._parts.begin(live.run(), recorder.run(), self._tick())
        self._reflect(client, running.loaded)
        if not await self._parts.unless_stopped(self._all_synced()):
            return
        gc.collect()
        gc.freeze()  # what was listed stays; walking it again and again is time taken from decisions
        log.info("Caches are synced", nodes=len(live.engine.state.table.live_rows()), pods=len(live.engine.state.pods))
        LeaderElector(running, lambda: self._client_of(""), self._lost).start()
        if self._file is not None:
            self._parts.begin(follow(self._file, running.loaded, adopt=self._adopt, refuse=self._complain))
        await self._parts.stop.wait()
        await self._end(live, recorder)

    async def _end(self, live: EngineLoop[Scheduler], recorder: EventRecorder) -> None:
        log = self.running.log
        if not self.running.lost:
            log.info("Stopping: bindings under way are finished first")
            finished = await live.finish(FINISH_WITHIN)
            recorder.resume()
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_WITHIN):
                    await recorder.drain()
            if not finished:
                log.warning("Some bindings were not answered in time", seconds=FINISH_WITHIN)
        await self._end_parts()
        if self.running.lease is not None:
            await asyncio.to_thread(self.running.lease.stop)
        log.info("Stopped")

    async def _end_parts(self) -> None:
        await self._parts.end()
        if self._extenders is not None:
            await self._extenders.close()

    def _failed(self, error: BaseException) -> None:
        self.running.log.error("A part of the program failed", error=repr(error))
        self._lost()

    # -- parts

    def _access(self, kubeconfig: str = "") -> credentials.Access:
        """Each event loop needs one of its own."""
        file = kubeconfig or self.options.kubeconfig or self.running.loaded.configuration.client_connection.kubeconfig
        return credentials.load(file or None, self.options.context or None)

    def _transport(self, connections: int) -> Transport:
        connection = self.running.loaded.configuration.client_connection
        return Transport(
            self._access(),
            connections=connections,
            qps=connection.qps or 0.0,
            burst=connection.burst,
            may_write=lambda: self.running.leading,
        )

    def _client_of(self, kubeconfig: str) -> Client:
        return Client(Transport(self._access(kubeconfig), connections=2))

    def _live(self, client: Client, recorder: EventRecorder) -> EngineLoop[Scheduler]:
        running, configuration = self.running, self.running.loaded.configuration
        running.metrics.pod_of = self._pod
        engine = Scheduler(
            {name: running.metrics.timed(profile) for name, profile in running.loaded.profiles.items()},
            np.random.default_rng(),
            extenders=configuration.extenders,
            report=self._report,
            initial_backoff=configuration.pod_initial_backoff_seconds,
            max_backoff=configuration.pod_max_backoff_seconds,
            longest_wait=self.options.longest_wait,
        )
        self._extenders = self._extenders_of(running.loaded)
        writer = self._writer = Writer(
            client,
            learn=lambda change, document=b"": running.reflectors["Pod"].learn(change, document),
            recorder=recorder,
            extenders=self._extenders,
            pod=self._pod,
        )
        return EngineLoop(
            engine,
            perform=writer.perform,
            record=recorder.record,
            busy=lambda is_busy: recorder.pause() if is_busy and recorder.waiting < HELD_BACK else recorder.resume(),
            stepped=running.metrics.stepped,
            problem=running.log.warning,
        )

    def _pod(self, key: str) -> Any:
        """As the server last told of it."""
        return self.running.reflectors["Pod"].cache.objects.get(key)

    def _document(self, kind: str, key: str) -> bytes | None:
        """The JSON of an object, as it came; or, if it was not kept when it came, what we keep of it."""
        known = self.running.reflectors[kind].cache
        document = known.documents.get(key)
        if document is None and key in known.objects:
            document = msgspec.json.encode(known.objects[key], enc_hook=str)
        return document

    def _extenders_of(self, loaded: LoadedConfiguration) -> Extenders | None:
        configured = loaded.configuration.extenders
        return Extenders(configured, self._document) if configured else None

    def _reflect(self, client: Client, loaded: LoadedConfiguration) -> None:
        """One reflector for each kind that somebody reads; those that run already go on."""
        self._wire = client
        assert self.running.live is not None
        kinds = frozenset[str]().union(*(profile.reads for profile in loaded.profiles.values()))
        for unknown in sorted(kinds - RESOURCES.keys()):
            raise ConfigError(f"a plugin reads {unknown}, which nobody knows how to find")
        extenders = loaded.configuration.extenders
        raw = {"Pod"} if extenders else set()  # extenders want pods whole, and nodes unless they know them
        raw |= {"Node"} if any(not each.node_cache_capable for each in extenders) else set()
        for kind in sorted(kinds - self.running.reflectors.keys()):
            reflector = Reflector(
                client,
                RESOURCES[kind],
                self.running.live.take,
                on_problem=lambda text: self.running.log.warning("Cannot follow", problem=text),
                keep_raw=kind in raw,
            )
            self.running.reflectors[kind] = reflector
            self._parts.begin(reflector.run())

    async def _all_synced(self) -> None:
        for reflector in self.running.reflectors.values():
            await reflector.synced.wait()
        await asyncio.sleep(0)  # what the last one told is taken in before anybody decides

    async def _tick(self) -> None:
        for second in itertools.count():
            await asyncio.sleep(1.0)
            if self.running.live is not None:
                self.running.metrics.look_at(self.running.live.engine)
                if second % LOOK_AT_PLUGINS_EVERY == 0:
                    self.running.metrics.look_at_plugins(self.running.live.engine, self.running.misbehaved)
                self._recounts.look(time.monotonic())

    # -- leading

    def _lost(self) -> None:
        self.running.lost = True
        self._parts.stop.set()

    async def _refuse_to_double(self, client: Client) -> None:
        if self.options.replace or "default-scheduler" not in self.running.loaded.profiles:
            return
        holder = await somebody_schedules(client, time.time(), self.running.log.warning)
        if holder:
            remedy = "stop it first, choose another schedulerName, or give --replace if it is about to go"
            raise ConfigError(f"default-scheduler is served by kube-scheduler ({holder}) already", remedy=remedy)

    # -- configuration

    async def _adopt(self, new: LoadedConfiguration) -> None:
        """Once all that its plugins read is there."""
        live, configuration = self.running.live, new.configuration
        assert live is not None
        self._reflect(self._wire, new)
        try:
            async with asyncio.timeout(SYNCED_WITHIN):
                await self._all_synced()
        except TimeoutError:
            raise ConfigError("what its plugins read cannot be listed", remedy="see the lines above") from None
        profiles = {name: self.running.metrics.timed(profile) for name, profile in new.profiles.items()}
        live.engine.adopt(
            profiles,
            time.monotonic(),
            extenders=configuration.extenders,
            initial_backoff=configuration.pod_initial_backoff_seconds,
            max_backoff=configuration.pod_max_backoff_seconds,
        )
        before, self._extenders = self._extenders, self._extenders_of(new)
        self._writer.extenders = self._extenders
        self.running.loaded = new
        if before is not None:
            await before.close()
        live.take(())
        self.running.log.info("The configuration is in force", profiles=", ".join(new.profiles), digest=new.digest[:12])

    def _complain(self, error: StowplanError) -> None:
        self.running.log.error("The configuration is refused, the old one stays in force", problem=str(error))

    # -- reports

    def _report(self, what: reports.Report) -> None:
        self.running.metrics.report(what)
        if isinstance(what, reports.PluginMisbehaved):
            self.running.misbehaved(what)
        else:
            report_log.say(self.running.log, what)


def run(options: RunOptions) -> int:
    """Until a signal says to stop; the exit code."""

    async def main() -> int:
        program = SchedulerService(options, beside_kube_scheduler)
        when_told_to_stop(program.stop)
        return await program.main()

    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        return runner.run(main())
