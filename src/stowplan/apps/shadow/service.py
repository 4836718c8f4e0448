"""The service behind `stowplan shadow`: it follows what a scheduler follows, and lets `Shadow` judge. It cannot write.

    reflectors ─► Shadow.handle ─► (a moment later) Shadow.step ─► lines, JSON, metrics

`Program` has the life cycle. The lists at the start are taken in at once; decisions are judged from then on. What a
list says after a gap of the watch is taken in without a judgement: nobody knows in which order that happened.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TextIO

import click

from stowplan.apps import plugin_kinds
from stowplan.apps.logging import Log
from stowplan.apps.program import Program
from stowplan.apps.shadow.command import ShadowOptions
from stowplan.apps.shadow.metrics import ShadowMetrics
from stowplan.apps.shadow.output import ShadowOutput
from stowplan.apps.shadow.readable_kinds import readable
from stowplan.framework.plugin_faults import error_text
from stowplan.framework.profile import Profile
from stowplan.kube import credentials
from stowplan.kube.reflector import Sink
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.objects.changes import Change
from stowplan.shadow.shadow import Shadow
from stowplan.shadow.verdict import DIFFERENCES

if TYPE_CHECKING:
    from stowplan.apps.http_server import HttpServer

CONNECTIONS = 32
TIME_SLICE, PAUSE = 0.02, 0.1  # seconds of judging before other tasks run, and between two turns with nothing due
COUNT_EVERY = 0.5  # seconds
FINISH_WITHIN = 30.0  # seconds to judge what is due at the end


class ShadowService(Program):
    def __init__(
        self, options: ShadowOptions, profiles: Mapping[str, Profile], out: TextIO | None, log: Log | None = None
    ) -> None:
        super().__init__(log or Log(options.v))
        self._options, self._profiles = options, profiles
        self.shadow = Shadow(profiles, options.settings)
        self.metrics = ShadowMetrics()
        since = time.time() - time.monotonic()
        self._output = ShadowOutput(options.output, out, everything=options.everything, since=since)
        self._kinds: list[ApiResource] = []
        self._heartbeat = self._counted = time.monotonic()

    @property
    def leading(self) -> bool:
        """Never: a client writes only while its program leads, and this one writes nothing."""
        return False

    @property
    def differences(self) -> int:
        return sum(self.shadow.counts[kind] for kind in DIFFERENCES)

    # -- the life cycle

    def access(self, kubeconfig: str = "") -> credentials.Access:
        return credentials.load(kubeconfig or self._options.kubeconfig or None, self._options.context or None)

    async def prepare(self) -> None:
        self._client = self.open_client(self.access(), CONNECTIONS)
        wanted = {**plugin_kinds.read_by(self._profiles.values()), "PriorityClass": RESOURCES["PriorityClass"]}
        found = await self.unless_stopped(readable(self._client, wanted.values()))
        self._kinds, unseen = found or ([], [])
        if unseen:
            click.echo(f"Not seen, for lack of rights: {', '.join(unseen)}.", err=True)

    def server(self) -> HttpServer | None:
        if not self._options.port:
            return None
        from stowplan.apps import http_server  # only a program with pages needs it
        from stowplan.apps.engine_pages import program_pages

        pages = program_pages(self, lambda: time.monotonic() - self._heartbeat, self.metrics.text)
        del pages.get["/leader"]
        return http_server.HttpServer(pages, [http_server.Listener("127.0.0.1", self._options.port)], self.log.warning)

    def start(self) -> None:
        for resource in self._kinds:
            self.follow(self._client, resource, self._sink(resource.kind))

    def caches_synced(self) -> None:
        now = time.monotonic()
        while self.shadow.is_due(now):
            self.shadow.step(now)
        gc.collect()
        gc.freeze()  # the listed objects stay
        state, names = self.shadow.state, ", ".join(self._profiles)
        about = f"{len(state.table.live_rows()):,} nodes, {len(state.pods):,} pods on them"
        click.echo(f"Judging the pods of {names}; {about}. Ctrl-C ends it.", err=True)

    async def work(self) -> int:
        begun = time.monotonic()
        until = begun + (float("inf") if self._options.seconds is None else self._options.seconds)
        await self.unless_stopped(self._judge(until))
        self._turn(FINISH_WITHIN)
        more = {"missed": self.shadow.missed, "undecided": self.shadow.undecided, "tooLate": self._too_late()}
        self._output.end(self.shadow.counts, more, time.monotonic() - begun)
        self._count()
        return 0

    # -- what comes in

    def _sink(self, kind: str) -> Sink:
        def receive(changes: list[Change]) -> None:
            now, judged = time.monotonic(), not self._listed(kind, changes)
            for change in changes:
                self.shadow.handle(change, now, judged=judged)

        return receive

    def _listed(self, kind: str, changes: Iterable[Change]) -> bool:
        """True if changes come from a list: the version of a watch is never older than what it tells."""
        seen = self.reflectors[kind].cache.resource_version
        versions = (each.object.metadata.resource_version for each in changes)
        return not seen or any(each.isdigit() and seen.isdigit() and int(each) > int(seen) for each in versions)

    # -- what comes out

    async def _judge(self, until: float) -> None:
        """Judge until that is enough."""
        while time.monotonic() < until and not self._enough():
            busy = self._turn(TIME_SLICE)
            if time.monotonic() - self._counted > COUNT_EVERY:
                self._count()
            await asyncio.sleep(0 if busy else PAUSE)

    def _too_late(self) -> int:
        """Return how many decisions were made at the end that cannot be judged any more."""
        return 0 if self._options.pods is not None and self._enough() else self.shadow.unjudged

    def _enough(self) -> bool:
        return self._options.pods is not None and self.shadow.judged >= self._options.pods

    def _turn(self, seconds: float) -> bool:
        """Judge for so many seconds. Return True if more is due."""
        begun = now = self._heartbeat = time.monotonic()
        while self.shadow.is_due(now) and now - begun < seconds and not self._enough():
            self._step(now)
            now = time.monotonic()
        return self.shadow.is_due(now)

    def _step(self, now: float) -> None:
        try:
            for verdict in self.shadow.step(now):
                self.metrics.decisions.labels(verdict.kind).inc()
                self._output.tell(verdict)
        except Exception as error:  # one bad object must not keep others from being judged
            self.log.error("A change could not be judged", error=error_text(error))
            self.shadow.skip()

    def _count(self) -> None:
        self._counted = time.monotonic()
        behind = self.shadow.behind(self._counted)
        self.metrics.behind.set(behind)
        self.metrics.undue.set(self.shadow.unjudged)
        self.metrics.missed.set(self.shadow.missed)
        self.metrics.undecided.set(self.shadow.undecided)
        self.metrics.reflector_gauges.read(self.reflectors)
        self._output.count(self.shadow.counts, behind)
