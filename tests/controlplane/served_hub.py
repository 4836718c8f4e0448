"""A hub where `stowplan place` decides for the tests of a file; each test has a namespace and clusters of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.controlplane.cluster import Cluster
from tests.controlplane.hubs import GROUP, define, wait_until_gone
from tests.controlplane.place_process import Hub, Placer, placing
from tests.controlplane.process import until

CLUSTERS = ("c1", "c2", "c3")
AMOUNTS = {"c1": ((10, 10), (50, 100)), "c2": ((7, 10), (90, 100)), "c3": ((9, 10), (80, 100))}


@dataclass(frozen=True)
class ServedHub:
    cluster: Cluster
    program: Placer

    @contextlib.contextmanager
    def namespace(self) -> Iterator[Hub]:
        """Without decisions of other placements, since Balance counts them."""
        api = self.cluster.api()
        everywhere = f"/apis/{GROUP}/v1beta1/placementdecisions"
        until("no decision is left", lambda: not api.must("GET", everywhere)["items"], 60)
        with self.cluster.namespace("place") as name:
            hub = Hub(self.cluster, name, self.program.explain)
            yield hub
            hub.tidy()
            api.must("DELETE", hub.path("placements"))
            api.must("DELETE", hub.path("placementdecisions"))
        self.program.check()
        self.cluster.check()


@contextlib.contextmanager
def a_served_hub(cluster: Cluster, log: str) -> Iterator[ServedHub]:
    """A hub at which placements are decided, with namespaces for clusters that have scores."""
    define(cluster)
    for name in CLUSTERS:
        cluster.api().must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    with placing(cluster, log) as program:
        yield ServedHub(cluster, program)
    for name in CLUSTERS:
        cluster.api().must("DELETE", f"/api/v1/namespaces/{name}")
    wait_until_gone(cluster, *CLUSTERS)


def with_three_clusters(hub: Hub) -> Hub:
    """Three clusters of different size."""
    for name, (cpu, memory) in AMOUNTS.items():
        hub.a_cluster(name, cpu=cpu, memory=memory)
    hub.bind()
    return hub
