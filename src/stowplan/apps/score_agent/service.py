"""`stowplan score-agent`: keeps AddOnPlacementScores written on a hub. Wiring only.

    each round:  look at the hub ─► read values ─► scores ─► write those that changed or would soon expire

A round is made each interval, and when clusters come or others are wanted. Where values cannot be had nothing is
written: the scores expire, and Placements take them for missing.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import click

from stowplan.apps.logging import Log
from stowplan.apps.program import when_told_to_stop
from stowplan.apps.score_agent.hub import SYNCED_WITHIN, Hub, HubFleet, OneCluster, Watching, connected
from stowplan.apps.score_agent.sources import Measurements, OwnCluster, Source
from stowplan.kube import event_loop
from stowplan.kube.client import Client
from stowplan.objects.clusters import AddOnPlacementScoreStatus as Status
from stowplan.objects.errors import StowplanError
from stowplan.scores.demand import Demand
from stowplan.scores.normalization import BEST, WORST, AsIs, Normaliser
from stowplan.scores.publication import Validity, published, status_due
from stowplan.scores.shaping import Shaping
from stowplan.scores.writer import ScoreWriter, as_document

SCORES_VERSION = "cluster.open-cluster-management.io/v1alpha1"
AT_A_TIME = 16  # objects that are written at once
SOONEST = 1.0  # seconds after a round until news of the hub make another


@dataclass(frozen=True)
class ScoreAgentOptions:
    """The command line, apart from where values come from. `normalisers` by score, or one for all."""

    normalisers: Mapping[str, Normaliser]
    normaliser: Normaliser = field(default_factory=AsIs)
    hub_kubeconfig: str = ""
    hub_context: str = ""
    resource_name: str = "default"
    interval: float = 60.0
    validity: Validity = field(default_factory=Validity)
    half_life: float = 0.0
    deadband: int = 0
    on_demand: bool = False
    once: bool = False
    dry_run: bool = False
    v: int = 0
    logging_format: str = "text"


class ScoreAgentService:
    def __init__(self, options: ScoreAgentOptions, source: Source, log: Log | None = None) -> None:
        self._options, self._source = options, source
        self._log = log or Log(options.v, options.logging_format)
        self._shapings: dict[str, Shaping] = {}
        self._generator = random.Random()
        self._stop = asyncio.Event()

    def stop(self) -> None:
        self._stop.set()

    async def main(self) -> int:
        """Until told to stop, or once; the exit code. What is under way then is left, since it can be repeated."""
        working, stopped = asyncio.ensure_future(self._work()), asyncio.ensure_future(self._stop.wait())
        await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return 0

    async def _work(self) -> int:
        options = self._options
        patience = SYNCED_WITHIN if self._single else None
        async with connected(options.hub_kubeconfig, options.hub_context) as client:
            watching = Watching(client, self._log, "the hub")
            hub = self._hub(client, watching)
            writer = ScoreWriter(client, options.resource_name, validity=options.validity, known=hub.known)
            async with watching.running(patience=patience), self._source.opened(self._log, patience):
                return await self._rounds(hub, writer)

    @property
    def _single(self) -> bool:
        return self._options.once or self._options.dry_run

    def _hub(self, client: Client, watching: Watching) -> Hub:
        name, on_demand = self._options.resource_name, self._options.on_demand
        if isinstance(self._source, OwnCluster):
            reader = ScoreWriter(client, name)
            return OneCluster(self._source.cluster, reader.read, watching, name, on_demand=on_demand)
        return HubFleet(watching, name, on_demand=on_demand)

    async def _rounds(self, hub: Hub, writer: ScoreWriter) -> int:
        while True:
            failed = await self._round(hub, writer)
            if self._single:
                return 1 if failed else 0
            await self._pause(hub)

    async def _pause(self, hub: Hub) -> None:
        """For the interval, a little more or less so that agents spread out; or until there are news."""
        wait = self._options.interval * self._generator.uniform(0.95, 1.05)
        await asyncio.sleep(min(SOONEST, wait))
        with suppress(TimeoutError):
            async with asyncio.timeout(max(wait - SOONEST, 0.0)):
                await hub.changed.wait()

    # -- a round

    async def _round(self, hub: Hub, writer: ScoreWriter) -> int:
        """How many clusters could not be brought up to date."""
        try:
            wanted = await hub.look()
            reading = await self._source.read(hub.clusters, wanted) if wanted else Measurements()
        except StowplanError as error:
            if self._single:
                raise
            self._log.error("No values in this round", problem=str(error))
            return 1
        for note in reading.notes:
            self._log.warning("Of the values", note=note)
        scores, failed = self._scored(reading, hub, wanted)
        if self._options.dry_run:
            self._show(scores)
            return failed
        return failed + await self._publish(scores, reading, hub, writer)

    def _show(self, scores: Mapping[str, Mapping[str, int]]) -> None:
        import yaml

        name, now = self._options.resource_name, datetime.now(UTC)
        for cluster, found in sorted(scores.items()):
            status = status_due(Status(), found, now, validity=self._options.validity, draw=self._generator.random())
            assert status is not None, "an empty status is never up to date"
            metadata = {"name": name, "namespace": cluster}
            document = {"apiVersion": SCORES_VERSION, "kind": "AddOnPlacementScore", "metadata": metadata}
            click.echo("---\n" + yaml.safe_dump(document | {"status": as_document(status)}, sort_keys=False), nl=False)

    def _scored(self, reading: Measurements, hub: Hub, wanted: Demand) -> tuple[dict[str, dict[str, int]], int]:
        """Scores by cluster, of those that the hub has; and how many values were out of range."""
        found: dict[str, dict[str, int]] = {}
        failed = 0
        for score, values in reading.values.items():
            here = {cluster: value for cluster, value in values.items() if cluster in hub.clusters}
            if strange := sorted(values.keys() - here.keys()):
                self._log.info("No ManagedCluster of that name", level=2, score=score, clusters=", ".join(strange))
            if score in wanted:
                failed += self._drop_what_is_no_score(score, here)
                for cluster, value in self._shaped(score, here, hub).items():
                    found.setdefault(cluster, {})[score] = value
        return found, failed

    def _drop_what_is_no_score(self, score: str, values: dict[str, float]) -> int:
        if not isinstance(self._normaliser(score), AsIs):
            return 0
        wrong = {cluster: value for cluster, value in values.items() if not WORST <= value <= BEST}
        for cluster, value in wrong.items():
            del values[cluster]
            remedy = f"expected {WORST}..{BEST}, or --bounds or --over-fleet"
            self._log.error("Not a score", path=f"scores.{cluster}.{score}", found=value, remedy=remedy)
        return len(wrong)

    def _shaped(self, score: str, values: Mapping[str, float], hub: Hub) -> dict[str, int]:
        options = self._options
        shaping = self._shapings.setdefault(
            score, Shaping(self._normaliser(score), half_life=options.half_life, band=options.deadband)
        )
        before: dict[str, int] = {}
        for cluster in values:
            known = hub.known(cluster)
            value = None if known is None else published(known.status).get(score)
            if value is not None:
                before[cluster] = value
        return shaping.scores(values, before, time.monotonic())

    def _normaliser(self, score: str) -> Normaliser:
        return self._options.normalisers.get(score, self._options.normaliser)

    async def _publish(
        self, scores: Mapping[str, Mapping[str, int]], reading: Measurements, hub: Hub, writer: ScoreWriter
    ) -> int:
        turn, outcomes = asyncio.Semaphore(AT_A_TIME), Counter[str]()

        async def one(cluster: str) -> None:
            async with turn:
                try:
                    if cluster in scores:
                        outcome = await writer.publish(cluster, scores[cluster])
                    else:
                        outcome = await writer.fail(cluster, "NoValue", reading.expected)
                    outcomes[outcome.value] += 1
                except StowplanError as error:
                    outcomes["failed"] += 1
                    self._log.error("Cannot write scores", cluster=cluster, problem=str(error))

        silent = hub.clusters.keys() - scores.keys() if reading.expected else set()
        await asyncio.gather(*(one(cluster) for cluster in sorted({*scores, *silent})))
        level = 0 if outcomes["written"] or outcomes["failed"] else 2
        self._log.info("A round is done", level=level, **outcomes)
        return outcomes["failed"]


def run(options: ScoreAgentOptions, source: Source) -> int:
    """Until a signal says to stop, or once; the exit code."""

    async def main() -> int:
        program = ScoreAgentService(options, source)
        when_told_to_stop(program.stop)
        return await program.main()

    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        return runner.run(main())
