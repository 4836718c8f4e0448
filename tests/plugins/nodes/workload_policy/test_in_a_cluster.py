"""Costs and evictions against a whole cluster in this process: its API server, its ReplicaSets and its budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.plugins.nodes.workload_policy.deletion_costs import COST, OWN
from stowplan.testing import EmbeddedCluster

CONFIG = Path(__file__).parents[4] / "deploy" / "profiles" / "kosmos-scheduler" / "keep-ratios" / "config.yaml"
ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """Two zones; one eviction a second."""
    config = yaml.safe_load(CONFIG.read_text())
    config["profiles"][0]["pluginConfig"][0]["args"]["evictionsPerMinute"] = 60
    with EmbeddedCluster(nodes=2) as found:
        found.start_scheduler(config)
        yield found


def a_policy(a: int | str, b: int | str, **spec: Any) -> dict[str, Any]:
    listed = [{"name": "zone-a", "replicas": a}, {"name": "zone-b", "replicas": b}]
    given = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}, "allocationPolicy": listed, **spec}
    metadata = {"name": "web", "namespace": "default"}
    return {"apiVersion": "kosmos.io/v1alpha1", "kind": "WorkloadPolicy", "metadata": metadata, "spec": given}


def a_deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web", "workload-policy/kosmos.io": "web"}
    spec = {"schedulerName": "kosmos-scheduler", "containers": [{"name": "c", "image": "x:1"}]}
    template = {"metadata": {"labels": labels}, "spec": {**spec, "terminationGracePeriodSeconds": 0}}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }  # fmt: skip


def there(cluster: EmbeddedCluster) -> Counter[str]:
    """Pods with a node and a cost, by node."""
    found = [pod for pod in cluster.pods() if COST in pod["metadata"].get("annotations", {})]
    assert all(pod["metadata"]["annotations"][OWN] == pod["metadata"]["annotations"][COST] for pod in found)
    return Counter(pod["spec"].get("nodeName", "") for pod in found)


def until(cluster: EmbeddedCluster, a: int, b: int) -> None:
    expected = {"node-0": a, "node-1": b}
    cluster.wait_until(lambda: there(cluster) == expected and len(cluster.pods()) == a + b, within=60)


def test_scaling_down_keeps_the_ratio(cluster: EmbeddedCluster) -> None:
    cluster.apply(a_policy(3, 5), a_deployment(16))
    until(cluster, 6, 10)
    cluster.apply(a_deployment(8))
    until(cluster, 3, 5)
    cluster.delete("WorkloadPolicy", "default/web")
    cluster.wait_until(lambda: not there(cluster))


def test_an_edit_moves_pods_within_their_budget(cluster: EmbeddedCluster) -> None:
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0},
    }  # fmt: skip
    cluster.apply(a_policy("37.5%", "62.5%", rebalance="Evict"), a_deployment(8), budget)
    until(cluster, 3, 5)
    before = {pod["metadata"]["name"] for pod in cluster.pods()}
    cluster.apply(a_policy("62.5%", "37.5%", rebalance="Evict"))
    cluster.wait_until(lambda: status(cluster).get("observedGeneration") == 2)
    assert {pod["metadata"]["name"] for pod in cluster.pods()} == before
    cluster.apply({**budget, "spec": {**budget["spec"], "maxUnavailable": 1}})  # type: ignore[dict-item]
    until(cluster, 5, 3)
    assert len(before - {pod["metadata"]["name"] for pod in cluster.pods()}) == 2
    assert cluster.wait_until(lambda: len(cluster.events(reason="Rebalanced")) == 2)


def status(cluster: EmbeddedCluster) -> dict[str, Any]:
    found: dict[str, Any] = (cluster.get("WorkloadPolicy", "default/web") or {}).get("status", {})
    return found
