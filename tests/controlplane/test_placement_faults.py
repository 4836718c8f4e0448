"""Failures around `stowplan place`: the program is killed while it writes slices, and its hub during changes. A
watcher of the decisions never sees that a cluster which stays chosen is missing from all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.decision_watcher import Watcher
from tests.controlplane.hubs import GROUP, define
from tests.controlplane.place_process import LONG_LEASE, QUICK_LEASE, SET_LABEL, Hub, Placer, placing
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until

NUMBER = 350
NAMES = [f"n{number:03}" for number in range(NUMBER)]
STAYING = frozenset(NAMES[:300])  # the others come and go
SIZES = (40, 25, 60, 35, 100, 30, 45, 20)  # of groups, one after the other: each moves clusters between slices
KILLED_AFTER = (1, 4, 9, 2, 14, 6, 20, 3)  # events


@contextmanager
def fleet(cluster: Cluster, namespace: str) -> Iterator[Hub]:
    """350 clusters that a placement has, all of them."""
    define(cluster)
    hub = Hub(cluster, namespace)
    path = hub.path("managedclusters")

    def make(name: str) -> None:
        metadata = {"name": name, "labels": {SET_LABEL: "default"}}
        document = {"apiVersion": f"{GROUP}/v1", "kind": "ManagedCluster", "metadata": metadata, "spec": {}}
        hub.api.must("POST", path, document)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, NAMES))
    hub.bind()
    try:
        yield hub
    finally:
        hub.tidy()
        cluster.api().must("DELETE", path)
        cluster.api().must("DELETE", hub.path("placements"))
        # Not left to the garbage collector: the next test's placement would be kept off clusters that these list.
        cluster.api().must("DELETE", hub.path("placementdecisions"))


def grouped(size: int, *, few: bool) -> dict[str, Any]:
    """Groups of this size, of all clusters, or of those that stay."""
    spec: dict[str, Any] = {"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": size}}}
    return spec | ({"numberOfClusters": len(STAYING)} if few else {})


def settled(hub: Hub, size: int, *, few: bool, explain: Any) -> None:
    number = len(STAYING) if few else NUMBER
    wanted = [size] * (number // size) + ([number % size] if number % size else [])

    def as_wanted() -> bool:
        return [count for _, count in hub.groups()] == wanted and hub.chosen() == NAMES[:number]  # each once

    until(f"groups of {size}", as_wanted, 180, lambda: f"{hub.groups()}\n{len(hub.chosen())} chosen\n{explain()}")


@pytest.mark.parametrize(
    "rounds", [pytest.param(2, id="short"), pytest.param(len(SIZES), id="long", marks=pytest.mark.full)]
)
def test_killed_while_it_writes_slices(cluster: Cluster, namespace: str, rounds: int) -> None:
    interrupted = 0
    with fleet(cluster, namespace) as hub, Watcher(hub) as watcher:
        with placing(cluster, f"slices-{namespace}", *QUICK_LEASE) as program:
            hub.place(**grouped(100, few=False))
            settled(hub, 100, few=False, explain=program.explain)
        until("all are seen", lambda: watcher.homes.keys() >= {*NAMES})
        watcher.begin(STAYING)
        for round_ in range(len(SIZES)):
            if round_ >= rounds and interrupted:  # the kill may have come too late each time
                break
            interrupted += kill_while_writing(hub, watcher, round_)
            size, few = SIZES[round_], round_ % 2 == 0
        with placing(cluster, f"slices-{namespace}", *QUICK_LEASE) as program:
            settled(hub, size, few=few, explain=program.explain)
            until("the watcher is up to date", lambda: watched(hub, watcher))
    assert watcher.lapses == {}, "no cluster that stays was ever missing"
    assert interrupted, "it was killed before it was done"
    assert sum(len(homes) > 1 for homes in watcher.homes.values()) > 100, "there was something to move"


def watched(hub: Hub, watcher: Watcher) -> bool:
    return watcher.staying <= {name for names in hub.slices().values() for name in names}


def kill_while_writing(hub: Hub, watcher: Watcher, round_: int) -> bool:
    """Another spec, and the end after so many events; whether it had more to do."""
    size, after, few = SIZES[round_], KILLED_AFTER[round_], round_ % 2 == 0
    program = Placer(hub.cluster.kubeconfig(), hub.cluster.folder, f"slices-{hub.namespace}", *QUICK_LEASE)
    program.wait_until_leading()
    until("what was left is done", lambda: program.metric("stowplan_placement_decisions_total") >= 1)
    killed, last = threading.Event(), watcher.events + after

    def kill() -> None:
        if watcher.events >= last and not killed.is_set():
            program.kill()
            killed.set()

    def done() -> bool:
        return [count for _, count in hub.groups()][:1] == [size]

    watcher.on_event = kill
    hub.place(**grouped(size, few=few))
    until("it is killed, or done", lambda: killed.is_set() or done(), 120, program.explain)
    watcher.on_event = lambda: None
    program.kill()
    return not done()


@pytest.mark.controlplane
@pytest.mark.parametrize("rounds", [pytest.param(1, id="short"), pytest.param(4, id="long", marks=pytest.mark.full)])
def test_the_hub_is_killed_under_change(plane: ControlPlane, namespace: str, rounds: int) -> None:
    with fleet(plane, namespace) as hub, Watcher(hub) as watcher:
        program = Placer(plane.kubeconfig(), plane.folder, f"hub-{namespace}", *LONG_LEASE)
        program.wait_until_leading()
        hub.place(**grouped(100, few=False))
        settled(hub, 100, few=False, explain=program.explain)
        until("all are seen", lambda: watcher.homes.keys() >= {*NAMES})
        watcher.begin(STAYING)
        for round_ in range(rounds):
            hub.place(**grouped(SIZES[round_], few=True))
            hub.place(**grouped(SIZES[round_ + 1], few=False))
            plane.kill_apiserver()
            plane.restart_apiserver()
            hub.place(**grouped(SIZES[round_ + 2], few=True))
            settled(hub, SIZES[round_ + 2], few=True, explain=program.explain)
        program.check()
        assert program.page("/healthz") == "ok"
        program.stop(grace=90)
    assert watcher.lapses == {}
