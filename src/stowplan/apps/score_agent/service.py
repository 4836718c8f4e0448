"""`stowplan score-agent`: keeps AddOnPlacementScores on a hub up to date.

    each round:  refresh the hub ─► read values ─► make scores ─► write those that changed or expire soon

`Program` has the life cycle. There is a round in each interval, and when the hub's clusters or the demand change. If
values cannot be read nothing is written: the scores expire, and Placements treat them as missing.

Pages say how it is: it is alive while its event loop turns, and ready while rounds succeed. Clients of the pages are
known to the cluster that the agent runs in: the measured one, or else the hub. `hub_token` renews the token for the
hub.
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
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stowplan.apps import program, reviews
from stowplan.apps.logging import Log
from stowplan.apps.program import Program
from stowplan.apps.score_agent.hub import Hub, HubFleet, ScoredCluster
from stowplan.apps.score_agent.hub_token import HubToken, TokenFile, TokenSecret, TokenStore
from stowplan.apps.score_agent.metrics import ScoreAgentMetrics
from stowplan.apps.score_agent.sources import Measurements, OwnCluster, Source
from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.transport import Transport
from stowplan.objects import yaml_text
from stowplan.objects.clusters import AddOnPlacementScoreStatus as Status
from stowplan.objects.errors import ConfigError, StowplanError
from stowplan.scores.demand import Demand
from stowplan.scores.normalization import BEST, WORST, AsIs, Normaliser
from stowplan.scores.publication import Validity, published, status_due
from stowplan.scores.shaping import Shaping
from stowplan.scores.writer import ScoreWriter, as_document

if TYPE_CHECKING:
    from stowplan.apps.http_server import HttpServer

SCORES_VERSION = "cluster.open-cluster-management.io/v1alpha1"
CONNECTIONS = 16
MAX_WRITES = 16  # in progress at once
SYNC_WITHIN = 30.0  # seconds until a single round gives up on a hub that does not answer
MIN_PAUSE = 1.0  # seconds between two rounds, however often the hub changes


@dataclass(frozen=True)
class ScoreAgentOptions:
    """The command line, except for the source. `normalisers` by score; `normaliser` for all other scores."""

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
    hub_token_lifetime: float = 0.0  # seconds; 0: the token is not renewed
    hub_token_secret: str = ""  # NAMESPACE/NAME in the measured cluster; empty: the file itself is written
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    bind_address: str = "0.0.0.0"  # every request is authorized
    secure_port: int = 0
    plain_port: int = 0
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    once: bool = False
    dry_run: bool = False
    v: int = 0
    logging_format: str = "text"


class ScoreAgentService(Program):
    def __init__(self, options: ScoreAgentOptions, source: Source, log: Log | None = None) -> None:
        super().__init__(log or Log(options.v, options.logging_format))
        self._options, self._source = options, source
        self._single = options.once or options.dry_run  # one round
        self.sync_within = SYNC_WITHIN if self._single else None
        self.metrics = ScoreAgentMetrics()
        self.problem = "no round is done yet"  # of the last round; "" if there was none
        self._shapings: dict[str, Shaping] = {}
        self._generator = random.Random()
        self._unknown: set[str] = set()  # clusters that have values, and that the hub does not have
        self._alive_at = time.monotonic()
        self._token: HubToken | None = None

    # -- the life cycle

    def access(self, kubeconfig: str = "") -> credentials.Access:
        return credentials.load(kubeconfig or self._options.hub_kubeconfig or None, self._options.hub_context or None)

    async def prepare(self) -> None:
        access = self.access()
        self._token_file = access.token_file
        if self._options.hub_token_lifetime:
            _check_token_file(access.token_file)
        self._client = self.open_client(access, CONNECTIONS)

    def server(self) -> HttpServer | None:
        if self._single or not (self._options.secure_port or self._options.plain_port):
            return None
        from stowplan.apps import http_server  # aiohttp takes longer to import than all the rest
        from stowplan.apps.engine_pages import program_pages

        pages = program_pages(self, lambda: time.monotonic() - self._alive_at, self.metrics.text)
        pages.readiness["scores"] = lambda: self.problem
        pages.readiness["hub-token"] = lambda: "" if self._token is None else self._token.problem
        return http_server.server_of(pages, self._options, self.reviewer, self.log.warning)

    def reviewer(self, kubeconfig: str) -> Client:
        """Return a client for reviews of tokens and rights, at the cluster that the agent runs in."""
        if kubeconfig or not isinstance(self._source, OwnCluster):
            return self.client_of(kubeconfig)
        return Client(Transport(self._source.access(), connections=reviews.CONNECTIONS))

    def start(self) -> None:
        name, on_demand = self._options.resource_name, self._options.on_demand
        self._hub: Hub
        if isinstance(self._source, OwnCluster):
            cluster, read = self._source.cluster, ScoreWriter(self._client, name).read
            self._hub = ScoredCluster(self, self._client, name, cluster=cluster, read=read, on_demand=on_demand)
        else:
            self._hub = HubFleet(self, self._client, name, on_demand=on_demand)
        self._source.open(self)
        validity, known = self._options.validity, self._hub.known
        self._writer = ScoreWriter(self._client, name, validity=validity, known=known)
        self.start_task(self._tick())
        if self._options.hub_token_lifetime and not self._single:
            self._token = self._hub_token()
            self.start_task(self._token.run())

    def _hub_token(self) -> HubToken:
        file, secret = Path(self._token_file), self._options.hub_token_secret
        store: TokenStore = TokenFile(file)
        if secret:
            assert isinstance(self._source, OwnCluster) and self._source.client is not None, "the command checks that"
            store = TokenSecret(self._source.client, secret, file.name)

        def renewed(succeeded: bool) -> None:
            self.metrics.renewals.labels("done" if succeeded else "failed").inc()

        return HubToken(self._client, file, self._options.hub_token_lifetime, store, self.log, on_renewal=renewed)

    async def _tick(self) -> None:
        while True:
            self._alive_at = time.monotonic()
            self.metrics.reflector_gauges.read(self.reflectors)
            if self._token is not None:
                self.metrics.token_expiry.set(self._token.expires_at or 0.0)
            await asyncio.sleep(1.0)

    async def work(self) -> int:
        """Rounds until the program is stopped, or a single one. A round that is interrupted is repeated later."""
        return await self.unless_stopped(self._rounds()) or 0

    async def _rounds(self) -> int:
        while True:
            with self.metrics.seconds.time():
                failed = await self._round()
            self.metrics.rounds.labels("failed" if failed else "done").inc()
            if not failed:
                self.problem = ""
                self.metrics.last_success.set(time.time())
            if self._single:
                return 1 if failed else 0
            await self._pause()

    async def _pause(self) -> None:
        """Wait for the interval, with jitter so that agents spread out, or until the hub changes."""
        wait = self._options.interval * self._generator.uniform(0.95, 1.05)
        await asyncio.sleep(min(MIN_PAUSE, wait))
        with suppress(TimeoutError):
            async with asyncio.timeout(max(wait - MIN_PAUSE, 0.0)):
                await self._hub.changed.wait()

    # -- a round

    async def _round(self) -> int:
        """Read values and write scores. Return the number of clusters whose scores are not up to date."""
        try:
            wanted = await self._hub.refresh()
            read = await self._source.read(self._hub.clusters, wanted) if wanted else Measurements()
        except StowplanError as error:
            if self._single:
                raise
            self.problem = f"no values in the last round: {error}"
            self.log.error("No values in this round", problem=str(error))
            return 1
        for note in read.notes:
            self.log.warning("Of the values", note=note)
        scores, failed = self._scored(read, wanted)
        if self._options.dry_run:
            self._show(scores)
        else:
            failed += await self._publish(scores, read)
            self.metrics.show(scores)
        if read.problem is not None and self._single:
            raise read.problem
        if failed:
            self.problem = f"{failed} clusters or values failed in the last round; the log says why"
        if read.problem is not None:
            self.problem = f"values are missing or old in the last round: {read.problem}"
            self.log.error("Values are missing or old in this round", problem=str(read.problem))
            failed += 1
        return failed

    def _show(self, scores: Mapping[str, Mapping[str, int]]) -> None:
        name, now = self._options.resource_name, datetime.now(UTC)
        for cluster, found in sorted(scores.items()):
            status = status_due(Status(), found, now, validity=self._options.validity, draw=self._generator.random())
            assert status is not None, "an empty status is never up to date"
            metadata = {"name": name, "namespace": cluster}
            document = {"apiVersion": SCORES_VERSION, "kind": "AddOnPlacementScore", "metadata": metadata}
            click.echo("---\n" + yaml_text.dump(document | {"status": as_document(status)}), nl=False)

    def _scored(self, read: Measurements, wanted: Demand) -> tuple[dict[str, dict[str, int]], int]:
        """Return the scores of the hub's clusters, and the number of values that are out of range."""
        found: dict[str, dict[str, int]] = {}
        failed = self._missing(read)
        for score, values in read.values.items():
            here = {cluster: value for cluster, value in values.items() if cluster in self._hub.clusters}
            if score in wanted:
                failed += self._drop_out_of_range(score, here)
                for cluster, value in self._shaped(score, here).items():
                    found.setdefault(cluster, {})[score] = value
        return found, failed

    def _missing(self, read: Measurements) -> int:
        """Tell of clusters that the hub does not have. Return how many there are, if that is an error."""
        unknown = {cluster for values in read.values.values() for cluster in values} - self._hub.clusters.keys()
        tell = self.log.error if read.must_exist else self.log.warning
        for cluster in sorted(unknown if read.must_exist else unknown - self._unknown):
            tell(
                "The hub has no ManagedCluster of that name", cluster=cluster, remedy="register it, or correct the name"
            )
        self._unknown = unknown
        self.metrics.unknown.set(len(unknown))
        return len(unknown) if read.must_exist else 0

    def _drop_out_of_range(self, score: str, values: dict[str, float]) -> int:
        if not isinstance(self._normaliser(score), AsIs):
            return 0
        wrong = {cluster: value for cluster, value in values.items() if not WORST <= value <= BEST}
        for cluster, value in wrong.items():
            del values[cluster]
            remedy = f"expected {WORST}..{BEST}, or --bounds or --over-fleet"
            self.log.error("Not a score", path=f"scores.{cluster}.{score}", found=value, remedy=remedy)
        return len(wrong)

    def _shaped(self, score: str, values: Mapping[str, float]) -> dict[str, int]:
        options = self._options
        shaping = self._shapings.setdefault(
            score, Shaping(self._normaliser(score), half_life=options.half_life, band=options.deadband)
        )
        before: dict[str, int] = {}
        for cluster in values:
            known = self._hub.known(cluster)
            value = None if known is None else published(known.status).get(score)
            if value is not None:
                before[cluster] = value
        return shaping.scores(values, before, time.monotonic())

    def _normaliser(self, score: str) -> Normaliser:
        return self._options.normalisers.get(score, self._options.normaliser)

    async def _publish(self, scores: Mapping[str, Mapping[str, int]], read: Measurements) -> int:
        """Write the scores. Return the number of clusters for which that failed."""
        turn, outcomes = asyncio.Semaphore(MAX_WRITES), Counter[str]()

        async def one(cluster: str) -> None:
            async with turn:
                try:
                    if cluster in scores:
                        outcome = await self._writer.publish(cluster, scores[cluster])
                    else:
                        outcome = await self._writer.fail(cluster, "NoValue", read.expected)
                    outcomes[outcome.value] += 1
                except StowplanError as error:
                    outcomes["failed"] += 1
                    self.log.error("Cannot write scores", cluster=cluster, problem=str(error))

        without = self._hub.clusters.keys() - scores.keys() if read.expected else set()
        await asyncio.gather(*(one(cluster) for cluster in sorted({*scores, *without})))
        for outcome, number in outcomes.items():
            self.metrics.objects.labels(outcome).inc(number)
        level = 0 if outcomes["written"] or outcomes["failed"] else 2
        self.log.info("A round is done", level=level, **outcomes)
        return outcomes["failed"]


def _check_token_file(file: str) -> None:
    path = "--hub-token-lifetime"
    if not file:
        remedy = "put the token into a file, and name it in the kubeconfig: users[].user.tokenFile"
        raise ConfigError("found no tokenFile for the hub", path=path, remedy=remedy)
    if Path(file).is_relative_to(credentials.SERVICE_ACCOUNT):
        raise ConfigError("found the token of a pod, which the kubelet renews", path=path, remedy="leave this flag out")


def run(options: ScoreAgentOptions, source: Source) -> int:
    """Run the agent until a signal stops it, or for one round. Return the exit code."""
    return program.run(lambda: ScoreAgentService(options, source))
