"""Sources of scores: the cluster that the agent runs in, a PromQL query, a scorer over HTTP, or the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from stowplan.apps.program import Program
from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.resources import RESOURCES
from stowplan.objects.clusters import ManagedCluster
from stowplan.objects.errors import ConfigError
from stowplan.scores import prometheus, scorer
from stowplan.scores.demand import Demand
from stowplan.scores.http_source import HttpSource
from stowplan.scores.node_metrics import NODE_METRICS, UsedByNode, used_by_node
from stowplan.scores.usage import Measure, Usage

CONNECTIONS = 16


@dataclass
class Measurements:
    """Values by score and cluster. `expected`: the message for a cluster that has no value; empty if none is due.

    `must_exist`: it is an error if the hub has no cluster of a name.
    """

    values: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    expected: str = ""
    must_exist: bool = False


class Source(Protocol):
    def open(self, program: Program, /) -> None:
        """Connect; the program closes the connections when it ends."""
        ...

    async def read(self, clusters: Mapping[str, ManagedCluster], wanted: Demand, /) -> Measurements:
        """Return the values of one round."""
        ...


@dataclass
class OwnCluster:
    """The free resources of the cluster that the agent runs in."""

    cluster: str
    measures: tuple[Measure, ...]
    kubeconfig: str = ""
    context: str = ""
    usage: Usage = field(default_factory=Usage)
    client: Client | None = None
    _unmeasured: frozenset[str] = frozenset()

    def access(self) -> credentials.Access:
        """How to reach the cluster that is measured."""
        return credentials.load(self.kubeconfig or None, self.context or None)

    def open(self, program: Program) -> None:
        self.client = program.open_client(self.access(), CONNECTIONS)
        for kind in ("Node", "Pod"):
            program.follow(self.client, RESOURCES[kind], self.usage.apply, server="the cluster")

    async def read(self, _clusters: Mapping[str, ManagedCluster], wanted: Demand) -> Measurements:
        """Raises WireError if the cluster does not answer: its last scores should expire, and not be refreshed."""
        assert self.client is not None
        async for _ in self.client.list_pages(RESOURCES["Node"], limit=1):
            break
        measures = [each for each in self.measures if each.name in wanted]
        used = await self._used() if any(each.actual for each in measures) else None
        found = self.usage.measured(measures, used)
        notes = [] if used is None else [f"metrics-server knows nothing of {node}" for node in self._news(used)]
        return Measurements({name: {self.cluster: value} for name, value in found.items()}, notes)

    async def _used(self) -> UsedByNode:
        """What nodes really use. Without an answer there are no values at all: scores expire together."""
        assert self.client is not None
        answer = await self.client.transport.request("GET", NODE_METRICS)
        if answer.status in (404, 503):
            problem = f"the cluster has no metrics of nodes: {answer.status} for {NODE_METRICS}"
            raise ConfigError(problem, remedy="install metrics-server, or leave --actual out")
        return used_by_node(answer.checked(f"GET {NODE_METRICS}").body)

    def _news(self, used: UsedByNode) -> list[str]:
        """The nodes that were not measured, and of which nothing was said yet."""
        before, self._unmeasured = self._unmeasured, frozenset(self.usage.unmeasured(used))
        return sorted(self._unmeasured - before)


@dataclass
class RemoteSource:
    """A server that is asked in each round."""

    site: HttpSource

    def open(self, program: Program) -> None:
        program.resources.push_async_callback(self.site.close)


@dataclass
class Query(RemoteSource):
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
class Scorer(RemoteSource):
    """A scorer of the user's own, over HTTP."""

    async def read(self, clusters: Mapping[str, ManagedCluster], wanted: Demand) -> Measurements:
        answer = await scorer.ask(self.site, clusters.values(), wanted)
        values: dict[str, dict[str, float]] = {}
        for cluster, scores in answer.items():
            for score, value in scores.items():
                values.setdefault(score, {})[cluster] = value
        return Measurements(values, expected="the scorer gives no score for this cluster")


@dataclass
class Static:
    """Scores that are given on the command line."""

    score: str
    values: Mapping[str, float]

    def open(self, _program: Program) -> None: ...

    async def read(self, _clusters: Mapping[str, ManagedCluster], _wanted: Demand) -> Measurements:
        return Measurements({self.score: dict(self.values)}, must_exist=True)
