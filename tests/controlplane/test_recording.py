"""A scheduler that is recorded in a cluster: its replay has the same bindings, and the API server has them, too.

The same workloads, simulated without the recording, give the same number of placed and of pending pods of each: which
pods find no node does not depend on the order in which they are tried.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.run.configuration import beside_kube_scheduler
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.run import Simulation
from stowplan.simulation.settings import RunSettings
from stowplan.simulation.simulated_cluster import SimulatedCluster
from stowplan.simulation.stream_events import Arrival
from tests.controlplane.cluster import Cluster
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import a_container, a_deployment, apply, bound, pods, stowplan

Counts = Counter[tuple[str, bool]]  # of pods, by workload and by whether they have a node
PATIENCE = 1500  # seconds, for machines that have much else to do
ALONE = "--leader-elect=false"  # one process makes the recording, so it must go on however slow the machine is
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


@dataclass(frozen=True)
class Workloads:
    """50 pods for each node: Deployments that fit, one that has more pods than nodes, and one too large for any."""

    nodes: int  # an even number; at least 6

    @property
    def pods(self) -> int:
        return 50 * self.nodes

    @property
    def placed(self) -> int:
        return self.pods - self.nodes * 3 // 2  # all but half of `apart`, and `huge`

    def documents(self) -> list[dict[str, Any]]:
        apart = {"labelSelector": {"matchLabels": {"app": "apart"}}, "topologyKey": HOSTNAME}
        anti_affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
        zonal: dict[str, Any] = {"containers": [a_container("50m")], "nodeSelector": {ZONE: "zone-0"}}
        return [
            a_deployment("web", 35 * self.nodes),
            a_deployment("zonal", 25 * self.nodes // 2, **zonal),
            a_deployment("apart", 3 * self.nodes // 2, affinity=anti_affinity),
            a_deployment("huge", self.nodes, containers=[a_container("16")]),
        ]


def test_a_recorded_run_is_replayed_and_simulated(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    check(cluster, namespace, tmp_path, Workloads(nodes=6))


@pytest.mark.controlplane
@pytest.mark.full
def test_a_recorded_run_of_2000_pods_is_replayed_and_simulated(
    plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    check(plane, namespace, tmp_path, Workloads(nodes=40))


def check(cluster: Cluster, namespace: str, folder: Path, workloads: Workloads) -> None:
    file = folder / "recording.jsonl"
    with cluster.nodes(workloads.nodes) as names:
        with stowplan(cluster, f"recorded-{workloads.nodes}", "--record", str(file), ALONE) as program:
            program.wait_until_leading(PATIENCE)
            apply(cluster, namespace, *workloads.documents())
            # What the scheduler counts is asked for first: it is little to read, again and again.
            enough = workloads.placed
            until(f"{enough} are placed", lambda: attempts(program.answers("/metrics")) >= enough, PATIENCE,
                  program.explain)  # fmt: skip
            until("each pod is decided about", lambda: decided(cluster, namespace, workloads.pods), PATIENCE,
                  program.explain)  # fmt: skip
        placed, nodes = bound(cluster, namespace), [each for each in nodes_of(cluster) if name_of(each) in names]
        live = Counter(
            (pod["metadata"]["labels"]["app"], "nodeName" in pod["spec"]) for pod in pods(cluster, namespace)
        )
    assert len(placed) == workloads.placed
    assert {f"{namespace}/{name}": node for name, node in placed.items()} == recorded_bindings(file)
    replayed = answer_of_replay(file)
    assert (replayed["identical"], replayed["notes"], replayed["end"]) == (True, [], ""), replayed
    assert replayed["bindings"] >= workloads.placed
    assert simulated(nodes, namespace, workloads) == live


def attempts(metrics: str) -> float:
    """How many pods were scheduled, as the page says."""
    lines = (line for line in metrics.splitlines() if line.startswith("scheduler_schedule_attempts_total"))
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if 'result="scheduled"' in line)


def decided(cluster: Cluster, namespace: str, number: int) -> bool:
    """True if so many pods are there, and each has a node, or was told why it has none."""
    found = pods(cluster, namespace)
    return len(found) == number and all("nodeName" in pod["spec"] or was_refused(pod) for pod in found)


def was_refused(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)


def nodes_of(cluster: Cluster) -> list[dict[str, Any]]:
    items = cluster.api().must("GET", "/api/v1/nodes")["items"]
    return [{"apiVersion": "v1", "kind": "Node", **each} for each in items]


def name_of(document: dict[str, Any]) -> str:
    return str(document["metadata"]["name"])


def recorded_bindings(file: Path) -> dict[str, str]:
    """Return the last binding of each pod."""
    lines = (json.loads(line) for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n"))
    return {pod: node for line in lines for pod, node in line.get("bind", ())}


def answer_of_replay(file: Path) -> dict[str, Any]:
    answer = CliRunner().invoke(main, ["replay", str(file), "-o", "json"])
    assert answer.exit_code in (0, 1) and answer.stdout, answer.output
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def simulated(nodes: Iterable[dict[str, Any]], namespace: str, workloads: Workloads) -> Counts:
    """Give the nodes and the Deployments to a run in virtual time."""
    problems, settings = InputProblems(), RunSettings(seed=1, sample_seconds=0)
    cluster = SimulatedCluster(settings)
    cluster.load((("nodes.json", node) for node in nodes), problems)
    documents = [{**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in workloads.documents()]
    stream = [Arrival(at=float(number), document=each) for number, each in enumerate(documents)]
    run = Simulation(cluster, stream, beside_kube_scheduler().profiles, settings, problems=problems)
    run.run()
    return Counter((pod.labels["app"], bool(pod.node_name)) for pod in run.engine.pods.values())
