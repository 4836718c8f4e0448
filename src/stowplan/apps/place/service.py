"""`stowplan place`: the placements of a hub. It connects the placement engine with the hub's API server and the pages.

`Program` has the life cycle. Nothing is decided until the hub serves all kinds that a decision reads: a hub whose
clusters cannot be seen is no reason to give up the clusters of a placement. With --config the plugins are those of a
file, which is read again when it changes. With --taint-unavailable a second engine (`placement.availability`) taints
the clusters that are not available.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from stowplan.apps import program
from stowplan.apps.config_file import follow
from stowplan.apps.engine_loop import EngineLoop
from stowplan.apps.logging import Log
from stowplan.apps.place.configuration import LoadedPolicy, default, policy_file
from stowplan.apps.place.kinds import KINDS
from stowplan.apps.place.metrics import PlacementMetrics
from stowplan.apps.place.options import PlaceOptions
from stowplan.apps.plugin_problems import PluginProblemLog
from stowplan.apps.program import Program
from stowplan.apps.reflector_gauges import ReflectorGauges
from stowplan.engine.reports import PluginMisbehaved
from stowplan.kube import credentials
from stowplan.kube.resources import LEASES, RESOURCES
from stowplan.kube.writer import Writer
from stowplan.objects.actions import Action
from stowplan.objects.changes import Change, Result
from stowplan.objects.errors import PluginError, StowplanError
from stowplan.objects.leases import Lease
from stowplan.objects.meta import Object
from stowplan.placement.availability import LEASE_NAME, Availability
from stowplan.placement.scheduler import PlacementScheduler

if TYPE_CHECKING:
    from stowplan.apps.http_server import HttpServer

CONNECTIONS, EVENT_WRITERS = 32, 4
MAX_WRITES = 64  # in progress at once
CHECK_DEFINITIONS_EVERY = 3.0  # seconds


class PlacementEngine(PlacementScheduler):
    """Every write of this engine is part of a decision; none is a reconciler's."""

    def is_upkeep(self, action: Action) -> bool:  # noqa: ARG002
        return False


class PlacementService(Program):
    drain_within = 15.0

    def __init__(self, options: PlaceOptions, log: Log | None = None) -> None:
        self.options = options
        self._file = (
            None if options.config is None else policy_file(options.config, options.plugin_path, ocm=options.ocm)
        )
        self.loaded = default(ocm=options.ocm) if self._file is None else self._file.load()
        super().__init__(
            log or Log(options.v, options.logging_format),
            election=options.election if options.leader_elect else None,
        )
        self.metrics = PlacementMetrics()
        self._reflector_gauges = ReflectorGauges(self.metrics.registry)
        self.plugin_problems = PluginProblemLog(self.log)
        policy, reschedule = self.metrics.timed(self.loaded.policy), options.reschedule
        engine = PlacementEngine(
            policy,
            ocm=options.ocm,
            reschedule=reschedule,
            hysteresis=options.hysteresis,
            report=self._report,
            report_failure=self._report_failure,
        )
        self.engine_loop = EngineLoop(
            engine,
            perform=self._perform,
            record=self.record,
            on_step=partial(self.metrics.stepped, engine),
            on_problem=self.log.warning,
            ready=self._is_ready,
            max_in_progress=MAX_WRITES,
            clock=time.time,
        )
        self._tainting: EngineLoop[Availability] | None = None
        if options.taint_unavailable:
            self._tainting = EngineLoop(
                Availability(),
                perform=self._perform,
                record=self.record,
                on_problem=self.log.warning,
                ready=self._is_ready,
                clock=time.time,
            )
        self.engine_loops = [loop for loop in (self.engine_loop, self._tainting) if loop is not None]

    @property
    def missing(self) -> list[str]:
        """The kinds that the hub does not serve."""
        return [kind for kind in KINDS if kind not in self.reflectors or not self.reflectors[kind].served]

    def _is_ready(self) -> bool:
        return self.synced and not self.missing

    # -- the life cycle

    def access(self, kubeconfig: str = "") -> credentials.Access:
        return credentials.load(kubeconfig or self.options.kubeconfig or None, self.options.context or None)

    async def prepare(self) -> None:
        recorder = self.open_recorder(EVENT_WRITERS)
        self._client = self.open_client(self.access(), CONNECTIONS)
        self._writer = Writer(self._client, learn=self._learn, recorder=recorder, known=self._object, clock=time.time)

    def server(self) -> HttpServer | None:
        if not self.options.secure_port and not self.options.plain_port:
            return None
        from stowplan.apps import http_server  # only a program with pages needs it
        from stowplan.apps.place import pages

        shown = pages.of(self, asyncio.get_running_loop())
        return http_server.server_of(shown, self.options, self.client_of, self.log.warning)

    def start(self) -> None:
        self._log_notes()
        self.start_task(self._tick())
        resources = {kind: RESOURCES[kind] for kind in KINDS}
        if self._tainting is not None:
            resources["Lease"] = msgspec.structs.replace(LEASES, own_type=Lease, fields=f"metadata.name={LEASE_NAME}")
        for kind, resource in resources.items():
            sink = partial(self._receive, kind)
            self.follow(self._client, resource, sink, recheck_after=CHECK_DEFINITIONS_EVERY)

    def caches_synced(self) -> None:
        self.log.info("Caches are synced", placements=len(self.engine_loop.engine.placements))
        if self._file is not None:
            self.start_task(follow(self._file, self.loaded, adopt=self._adopt, refuse=self._refuse))

    async def _tick(self) -> None:
        reported: list[str] = []
        while True:
            await asyncio.sleep(1.0)
            self.metrics.read_engine(self.engine_loop.engine, time.time(), leading=self.leading)
            self._reflector_gauges.read(self.reflectors)
            missing = self.missing if self.synced else reported
            if missing != reported:
                reported = missing
                self._report_missing(missing)

    def _report_missing(self, kinds: list[str]) -> None:
        if kinds:
            self.log.warning("Nothing is decided until the hub has these definitions", kinds=", ".join(kinds))
        else:
            self.log.info("The hub has all definitions")

    # -- plugins

    async def _adopt(self, new: LoadedPolicy) -> None:
        """Switch to a new configuration: every placement is decided again."""
        self.engine_loop.engine.adopt(self.metrics.timed(new.policy), time.time())
        self.loaded = new
        self.engine_loop.receive(())  # the loop has something to decide now
        self.log.info("The configuration is in force", digest=new.digest[:12])
        self._log_notes()

    def _log_notes(self) -> None:
        for note in self.loaded.configuration.notes:
            self.log.warning("Configuration", note=note)

    def _refuse(self, error: StowplanError) -> None:
        self.log.error("The configuration is refused, the old one stays in force", problem=str(error))

    def _report(self, error: PluginError) -> None:
        self.plugin_problems.report(PluginMisbehaved(error.plugin, error.point, error.problem))

    def _report_failure(self, placement: str, problem: str) -> None:
        self.log.error("A placement cannot be decided, the others go on", placement=placement, problem=problem)

    # -- between the engines and the API server

    async def _perform(self, action: Action) -> Result:
        return await self.metrics.timed_write(self._writer.perform, action)

    def _learn(self, change: Change, document: bytes = b"") -> None:
        """Take in the result of a single read, ahead of the watch."""
        self.reflectors[type(change.object).__name__].learn(change, document)

    def _object(self, kind: str, key: str) -> Object | None:
        return self.reflectors[kind].cache.objects.get(key)

    def _receive(self, kind: str, changes: list[Change]) -> None:
        if kind in KINDS:
            self.engine_loop.receive(changes)
        if self._tainting is not None and kind in ("ManagedCluster", "Lease"):
            self._tainting.receive(changes)


def run(options: PlaceOptions) -> int:
    """Run the placement scheduler until a signal stops it. Return the exit code."""
    return program.run(lambda: PlacementService(options))
