"""Explanations of pending pods agree with what the scheduler says of them, with all policies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps import cluster_objects
from stowplan.apps.cli import main
from stowplan.apps.up import command as up
from stowplan.objects.pods import Pod
from stowplan.testing import EmbeddedCluster

KINDS = ("Pod", "Node", "ReplicaSet", "Deployment", "WorkloadPolicy", "ResourceReservation", "PriorityClass")
SCRIPT = yaml.safe_load(Path(__file__).with_name("policies.yaml").read_text(encoding="utf-8"))
PENDING = {"cache": 3, "ledger": 1, "rival": 3, "south": 3, "train": 1}
GANG = "default/south-"  # what is said of its members depends on which of them is tried first


def a_node(pool: Mapping[str, Any], number: int, zone: str) -> dict[str, Any]:
    resources = {"cpu": pool["cpu"], "memory": pool["memory"]}
    resources |= {"nvidia.com/gpu": pool["gpus"]} if "gpus" in pool else {}
    found = up.node(f"{pool['name']}-{number}", zone, taints=[pool["taint"]] if "taint" in pool else [], **resources)
    found["metadata"]["labels"]["pool"] = pool["name"]
    return {"apiVersion": "v1", "kind": "Node", **found}


def a_deployment(workload: Mapping[str, Any]) -> dict[str, Any]:
    own = {"app": workload["name"]}
    spec = {"schedulerName": workload.get("scheduler", "default-scheduler"), **workload["pod"]}
    template = {"metadata": {"labels": own | workload.get("labels", {})}, "spec": spec}
    wanted = {"replicas": workload["replicas"], "selector": {"matchLabels": own}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": workload["name"]}, "spec": wanted}


def of_spark(role: str, name: str, **metadata: Any) -> dict[str, Any]:
    application = SCRIPT["spark"]
    labels = {"app": application["name"], "spark-app-selector": application["name"], "spark-role": role}
    spec = {"schedulerName": application["scheduler"], **application["pod"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels, **metadata}, "spec": spec}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A Spark driver comes first, then workloads that want the room of its executors, then the executors."""
    nodes = [
        a_node(pool, number, zone)
        for pool in SCRIPT["nodes"]
        for number, zone in enumerate(islice(cycle(pool["zones"]), pool["count"]))
    ]
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(SCRIPT["configuration"]), encoding="utf-8")
    with EmbeddedCluster(nodes=nodes, folder=tmp_path) as found:
        found.start_scheduler(config=config)
        found.apply(*SCRIPT["objects"], of_spark("driver", "driver", annotations=SCRIPT["spark"]["annotations"]))
        found.wait_until(lambda: found.node_of("default/driver"), within=300)
        found.apply(*map(a_deployment, SCRIPT["workloads"]))
        found.wait_until(lambda: len(said(found)) == sum(PENDING.values()), within=300)
        found.apply(*(of_spark("executor", f"exec-{number}") for number in range(SCRIPT["spark"]["executors"])))
        executors = [f"default/exec-{number}" for number in range(SCRIPT["spark"]["executors"])]
        found.wait_until(lambda: all(map(found.node_of, executors)), within=300)
        found.wait_until(lambda: len(said(found)) == sum(PENDING.values()), within=300)
        yield found


def said(cluster: EmbeddedCluster) -> dict[str, str]:
    """Return the message of each pending pod, once all pods have a node or a condition; before that, nothing."""
    objects, _ = cluster_objects.from_cluster(("Pod",), kubeconfig=str(cluster.kubeconfig))
    pending = [each for each in objects if isinstance(each, Pod) and each.pending]
    conditions = {pod.key: pod.condition("PodScheduled") for pod in pending}
    return {key: found.message for key, found in conditions.items() if found is not None}


def test_of_the_cluster_and_of_a_dump(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    objects, _ = cluster_objects.from_cluster(KINDS, kubeconfig=str(cluster.kubeconfig))
    items = [{**msgspec.to_builtins(each, enc_hook=str), "kind": type(each).__name__} for each in objects]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    messages = said(cluster)
    assert all(sum(key.startswith(f"default/{app}-") for key in messages) == n for app, n in PENDING.items()), messages
    for source in (["--kubeconfig", str(cluster.kubeconfig)], ["--from", str(dump)]):
        command = ["explain", "-A", "-o", "json", "--config", str(tmp_path / "config.yaml"), *source]
        answer = CliRunner().invoke(main, command)
        assert answer.exit_code == 1, answer.output
        explained = {each["pod"]: each["message"] for each in json.loads(answer.stdout)["items"]}
        assert explained.keys() == messages.keys(), "pods of groups included"
        assert alone(explained) == alone(messages)


def alone(messages: Mapping[str, str]) -> dict[str, str]:
    return {key: message for key, message in messages.items() if not key.startswith(GANG)}
