"""The embedded cluster judged by the real one: the same kubectl commands, the same output; and by kube-scheduler.

Both clusters have three nodes and a real kube-scheduler. What differs by nature is masked, and what is known to
differ is in `tests.embedded.kubectl_script.DIFFERENCES`, with its reason: ten entries at most, each of them still
true.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane import build, flags, manifests
from tests.controlplane.api import Api
from tests.controlplane.cluster import Cluster
from tests.controlplane.fixtures import teller
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until
from tests.embedded.kubectl_features import Step
from tests.embedded.kubectl_script import DIFFERENCES, SCRIPT, comparable
from tests.embedded.running import EmbeddedCluster, served

pytestmark = pytest.mark.controlplane
NODES = 3
PATIENCE = 180.0  # seconds until an answer has what its step waits for
QUESTIONS = ("api-resources", "auth", "describe", "explain", "get")  # these may be asked again


@contextmanager
def scheduled(program: Path, cluster: Cluster) -> Iterator[None]:
    """kube-scheduler at work in a cluster that is not a `ControlPlane`."""
    connection = {"clientConnection": {"contentType": "application/json"}}
    kubeconfig = cluster.kubeconfig("scheduler")
    document = manifests.scheduler_configuration(connection, kubeconfig)
    config, port = cluster.folder / "scheduler.json", flags.free_port()
    config.write_text(json.dumps(document))
    arguments = [*flags.serving(port, cluster.folder), *flags.acting_as(kubeconfig), f"--config={config}"]
    with Program(program, arguments, cluster.folder / "kube-scheduler.log") as scheduler:
        scheduler.wait_until(lambda: Api(f"https://{flags.LOOPBACK}:{port}").answers("/readyz"))
        yield


@contextmanager
def embedded_cluster(config: pytest.Config, nodes: int, prefix: str = "node") -> Iterator[EmbeddedCluster]:
    """With nodes and kube-scheduler. It starts after them, so that it knows all of them when the first pod comes."""
    try:
        programs = build.programs(build.MAIN, teller(config))
    except build.CannotBuildError as reason:
        pytest.skip(f"no kubectl and no kube-scheduler: {reason}")
    with tempfile.TemporaryDirectory(prefix="stowplan-embedded-") as folder, served(rbac=True) as embedded:
        cluster = EmbeddedCluster(embedded, programs["kubectl"], Path(folder))
        with cluster.nodes(nodes, prefix), scheduled(programs["kube-scheduler"], cluster):
            yield cluster


def play(cluster: Cluster, namespace: str, node: str) -> list[tuple[int, str]]:
    """What kubectl says at each step, and with which code it ends."""
    environment = os.environ | {
        "KUBECONFIG": str(cluster.kubeconfig()), "KUBECACHEDIR": str(cluster.folder / "day"), "KUBERC": "off",
    }  # fmt: skip
    said = []
    assert all(step.command.split(" ")[0] in QUESTIONS for step in SCRIPT if step.shows)
    for step in SCRIPT:
        words = [word.replace("{node}", node).replace("{namespace}", namespace) for word in step.command.split(" ")]
        given = step.input.replace("{namespace}", namespace) if step.input else None
        command = [str(cluster._kubectl), *words, "--namespace", namespace]
        deadline = time.monotonic() + PATIENCE
        while True:
            done = subprocess.run(command, input=given, env=environment, capture_output=True, text=True, check=False)
            answer = done.stdout + done.stderr
            if step.shows in answer or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        said.append((done.returncode, answer))
    return said


@pytest.fixture(scope="module")
def days(plane: ControlPlane, request: pytest.FixtureRequest) -> list[tuple[Step, tuple[int, str], tuple[int, str]]]:
    """Each step with what the real and the embedded cluster made kubectl say."""
    # One namespace's name in both, so that the outputs can be compared.
    with plane.nodes(NODES, prefix="day") as nodes, plane.start_kube_scheduler(), plane.namespace("day") as namespace:
        real = play(plane, namespace, nodes[0])
    with embedded_cluster(request.config, NODES, "day") as cluster:
        cluster.api().must("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        embedded = play(cluster, namespace, nodes[0])
    return list(zip(SCRIPT, real, embedded, strict=True))


@pytest.mark.parametrize("number", range(len(SCRIPT)), ids=[f"{step.says}: {step.command}" for step in SCRIPT])
def test_kubectl_says_the_same(days: list[tuple[Step, tuple[int, str], tuple[int, str]]], number: int) -> None:
    step, real, embedded = days[number]
    assert (real[0] != 0) is step.fails, real[1]
    assert step.shows in real[1], "what is waited for never came"
    assert embedded[0] == real[0], embedded[1]
    assert comparable(step, embedded[1]) == comparable(step, real[1])


def test_every_known_difference_is_one(days: list[tuple[Step, tuple[int, str], tuple[int, str]]]) -> None:
    assert len(DIFFERENCES) <= 10
    for difference in DIFFERENCES:
        others = tuple(each for each in DIFFERENCES if each is not difference)
        assert any(
            comparable(step, embedded[1], others) != comparable(step, real[1], others) for step, real, embedded in days
        ), difference.reason


def test_kube_scheduler_fills_an_embedded_cluster(request: pytest.FixtureRequest) -> None:
    with embedded_cluster(request.config, 10) as cluster:
        cluster.kubectl("create", "deployment", "many", "--image=pause", "--replicas=200")
        cluster.kubectl("rollout", "status", "deployment/many", "--timeout=300s")
        pods = cluster.api().must("GET", "/api/v1/namespaces/default/pods")["items"]
        assert len(pods) == 200
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        until("the scheduler has told of each pod", lambda: _told(cluster) >= 200, PATIENCE)


def _told(cluster: Cluster) -> int:
    path = "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=reason%3DScheduled"
    return len(cluster.api().must("GET", path)["items"])
