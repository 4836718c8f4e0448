"""`stowplan run`: the scheduler of a cluster. It connects the engine, the API server, the pages and the configuration.

`Program` has the life cycle. Before it starts the service checks that kube-scheduler does not serve the same names.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from stowplan.apps import plugin_kinds, program, unreadable_objects
from stowplan.apps.config_file import follow
from stowplan.apps.engine_loop import EngineLoop
from stowplan.apps.leader_election import ElectionSettings
from stowplan.apps.logging import Log
from stowplan.apps.plugin_problems import PluginProblemLog
from stowplan.apps.profile_loader import read_text
from stowplan.apps.program import Program
from stowplan.apps.reflector_gauges import ReflectorGauges
from stowplan.apps.run import decision_lines, hung_mark, kube_scheduler, report_log
from stowplan.apps.run.config_file import config_file
from stowplan.apps.run.configuration import LoadedConfiguration, beside_kube_scheduler
from stowplan.apps.run.foreign_bindings import ForeignBindings
from stowplan.apps.run.metrics import Metrics
from stowplan.apps.run.options import RunOptions
from stowplan.apps.run.recount import Recounter
from stowplan.apps.run.streamed_decisions import DecisionStream
from stowplan.apps.run.tie_draw import TieDraw
from stowplan.apps.watchdog.stack import PluginQuestion
from stowplan.engine import reports
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.plugin_faults import error_text
from stowplan.framework.profile import Profile
from stowplan.kube import credentials
from stowplan.kube.extenders import Extenders
from stowplan.kube.unreadable import UnreadableObject
from stowplan.kube.writer import Writer
from stowplan.objects.actions import Action, Bind
from stowplan.objects.changes import Change, Result
from stowplan.objects.errors import ConfigError, StowplanError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

if TYPE_CHECKING:
    from stowplan.apps.http_server import HttpServer
    from stowplan.apps.run.decision_file import DecisionFile
    from stowplan.apps.run.recording import Recording
    from stowplan.framework.decision import Decision

CONNECTIONS, EVENT_WRITERS = 64, 8
MAX_EVENTS_DELAYED = 20_000  # beyond that events are written although pods wait to be bound
READ_PLUGIN_GAUGES_EVERY = 5  # seconds
SYNC_WITHIN = 30.0  # seconds to list the further kinds that a changed configuration needs


class SchedulerService(Program):
    writes = "bindings"

    def __init__(self, options: RunOptions, default: Callable[[], LoadedConfiguration], log: Log | None = None) -> None:
        """`default` makes the configuration where the options name no file."""
        self.options = options
        self._file = (
            None if options.config is None else config_file(options.config, options.plugin_path, options.feature_gates)
        )
        self.loaded = default() if self._file is None else self._file.load()
        super().__init__(
            log or Log(options.v, options.logging_format), election=options.election(self.loaded.configuration)
        )
        self._recording = self._begin_recording()
        self.decision_stream = DecisionStream()
        self.on_report: Callable[[reports.Report], None] | None = None  # told of each report, too: the pages of `up`
        self.metrics = Metrics()
        self.metrics.pod_of = self._pod
        self.plugin_problems = PluginProblemLog(self.log)
        self.engine_loop = EngineLoop(
            self._engine(),
            perform=self._perform,
            record=self.record,
            on_busy=self._delay_events,
            on_step=self.metrics.stepped,
            on_problem=self.log.warning,
        )
        self.engine_loops = (self.engine_loop,)
        self._decision_file = self._open_decision_file()
        self.engine_loop.engine.decisions.on_decision = self._on_decision()
        self._extenders: Extenders | None = None
        self._foreign_bindings = ForeignBindings(self.metrics.registry, self.log, time.monotonic)
        self._reflector_gauges = ReflectorGauges(self.metrics.registry)
        self._recounter = Recounter(self.metrics.registry, self.log, self.plugin_problems)

    def _begin_recording(self) -> Recording | None:
        options = self.options
        if options.record is None:
            return None
        from stowplan.apps.run.recording import Recording  # only a scheduler that is recorded needs it

        recording = Recording(options.record, options.record_size, self.log)
        recording.begin(options, self.loaded, None if options.config is None else read_text(options.config))
        return recording

    def _open_decision_file(self) -> DecisionFile | None:
        options = self.options
        if options.decision_log is None:
            return None
        from stowplan.apps.run.decision_file import DecisionFile  # only a scheduler with that log needs it

        size, share = options.decision_log_size, options.decision_log_sample
        found = DecisionFile(options.decision_log, size, share, self.metrics.registry, self.log)
        found.started(self.loaded)
        return found

    def _on_decision(self) -> Callable[[Decision], None] | None:
        """What is done with each decision; None if nothing is."""
        file, writer = self._decision_file, decision_lines.writer(self.log)
        if file is None or writer is None:
            return writer if file is None else file.decided

        def both(decision: Decision) -> None:
            file.decided(decision)
            writer(decision)

        return both

    @property
    def _clock_began(self) -> float:
        """When the engine's clock showed 0, in seconds since the epoch."""
        return time.time() - time.monotonic() if self._recording is None else self._recording.clock_began

    def _engine(self) -> Scheduler:
        configuration, recording = self.loaded.configuration, self._recording
        made = Scheduler if recording is None else recording.scheduler
        return made(
            self._timed(self.loaded),
            TieDraw(None if recording is None else recording.seed),
            extenders=configuration.extenders,
            report=self._report,
            initial_backoff=configuration.pod_initial_backoff_seconds,
            max_backoff=configuration.pod_max_backoff_seconds,
            longest_wait=self.options.longest_wait,
            clock_began=self._clock_began,
        )

    def _timed(self, loaded: LoadedConfiguration) -> dict[str, Profile]:
        return {name: self.metrics.timed(profile) for name, profile in loaded.profiles.items()}

    # -- the life cycle

    def access(self, kubeconfig: str = "") -> credentials.Access:
        file = kubeconfig or self.options.kubeconfig or self.loaded.configuration.client_connection.kubeconfig
        return credentials.load(file or None, self.options.context or None)

    async def prepare(self) -> None:
        limits = self.options.connection(self.loaded.configuration)
        qps, burst = limits.qps or 0.0, limits.burst
        recorder = self.open_recorder(EVENT_WRITERS, qps=qps, burst=burst)
        self._client = self.open_client(self.access(), CONNECTIONS, qps=qps, burst=burst)
        self.resources.push_async_callback(self._close_extenders)
        self._extenders = self._extenders_of(self.loaded)
        self._writer = Writer(
            self._client,
            learn=self._learn,
            recorder=recorder,
            extenders=self._extenders,
            pod=self._pod,
            known=self._known,
        )
        await self._check_for_kube_scheduler()
        if self._election is not None:
            self._election = await self._settled(self._election)

    async def _settled(self, election: ElectionSettings) -> ElectionSettings:
        """Return the lease that rights leave, and its counterpart."""
        if self.options.rights_decide(self.loaded.configuration):
            client = self.client_of()  # which may write although this replica does not lead
            try:
                asking = kube_scheduler.lease_by_rights(client, election.namespace, self.log.warning)
                election = replace(election, name=await self.unless_stopped(asking) or election.name)
            finally:
                await client.close()
        return kube_scheduler.paired(election)

    async def _check_for_kube_scheduler(self) -> None:
        if self.options.replace or "default-scheduler" not in self.loaded.profiles:
            return
        holder = await kube_scheduler.lease_holder(self._client, time.time(), self.log.warning)
        if holder:
            remedy = "stop it first, choose another schedulerName, or give --replace if it is about to end"
            raise ConfigError(f"default-scheduler is served by kube-scheduler ({holder}) already", remedy=remedy)

    def server(self) -> HttpServer | None:
        if not self.options.secure_port and not self.options.plain_port:
            return None
        from stowplan.apps import http_server  # only a program with pages needs it
        from stowplan.apps.run import pages

        shown = pages.of(self, asyncio.get_running_loop())
        return http_server.server_of(shown, self.options, self.client_of, self.log.warning, self.options.security)

    def start(self) -> None:
        self._log_notes()
        self.start_task(self._tick())
        self._follow_kinds(self.loaded)

    def unreadable(self, found: UnreadableObject) -> None:
        """Write an event about a pod of ours; if this replica does not lead yet, once it does."""
        ours = found.kind == "Pod" and found.scheduler_name in self.loaded.profiles
        if ours and not found.told and self.leading:
            found.told = True
            self.record(unreadable_objects.event(found))

    def leading_begins(self) -> None:
        self._foreign_bindings.leading_begins()
        for found in self.reflectors["Pod"].cache.unreadable.values():
            self.unreadable(found)

    def caches_synced(self) -> None:
        gc.collect()
        gc.freeze()  # the listed objects stay; walking them again and again would take time from decisions
        state = self.engine_loop.engine.state
        self.log.info("Caches are synced", nodes=len(state.table.live_rows()), pods=len(state.pods))
        if self._file is not None:
            self.start_task(follow(self._file, self.loaded, adopt=self._adopt, refuse=self._refuse))

    async def _tick(self) -> None:
        last = ""
        for second in itertools.count():
            await asyncio.sleep(1.0)
            try:
                self._count(second)
            except Exception as error:  # a plugin may declare anything about what it counts, and how often
                problem = error_text(error)
                if problem != last:
                    self.log.error("Counting failed", error=problem)
                last = problem

    def _count(self, second: int) -> None:
        engine = self.engine_loop.engine
        self.metrics.read_engine(engine, leading=self.leading)
        self.metrics.show_leading("" if self._election is None else self._election.name, leading=self.leading)
        self._reflector_gauges.read(self.reflectors)
        if second % READ_PLUGIN_GAUGES_EVERY == 0:
            self.metrics.read_plugins(engine, self.plugin_problems.report)
        self._recount(time.monotonic())

    def _recount(self, now: float) -> None:
        if self.synced:
            self._recounter.recount_due(self.engine_loop, self.reflectors["Pod"].cache.objects, now)

    # -- between the engine and the API server

    async def _perform(self, action: Action) -> Result:
        if not isinstance(action, Bind):
            return await self._writer.perform(action)
        began = time.monotonic()
        result = await self._writer.perform(action)
        self.metrics.binding_answered(result.status, time.monotonic() - began)
        return result

    def _delay_events(self, busy: bool) -> None:
        """Bindings come first: events wait while pods wait to be bound."""
        assert self.recorder is not None
        if busy and self.recorder.waiting < MAX_EVENTS_DELAYED:
            self.recorder.pause()
        else:
            self.recorder.resume()

    def _learn(self, change: Change, document: bytes = b"") -> None:
        """Tell the reflector of its kind what a write or a single read has found out."""
        kind = type(change.object)
        for each in self.reflectors.values():
            if each.resource.object_type is kind:
                each.learn(change, document)

    def _known(self, kind: str, key: str) -> Object | None:
        """Return an object as the API server last reported it; None for kinds that nobody follows."""
        return self._object(kind, key) if kind in self.reflectors else None

    def _pod(self, key: str) -> Pod | None:
        """Return a pod as the API server last reported it."""
        found = self._object("Pod", key)
        return found if isinstance(found, Pod) else None

    def _object(self, kind: str, key: str) -> Object | None:
        return self.reflectors[kind].cache.objects.get(key)

    def _document(self, kind: str, key: str) -> bytes | None:
        """Return the JSON of an object as it arrived; if that was not kept, the JSON of the fields that we keep."""
        document, found = self.reflectors[kind].cache.documents.get(key), self._object(kind, key)
        return msgspec.json.encode(found, enc_hook=str) if document is None and found is not None else document

    def _follow_kinds(self, loaded: LoadedConfiguration) -> None:
        """Follow each kind that a plugin reads and that is not followed yet."""
        wanted = plugin_kinds.read_by(loaded.profiles.values())
        for kind, resource in wanted.items():
            if kind in self.reflectors and not resource.same_as(self.reflectors[kind].resource):
                problem = f"plugin {resource.brought_by} brings another resource {kind} than before"
                raise ConfigError(problem, remedy="restart the scheduler: a reload follows new kinds only")
        self._writer.know({kind: resource for kind, resource in wanted.items() if resource.brought_by})
        extenders = loaded.configuration.extenders
        raw = {"Pod"} if extenders else set()  # extenders are sent whole pods, and whole nodes unless they cache them
        raw |= {"Node"} if any(not each.node_cache_capable for each in extenders) else set()
        for kind, resource in wanted.items():
            if kind not in self.reflectors:
                self.follow(self._client, resource, self.engine_loop.receive, keep_raw=kind in raw)

    def _extenders_of(self, loaded: LoadedConfiguration) -> Extenders | None:
        configured = loaded.configuration.extenders
        return Extenders(configured, self._document) if configured else None

    async def _close_extenders(self) -> None:
        if self._extenders is not None:
            await self._extenders.close()

    # -- reload of the configuration

    async def _adopt(self, new: LoadedConfiguration) -> None:
        """Switch to a new configuration, once all kinds that its plugins read are listed."""
        self._follow_kinds(new)
        try:
            async with asyncio.timeout(SYNC_WITHIN):
                await self.wait_for_sync()
        except TimeoutError:
            problem = f"the kinds that its plugins read could not be listed within {SYNC_WITHIN:g} s"
            raise ConfigError(problem, remedy='see the lines "Cannot follow" above') from None
        try:
            self._switch_engine(new)
        except Exception:  # a plugin may raise anything when it is asked about the cluster
            self._switch_engine(self.loaded)
            raise
        before, self._extenders = self._extenders, self._extenders_of(new)
        self._writer.extenders = self._extenders
        self.loaded = new
        if self._decision_file is not None:
            self._decision_file.started(new)
        if before is not None:
            await before.close()
        self.engine_loop.receive(())  # the loop may have something to decide now
        self.log.info("The configuration is in force", profiles=", ".join(new.profiles), digest=new.digest[:12])
        self._log_notes()

    def _switch_engine(self, to: LoadedConfiguration) -> None:
        configuration = to.configuration
        self.engine_loop.engine.adopt(
            self._timed(to),
            time.monotonic(),
            extenders=configuration.extenders,
            initial_backoff=configuration.pod_initial_backoff_seconds,
            max_backoff=configuration.pod_max_backoff_seconds,
        )

    def _log_notes(self) -> None:
        for note in self.loaded.configuration.notes:
            self.log.warning("Configuration", note=note)

    def _refuse(self, error: StowplanError) -> None:
        self.log.error("The configuration is refused, the old one stays in force", problem=str(error))

    # -- plugins that do not answer

    def plugin_hung(self, question: PluginQuestion, problem: str) -> None:
        self.engine_loop.send(self.engine_loop.engine.plugin_hung(question.uid, problem, time.monotonic()))

    def mark_hung(self, question: PluginQuestion, problem: str) -> None:
        """Mark the pod: the next leader tries it last."""
        pod = self._pod(question.about)
        if pod is not None and pod.uid == question.uid and not pod.node_name and self.leading:
            asyncio.run(hung_mark.write(self.client_of(), pod, problem))

    # -- reports

    def _report(self, report: reports.Report) -> None:
        self.metrics.report(report)
        self.decision_stream.report(report)
        if self.on_report is not None:
            self.on_report(report)
        if self._decision_file is not None:
            self._decision_file.reported(report)
        if isinstance(report, reports.PluginMisbehaved):
            self.plugin_problems.report(report)
        elif isinstance(report, reports.BoundByAnother):
            self._foreign_bindings.report(report)
        else:
            report_log.write(self.log, report)


def run(options: RunOptions) -> int:
    """Run the scheduler until a signal stops it. Return the exit code."""
    return program.run(lambda: SchedulerService(options, lambda: beside_kube_scheduler(options.feature_gates)))
