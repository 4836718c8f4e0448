"""Where scores come from: the cluster we run in, a PromQL query, a scorer of your own, or what was said once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from stowplan.apps.logging import Log
from stowplan.apps.score_agent.hub import Watching, connected
from stowplan.kube.client import Client
from stowplan.kube.resources import RESOURCES
from stowplan.objects.clusters import ManagedCluster
from stowplan.scores import prometheus, scorer
from stowplan.scores.demand import Demand
from stowplan.scores.http_source import HttpSource
from stowplan.scores.usage import Measure, Usage


@dataclass
class Measurements:
    """Values by score and cluster. `expected`: a cluster without any is told so in its object."""

    values: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    expected: str = ""


class Source(Protocol):
    """`opened` is entered once; `read` is asked each round."""

    def opened(self, log: Log, patience: float | None, /) -> AbstractAsyncContextManager[None]: ...

    async def read(self, clusters: Mapping[str, ManagedCluster], wanted: Demand, /) -> Measurements: ...


@dataclass
class OwnCluster:
    """What the cluster that we run in has left."""

    cluster: str
    measures: tuple[Measure, ...]
    kubeconfig: str = ""
    context: str = ""
    usage: Usage = field(default_factory=Usage)
    client: Client | None = None

    @asynccontextmanager
    async def opened(self, log: Log, patience: float | None) -> AsyncIterator[None]:
        async with connected(self.kubeconfig, self.context) as client:
            self.client = client
            watching = Watching(client, log, "the cluster")
            for kind in ("Node", "Pod"):
                watching.add(kind, self.usage.apply)
            async with watching.running(patience=patience):
                yield

    async def read(self, _clusters: Mapping[str, ManagedCluster], wanted: Demand) -> Measurements:
        """Only while the cluster answers: what is remembered of one that is down should expire, not be refreshed."""
        assert self.client is not None
        async for _ in self.client.list_pages(RESOURCES["Node"], limit=1):
            break
        found = self.usage.measured(each for each in self.measures if each.name in wanted)
        return Measurements({name: {self.cluster: value} for name, value in found.items()})


@dataclass
class OfSite:
    """A server that is asked."""

    site: HttpSource

    @asynccontextmanager
    async def opened(self, _log: Log, _patience: float | None) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.site.close()


@dataclass
class Query(OfSite):
    """A PromQL query; `label` names the cluster."""

    query: str
    label: str
    score: str

    async def read(self, _clusters: Mapping[str, ManagedCluster], wanted: Demand) -> Measurements:
        if self.score not in wanted:
            return Measurements()
        found = await prometheus.ask(self.site, self.query, self.label)
        return Measurements({self.score: found.values}, found.notes, "the query gives no value for this cluster")


@dataclass
class Scorer(OfSite):
    """A scorer of your own."""

    async def read(self, clusters: Mapping[str, ManagedCluster], wanted: Demand) -> Measurements:
        answer = await scorer.ask(self.site, clusters.values(), wanted)
        values: dict[str, dict[str, float]] = {}
        for cluster, scores in answer.items():
            for score, value in scores.items():
                values.setdefault(score, {})[cluster] = value
        return Measurements(values, expected="the scorer gives no score for this cluster")


@dataclass
class Static:
    """What was said on the command line."""

    score: str
    values: Mapping[str, float]

    @asynccontextmanager
    async def opened(self, _log: Log, _patience: float | None) -> AsyncIterator[None]:
        yield

    async def read(self, _clusters: Mapping[str, ManagedCluster], _wanted: Demand) -> Measurements:
        return Measurements({self.score: dict(self.values)})
