"""What a producer of scores sees of the hub: which clusters there are, what is written of them, who wants to know.

On the hub all three are watched. An agent in a managed cluster knows its own name, and reads its own object each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from stowplan.apps.logging import Log
from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.reflector import Reflector
from stowplan.kube.resources import RESOURCES
from stowplan.kube.responses import UnreachableError
from stowplan.kube.transport import Transport
from stowplan.objects.changes import Change, Put
from stowplan.objects.clusters import AddOnPlacementScore, ClusterMeta, ManagedCluster
from stowplan.objects.errors import ConfigError
from stowplan.scores.demand import EVERYTHING, Demand, ScoreDemand

SYNCED_WITHIN = 30.0  # seconds until a single round gives up on a hub that does not answer


class Hub(Protocol):
    """`known` by cluster: what the hub has of our object there."""

    changed: asyncio.Event  # a cluster came, or something else is wanted

    @property
    def clusters(self) -> Mapping[str, ManagedCluster]: ...

    def known(self, cluster: str) -> AddOnPlacementScore | None: ...

    async def look(self) -> Demand:
        """Before each round; what is wanted."""
        ...


@asynccontextmanager
async def connected(kubeconfig: str, context: str) -> AsyncIterator[Client]:
    client = Client(Transport(credentials.load(kubeconfig or None, context or None), connections=16))
    try:
        yield client
    finally:
        await client.close()


class Watching:
    """Reflectors of some kinds of one server, at work until the block ends."""

    def __init__(self, client: Client, log: Log, where: str) -> None:
        self._client, self._log, self._where = client, log, where
        self._problem = ""
        self.reflectors: list[Reflector] = []

    def add(self, kind: str, sink: Callable[[list[Change]], None], *, fields: str = "") -> Reflector:
        resource = RESOURCES[kind]
        resource = msgspec.structs.replace(resource, fields=fields) if fields else resource
        reflector = Reflector(self._client, resource, sink, on_problem=self._note)
        self.reflectors.append(reflector)
        return reflector

    def _note(self, problem: str) -> None:
        self._problem = problem
        self._log.warning("Cannot follow what happens", where=self._where, problem=problem)

    @asynccontextmanager
    async def running(self, *, patience: float | None) -> AsyncIterator[None]:
        """All there is has been told when the block begins; after `patience` seconds in vain, an error."""
        tasks = [asyncio.ensure_future(each.run()) for each in self.reflectors]
        try:
            await self._synced(patience)
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _synced(self, patience: float | None) -> None:
        try:
            async with asyncio.timeout(patience):
                for each in self.reflectors:
                    await each.synced.wait()
        except TimeoutError:
            why = self._problem or "no answer"
            raise UnreachableError(f"{self._where} could not be read within {patience:g} s: {why}") from None


class WantedScores:
    """What Placements want, where that is asked for; otherwise everything."""

    def __init__(self, watching: Watching, resource_name: str, changed: asyncio.Event, *, on_demand: bool) -> None:
        self._wishes = ScoreDemand(resource_name) if on_demand else None
        self._changed = changed
        if on_demand:
            watching.add("Placement", self._placements_changed)

    @property
    def demand(self) -> Demand:
        return EVERYTHING if self._wishes is None else self._wishes.demand

    def _placements_changed(self, changes: list[Change]) -> None:
        if self._wishes is not None and self._wishes.apply(changes):
            self._changed.set()


class HubFleet:
    """The hub as a producer that runs there has it."""

    def __init__(self, watching: Watching, resource_name: str, *, on_demand: bool) -> None:
        self.changed = asyncio.Event()
        self.clusters: dict[str, ManagedCluster] = {}
        self._name = resource_name
        self._served = watching.add("ManagedCluster", self._clusters_changed)
        self._scores = watching.add("AddOnPlacementScore", lambda _: None, fields=f"metadata.name={resource_name}")
        self._wanted = WantedScores(watching, resource_name, self.changed, on_demand=on_demand)

    def known(self, cluster: str) -> AddOnPlacementScore | None:
        found = self._scores.cache.objects.get(f"{cluster}/{self._name}")
        return found if isinstance(found, AddOnPlacementScore) else None

    async def look(self) -> Demand:
        for reflector in (self._served, self._scores):
            if not reflector.served:
                remedy = "name the hub (--hub-kubeconfig), or install: kubectl apply -k deploy/crds/placement/"
                raise ConfigError(f"the hub has no {reflector.resource.kind}", remedy=remedy)
        self.changed.clear()
        return self._wanted.demand

    def _clusters_changed(self, changes: list[Change]) -> None:
        for change in changes:
            cluster = change.object
            if isinstance(change, Put) and isinstance(cluster, ManagedCluster) and not cluster.terminating:
                if cluster.name not in self.clusters:
                    self.changed.set()
                self.clusters[cluster.name] = cluster
            else:
                self.clusters.pop(cluster.name, None)


class OneCluster:
    """The hub as an agent in a managed cluster has it: a namespace of its own."""

    def __init__(
        self,
        cluster: str,
        read: Callable[[str], Awaitable[AddOnPlacementScore | None]],
        watching: Watching,
        resource_name: str,
        *,
        on_demand: bool,
    ) -> None:
        self.changed = asyncio.Event()
        self.clusters = {cluster: ManagedCluster(metadata=ClusterMeta(name=cluster))}
        self._cluster, self._read = cluster, read
        self._wanted = WantedScores(watching, resource_name, self.changed, on_demand=on_demand)
        self._seen: AddOnPlacementScore | None = None

    def known(self, _cluster: str) -> AddOnPlacementScore | None:
        return self._seen

    async def look(self) -> Demand:
        self.changed.clear()
        self._seen = await self._read(self._cluster)
        return self._wanted.demand
