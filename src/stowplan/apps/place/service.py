"""`stowplan place`: placements of a hub decided. Wiring only: wire, engine, lease and pages put together.

    start:  wire ─► reflectors synced ─► lease ─► decisions, as long as the hub has all six definitions
    stop:   no more decisions ─► writes under way finish ─► events written ─► lease given back

With --taint-unavailable a second small machine (`engine.availability`) runs beside the first. Losing the lease ends the
program: whoever starts it starts it anew. From the moment the lease is not surely ours any more, nothing is written.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from stowplan.apps.engine_loop import EngineLoop
from stowplan.apps.leader_election import Campaign
from stowplan.apps.logging import Log
from stowplan.apps.place.options import KINDS, PlacementEngine, PlaceOptions, RunningPlacement
from stowplan.apps.program import Tasks, when_told_to_stop
from stowplan.kube import credentials, event_loop
from stowplan.kube.client import Client
from stowplan.kube.events import EventRecorder
from stowplan.kube.reflector import Reflector
from stowplan.kube.resources import LEASES, RESOURCES, ApiResource
from stowplan.kube.transport import Transport
from stowplan.kube.writer import Writer
from stowplan.objects.actions import Action
from stowplan.objects.changes import Change, Result
from stowplan.objects.leases import Lease
from stowplan.placement.availability import LEASE_NAME, Availability
from stowplan.plugins import clusters

if TYPE_CHECKING:
    from stowplan.apps.http_server import HttpServer

CONNECTIONS, EVENT_WRITERS = 32, 4
MOST_UNDER_WAY = 64
FINISH_WITHIN = 20.0  # seconds for writes under way when told to stop
DRAIN_WITHIN = 15.0  # seconds for events
LOOK_FOR_DEFINITIONS_EVERY = 3.0  # seconds


class PlacementService:
    def __init__(self, options: PlaceOptions, log: Log | None = None) -> None:
        self.options = options
        self.running = RunningPlacement(options, log or Log(options.v, options.logging_format))
        self._parts = Tasks(self._failed)

    # -- from beginning to end

    async def main(self) -> int:
        """Run until told to stop (0) or until the lease is lost (1)."""
        client, events = Client(self._transport(CONNECTIONS)), Client(self._transport(EVENT_WRITERS))
        serving = self._serving() if self.options.secure_port or self.options.plain_port else None
        try:
            if serving is not None:
                serving.start()
            await self._work(client, events)
        finally:
            if serving is not None:
                serving.stop()
            await self._parts.end()
            await client.close()
            await events.close()
        return 1 if self.running.lost else 0

    def stop(self) -> None:
        self.running.stopping = True
        self._parts.stop.set()

    def _serving(self) -> HttpServer:
        from stowplan.apps import http_server
        from stowplan.apps.place import pages

        loop = asyncio.get_running_loop()
        return http_server.HttpServer(pages.of(self.running, loop), http_server.doors(self.options, self._client_of))

    async def _work(self, client: Client, events: Client) -> None:
        running, log = self.running, self.running.log
        recorder = EventRecorder(events, host=socket.gethostname(), on_problem=log.warning, writers=EVENT_WRITERS)
        writer = Writer(client, learn=lambda *_: None, recorder=recorder, clock=time.time)
        self._make(writer, recorder)
        self._parts.begin(*(each.run() for each in self._lives()), recorder.run(), self._tick())
        self._reflect(client)
        if not await self._parts.unless_stopped(self._all_synced()):
            return
        assert running.live is not None
        log.info("Caches are synced", placements=len(running.live.engine.placements))
        self._campaign()
        await self._parts.stop.wait()
        await self._end(recorder)

    async def _end(self, recorder: EventRecorder) -> None:
        log = self.running.log
        if not self.running.lost:
            log.info("Stopping: writes under way are finished first")
            finished = [await each.finish(FINISH_WITHIN) for each in self._lives()]
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_WITHIN):
                    await recorder.drain()
            if not all(finished):
                log.warning("Some writes were not answered in time", seconds=FINISH_WITHIN)
        await self._parts.end()
        if self.running.lease is not None:
            await asyncio.to_thread(self.running.lease.stop)
        log.info("Stopped")

    def _failed(self, error: BaseException) -> None:
        self.running.log.error("A part of the program failed", error=repr(error))
        self._lose()

    # -- parts

    def _transport(self, connections: int) -> Transport:
        return Transport(self._access(), connections=connections, may_write=lambda: self.running.leading)

    def _access(self, kubeconfig: str = "") -> credentials.Access:
        """Each event loop needs one of its own."""
        return credentials.load(kubeconfig or self.options.kubeconfig or None, self.options.context or None)

    def _client_of(self, kubeconfig: str) -> Client:
        return Client(Transport(self._access(kubeconfig), connections=2))

    def _make(self, writer: Writer, recorder: EventRecorder) -> None:
        """The machines, on this event loop."""
        running, options = self.running, self.options
        policy = running.metrics.timed(clusters.policy(ocm=options.ocm))
        machine = PlacementEngine(policy, ocm=options.ocm, reschedule=options.reschedule)
        perform: Callable[[Action], Awaitable[Result]] = partial(running.metrics.performed, writer.perform)
        running.live = EngineLoop(
            machine,
            perform=perform,
            record=recorder.record,
            stepped=partial(running.metrics.stepped, machine),
            problem=running.log.warning,
            ready=lambda: running.informed,
            most_under_way=MOST_UNDER_WAY,
            clock=time.time,
        )
        if options.taint_unavailable:
            running.tainting = EngineLoop(
                Availability(),
                perform=perform,
                record=recorder.record,
                problem=running.log.warning,
                ready=lambda: running.informed,
                clock=time.time,
            )

    def _lives(self) -> list[EngineLoop[Any]]:
        return [each for each in (self.running.live, self.running.tainting) if each is not None]

    def _reflect(self, client: Client) -> None:
        assert self.running.live is not None
        sinks: dict[str, list[Callable[[list[Change]], None]]] = {kind: [self.running.live.take] for kind in KINDS}
        resources = {kind: RESOURCES[kind] for kind in KINDS}
        if self.running.tainting is not None:
            sinks["ManagedCluster"].append(self.running.tainting.take)
            sinks["Lease"] = [self.running.tainting.take]
            resources["Lease"] = msgspec.structs.replace(LEASES, own_type=Lease, fields=f"metadata.name={LEASE_NAME}")
        for kind, resource in resources.items():
            reflector = self.running.reflectors[kind] = self._reflector(client, resource, sinks[kind])
            self._parts.begin(reflector.run())

    def _reflector(
        self, client: Client, resource: ApiResource, sinks: list[Callable[[list[Change]], None]]
    ) -> Reflector:
        def tell(changes: list[Change]) -> None:
            for sink in sinks:
                sink(changes)

        return Reflector(
            client,
            resource,
            tell,
            on_problem=lambda text: self.running.log.warning("Cannot follow", problem=text),
            recheck_after=LOOK_FOR_DEFINITIONS_EVERY,
        )

    async def _all_synced(self) -> None:
        for reflector in self.running.reflectors.values():
            await reflector.synced.wait()
        await asyncio.sleep(0)  # what the last one told is taken in before anybody decides

    async def _tick(self) -> None:
        said: list[str] = []
        while True:
            await asyncio.sleep(1.0)
            running = self.running
            if running.live is not None:
                running.metrics.look_at(running.live.engine, leading=running.leading)
            missing = running.missing if running.synced else said
            if missing != said:
                said = missing
                if missing:
                    running.log.warning("Nothing is decided until the hub has these definitions", kinds=", ".join(said))
                else:
                    running.log.info("The hub has all definitions")

    # -- leading

    def _campaign(self) -> None:
        if not self.options.leader_elect:
            self._won()
            return
        campaign = Campaign(
            self.options.election,
            lambda: self._client_of(""),
            self.running.log,
            won=self._won,
            ended=self._lease_ended,
        )
        self.running.lease = campaign.start()

    def _won(self) -> None:
        for each in self._lives():
            each.start_deciding()

    def _lease_ended(self) -> None:
        if self.running.stopping:
            return  # given back, since we were told to stop
        self.running.log.error("The lease is lost", lease=self.options.election.name)
        for each in self._lives():
            each.deciding = False
        self._lose()

    def _lose(self) -> None:
        self.running.lost = True
        self._parts.stop.set()


def run(options: PlaceOptions) -> int:
    """Until a signal says to stop; the exit code."""

    async def main() -> int:
        program = PlacementService(options)
        when_told_to_stop(program.stop)
        return await program.main()

    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        return runner.run(main())
