"""Stowplan as a child process at a real control plane, and questions of tests about the cluster."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import yaml

from stowplan.objects import kinds, quantity
from stowplan.objects.pods import Pod
from stowplan.objects.requests import running as requested_by
from tests.controlplane.cluster import Cluster
from tests.controlplane.flags import free_port
from tests.controlplane.process import Program, until

PYTHON = Path(sys.executable)


class Stowplan(Program):
    """`stowplan run`; its pages are on a plain port of the loopback."""

    command_line: ClassVar[tuple[str, ...]] = ("-m", "stowplan.apps.cli")

    def __init__(self, kubeconfig: Path, folder: Path, name: str, *arguments: str) -> None:
        self.port = free_port()
        command = [*self.command_line, "run", "--kubeconfig", str(kubeconfig), "--secure-port", "0", "-v", "2"]
        super().__init__(PYTHON, [*command, "--plain-port", str(self.port), *arguments], folder / f"{name}.log")

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            text: str = answer.read().decode()
        return text

    def answers(self, path: str) -> str:
        """What a page says, nothing if there is no answer or a refusal."""
        try:
            return self.page(path)
        except OSError:
            return ""

    def wait_until_leading(self, seconds: float = 120) -> None:
        until("the scheduler leads", lambda: self.answers("/leader") == "leading\n", seconds, self.explain)

    def wait_until_ready(self, seconds: float = 120) -> None:
        until("the scheduler is ready", lambda: self.answers("/readyz") == "ok", seconds, self.explain)

    def explain(self, *_: object) -> str:
        return self.tail(40)

    def metric(self, name: str, **labels: str) -> float:
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        lines = [line for line in self.page("/metrics").splitlines() if line.startswith(name)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if all(each in line for each in wanted))


@contextmanager
def stowplan(cluster: Cluster, name: str, *arguments: str, kubeconfig: Path | None = None) -> Iterator[Stowplan]:
    """One that leads and decides (unless another one leads)."""
    program = Stowplan(kubeconfig or cluster.kubeconfig(), cluster.folder, name, *arguments)
    with program:
        program.wait_until_ready()
        yield program


def a_deployment(name: str, replicas: int, *, scheduler: str = "stowplan", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"schedulerName": scheduler, "containers": [a_container()], **spec},
            },
        },
    }


def a_live_pod(name: str, *, scheduler: str = "stowplan", cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    spec = {"schedulerName": scheduler, "containers": [a_container(cpu)], "terminationGracePeriodSeconds": 0, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def a_container(cpu: str = "100m") -> dict[str, Any]:
    return {"name": "main", "image": "registry.example/main:1", "resources": {"requests": {"cpu": cpu}}}


def apply(cluster: Cluster, namespace: str, *documents: dict[str, Any]) -> None:
    text = "---\n".join(yaml.safe_dump(each) for each in documents)
    cluster.kubectl("-n", namespace, "apply", "-f", "-", input=text)


def pods(cluster: Cluster, namespace: str = "") -> list[dict[str, Any]]:
    path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
    items: list[dict[str, Any]] = cluster.api().must("GET", path)["items"]
    return items


def bound(cluster: Cluster, namespace: str) -> dict[str, str]:
    found = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods(cluster, namespace)}
    return {name: node for name, node in found.items() if node}


def wait_until_bound(cluster: Cluster, namespace: str, number: int, seconds: float = 120, explain: Any = str) -> None:
    until(f"{number} pods are bound", lambda: len(bound(cluster, namespace)) >= number, seconds, explain)


def noted(cluster: Cluster, namespace: str, name: str) -> list[str]:
    """What the pod is told by events."""
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    found = cluster.api().must("GET", path)["items"]
    return [
        each["note"] for each in found if each["regarding"]["name"] == name and each["reason"] == "FailedScheduling"
    ]


def condition(cluster: Cluster, namespace: str, name: str) -> dict[str, Any]:
    """Return a pod's PodScheduled condition; empty if it has none."""
    pod = cluster.api().must("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
    found = [each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    return found[0] if found else {}


def check_nothing_over_committed(cluster: Cluster) -> None:
    """Check that no node has more pods or requested cpu than it offers."""
    taken: dict[str, Counter[str]] = {}
    for document in pods(cluster):
        pod = kinds.decode(Pod, json.dumps(document))
        if pod.node_name and not pod.finished:
            counts = taken.setdefault(pod.node_name, Counter())
            counts.update({"pods": 1, "cpu": requested_by(pod).get("cpu", 0)})
    for node in cluster.api().must("GET", "/api/v1/nodes")["items"]:
        name, offered = node["metadata"]["name"], node["status"]["allocatable"]
        here = taken.get(name, Counter())
        assert here["pods"] <= int(offered["pods"]), f"{name} holds too many pods"
        assert here["cpu"] <= quantity.milli(offered["cpu"]), f"{name} is over-committed"
