"""The examples, as their pages run them, in the embedded cluster and on a real control plane."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.controlplane.cluster import Cluster
from tests.controlplane.ours import a_live_pod, apply, pods, stowplan, wait_until_bound

CONFIG = Path(__file__).parents[2] / "examples" / "01-first-plugin" / "config.yaml"
FLAVOURS = ("gold", "silver", "bronze")


def test_the_first_plugin(cluster: Cluster, namespace: str) -> None:
    with cluster.nodes(3, prefix="flavoured"), stowplan(cluster, "example", "--config", str(CONFIG)) as program:
        program.wait_until_leading()
        for number in range(9):
            pod = a_live_pod(f"p{number}", scheduler="flavoured")
            pod["metadata"]["labels"] = {"flavour": FLAVOURS[number % 3]}
            apply(cluster, namespace, pod)
        wait_until_bound(cluster, namespace, 9, explain=program.explain)
        landed = Counter(
            (pod["spec"]["nodeName"], pod["metadata"]["labels"]["flavour"]) for pod in pods(cluster, namespace)
        )
    assert set(landed.values()) == {1} and len(landed) == 9
