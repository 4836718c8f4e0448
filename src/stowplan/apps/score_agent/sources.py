"""Sources of scores: the cluster that the agent runs in, a PromQL query, a scorer over HTTP, or the command line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from stowplan.apps.program import Program
from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.resources import RESOURCES
from stowplan.objects.clusters import ManagedCluster
from stowplan.objects.errors import ConfigError, StowplanError
from stowplan.scores import prometheus, scorer
from stowplan.scores.demand import Demand
from stowplan.scores.http_source import HttpSource
from stowplan.scores.node_metrics import NODE_METRICS, UsedByNode, used_by_node
from stowplan.scores.usage import Measure, Usage

CONNECTIONS = 16
MOST_NAMED = 3  # nodes in a message


@dataclass
class Measurements:
    """Values by score and cluster. `expected`: the message for a cluster that has no value; empty if none is due.

    `must_exist`: it is an error if the hub has no cluster of a name. `problem`: why some values are missing or old.
    """

    values: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    expected: str = ""
    must_exist: bool = False
    problem: StowplanError | None = None


class Source(Protocol):
    def open(self, program: Program, /) -> None:
        """Connect; the program closes the connections when it ends."""
        ...

    async def read(self, clusters: Mapping[str, ManagedCluster], wanted: Demand, /) -> Measurements:
        """Return the values of one round."""
        ...


@dataclass
class OwnCluster:
    """The free resources of the cluster that the agent runs in.

    Without numbers of metrics-server, the last values by real usage stay for `keep` seconds; then there are none. Those
    by requests do not depend on it.
    """

    cluster: str
    measures: tuple[Measure, ...]
    kubeconfig: str = ""
    context: str = ""
    usage: Usage = field(default_factory=Usage)
    client: Client | None = None
    keep: float = 600.0
    now: Callable[[], float] = time.monotonic
    _unmeasured: frozenset[str] = frozenset()
    _last: dict[str, float] = field(default_factory=dict)  # values by real usage
    _last_at: float = 0.0

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
        found = self.usage.measured([each for each in measures if not each.actual])
        by_usage = [each for each in measures if each.actual]
        notes: list[str] = []
        problem = None
        if by_usage:
            try:
                used = await self._used()
                notes = [f"metrics-server knows nothing of {node}" for node in self._news(used)]
                self._measure(by_usage, used)
            except StowplanError as error:
                problem = error
            if problem is None or self.now() < self._last_at + self.keep:
                found |= {each.name: self._last[each.name] for each in by_usage if each.name in self._last}
        values = {name: {self.cluster: value} for name, value in found.items()}
        return Measurements(values, notes, problem=problem)

    def _measure(self, measures: list[Measure], used: UsedByNode) -> None:
        """Keep the values by real usage. Raises ConfigError if too few nodes were measured."""
        found = self.usage.measured(measures, used)
        if len(found) < len(measures):
            missing = self.usage.unmeasured(used)
            named = ", ".join(missing[:MOST_NAMED]) + (" and others" if len(missing) > MOST_NAMED else "")
            problem = f"metrics-server has not measured enough nodes: {named or 'cpu or memory is missing'}"
            raise ConfigError(problem, path=NODE_METRICS, remedy="look at metrics-server, unless it has just started")
        self._last, self._last_at = found, self.now()

    async def _used(self) -> UsedByNode:
        """What nodes really use."""
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
