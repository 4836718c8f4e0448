"""The hub as a producer of scores sees it: its clusters, the scores that are written, and the scores in demand.

A producer on the hub watches all three. An agent in a managed cluster knows its own name, and reads its own scores
before each round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec

from stowplan.apps.program import Program
from stowplan.kube.client import Client
from stowplan.kube.resources import RESOURCES
from stowplan.objects.changes import Change, Put
from stowplan.objects.clusters import AddOnPlacementScore, ClusterMeta, ManagedCluster
from stowplan.objects.errors import ConfigError
from stowplan.scores.demand import EVERYTHING, Demand, ScoreDemand

HUB = "the hub"


class Hub(Protocol):
    changed: asyncio.Event  # set when a cluster is added, or when the demand changes

    @property
    def clusters(self) -> Mapping[str, ManagedCluster]: ...

    def known(self, cluster: str) -> AddOnPlacementScore | None:
        """Return the scores of a cluster that the hub has from us."""
        ...

    async def refresh(self) -> Demand:
        """Read what a round needs, and return the scores in demand."""
        ...


class PlacementDemand:
    """The scores that Placements ask for; without `on_demand` all scores."""

    def __init__(
        self, program: Program, client: Client, resource_name: str, changed: asyncio.Event, *, on_demand: bool
    ) -> None:
        self._scores = ScoreDemand(resource_name) if on_demand else None
        self._changed = changed
        if on_demand:
            program.follow(client, RESOURCES["Placement"], self._placements_changed, server=HUB)

    @property
    def demand(self) -> Demand:
        return EVERYTHING if self._scores is None else self._scores.demand

    def _placements_changed(self, changes: list[Change]) -> None:
        if self._scores is not None and self._scores.apply(changes):
            self._changed.set()


class HubFleet:
    """The hub for a producer that scores all its clusters."""

    def __init__(self, program: Program, client: Client, resource_name: str, *, on_demand: bool) -> None:
        self.changed = asyncio.Event()
        self.clusters: dict[str, ManagedCluster] = {}
        self._name = resource_name
        scores = msgspec.structs.replace(RESOURCES["AddOnPlacementScore"], fields=f"metadata.name={resource_name}")
        self._managed = program.follow(client, RESOURCES["ManagedCluster"], self._clusters_changed, server=HUB)
        self._scores = program.follow(client, scores, lambda _: None, server=HUB)
        self._placements = PlacementDemand(program, client, resource_name, self.changed, on_demand=on_demand)

    def known(self, cluster: str) -> AddOnPlacementScore | None:
        found = self._scores.cache.objects.get(f"{cluster}/{self._name}")
        return found if isinstance(found, AddOnPlacementScore) else None

    async def refresh(self) -> Demand:
        for reflector in (self._managed, self._scores):
            if not reflector.served:
                remedy = "name the hub (--hub-kubeconfig), or install: kubectl apply -k deploy/crds/placement/"
                raise ConfigError(f"the hub has no {reflector.resource.kind}", remedy=remedy)
        self.changed.clear()
        return self._placements.demand

    def _clusters_changed(self, changes: list[Change]) -> None:
        for change in changes:
            cluster = change.object
            if isinstance(change, Put) and isinstance(cluster, ManagedCluster) and not cluster.terminating:
                if cluster.name not in self.clusters:
                    self.changed.set()
                self.clusters[cluster.name] = cluster
            else:
                self.clusters.pop(cluster.name, None)


class ScoredCluster:
    """The hub for an agent in a managed cluster, which may use the namespace of that cluster only."""

    def __init__(
        self,
        program: Program,
        client: Client,
        resource_name: str,
        *,
        cluster: str,
        read: Callable[[str], Awaitable[AddOnPlacementScore | None]],
        on_demand: bool,
    ) -> None:
        self.changed = asyncio.Event()
        self.clusters = {cluster: ManagedCluster(metadata=ClusterMeta(name=cluster))}
        self._client, self._cluster, self._read = client, cluster, read
        self._may_look = True  # whether the account may look at its own ManagedCluster
        self._placements = PlacementDemand(program, client, resource_name, self.changed, on_demand=on_demand)
        self._known: AddOnPlacementScore | None = None

    def known(self, _cluster: str) -> AddOnPlacementScore | None:
        return self._known

    async def refresh(self) -> Demand:
        self.changed.clear()
        self._known = await self._read(self._cluster)
        await self._look_for_cluster()
        return self._placements.demand

    async def _look_for_cluster(self) -> None:
        """Raise ConfigError if the hub has no cluster of this name. An account without the right to look goes on."""
        if not self._may_look:
            return
        answer = await self._client.get(RESOURCES["ManagedCluster"], self._cluster)
        self._may_look = answer.status != 403
        if answer.status == 404:
            remedy = "register the cluster, or correct --cluster-name"
            raise ConfigError(f"the hub has no ManagedCluster {self._cluster}", remedy=remedy)
