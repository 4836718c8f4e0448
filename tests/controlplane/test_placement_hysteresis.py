"""Hysteresis on a hub: scores vary by ±N, the program is killed in between, and no decision changes. A watcher of the
decisions never sees that a chosen cluster is missing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.decision_watcher import Watcher
from tests.controlplane.hubs import define, wait_until_gone
from tests.controlplane.place_process import Hub, Placer, add_on, exact, placing
from tests.controlplane.process import until

BASE = {"h1": 50, "h2": 48, "h3": 46, "h4": 44}
CHOSEN = ("h1", "h2")
NOISE, ROUNDS = 10, 5


@pytest.fixture
def hub(cluster: Cluster, namespace: str) -> Iterator[Hub]:
    define(cluster)
    for name in BASE:
        cluster.api().must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    found = Hub(cluster, namespace)
    found.bind()
    found.clusters(*BASE)
    for name, value in BASE.items():
        found.score(name, value)
    yield found
    found.tidy()
    cluster.api().must("DELETE", found.path("placements"))
    cluster.api().must("DELETE", found.path("placementdecisions"))
    for name in BASE:
        cluster.api().must("DELETE", f"/api/v1/namespaces/{name}")
    wait_until_gone(cluster, *BASE)


def written(hub: Hub) -> dict[str, int]:
    found = [each for decision in hub.decisions() for each in decision.get("status", {}).get("decisions") or ()]
    return {each["clusterName"]: each.get("score", 0) for each in found}


def vary(hub: Hub, draw: random.Random, program: Placer) -> None:
    """Other scores, until the decision says those of the chosen clusters: then it was made with them."""
    scores = {name: value + draw.randint(-NOISE, NOISE) for name, value in BASE.items()}
    for name, value in scores.items():
        hub.score(name, value)
    wanted = {name: scores[name] for name in CHOSEN}
    until("the decision has these scores", lambda: written(hub) == wanted, 60, program.explain)


def test_noise_changes_no_decision_even_if_it_is_killed(hub: Hub) -> None:
    draw, flags = random.Random(7), ("--leader-elect=false", "--hysteresis", str(NOISE))
    hub.place(numberOfClusters=2, prioritizerPolicy=exact(add_on()), scoreRateLimit="1s")
    with Watcher(hub) as watcher:
        for life in range(2):
            log = f"calm-{hub.namespace}-{life}"
            with Placer(hub.cluster.kubeconfig(), hub.cluster.folder, log, *flags) as program:
                program.wait_until_leading()
                hub.explain = program.explain
                hub.gets(*CHOSEN)
                watcher.begin(frozenset(CHOSEN))
                for _ in range(ROUNDS):
                    vary(hub, draw, program)
                program.kill()
        assert watcher.lapses == {} and watcher.homes.keys() == {*CHOSEN}
    with placing(hub.cluster, f"calm-{hub.namespace}-last", *flags) as program:
        hub.explain = program.explain
        left = max(CHOSEN, key=lambda name: written(hub)[name])
        hub.score("h4", 100)
        hub.gets(left, "h4")
