"""deploy/profiles/kubenexus-scheduler: gangs, reservations and what is seen of them, with the rights of that folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import EVERYWHERE
from tests.controlplane.deployed import DEPLOY, Deployed, check_no_limit_met, deployed
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until
from tests.controlplane.spark import Spark, a_driver
from tests.controlplane.stowplan_process import a_live_pod, apply, bound, condition, noted, stowplan

FOLDER, CRDS = DEPLOY / "profiles" / "kubenexus-scheduler", DEPLOY / "crds" / "kubenexus"
NAME, GROUP = "kubenexus-scheduler", "pod-group.scheduling.kubenexus.io"
API = "/apis/scheduling.x-k8s.io/v1alpha1"


class Scene:
    """A cluster where the profile is at work, its pages and its log."""

    def __init__(self, cluster: Cluster, program: Program, page: Callable[[str], str]) -> None:
        self.cluster, self.program, self.page = cluster, program, page

    def groups(self, namespace: str) -> dict[str, dict[str, Any]]:
        items = json.loads(self.page("/debug/podgroups"))["items"]
        return {each["name"]: each for each in items if each["namespace"] == namespace}

    def counts(self, *lines: str) -> bool:
        """Whether the metrics have all of these."""
        text = self.page("/metrics")
        return all(line in text for line in lines)

    def said(self, text: str) -> bool:
        return text in self.program.log.read_text(encoding="utf-8")

    def explain(self, *_: object) -> str:
        return self.program.tail(40)


@pytest.fixture(params=EVERYWHERE)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    found: Cluster = request.getfixturevalue(request.param)
    config, loud = FOLDER / "config.yaml", ("--v=4",)
    with ExitStack() as stack:
        if not isinstance(found, ControlPlane):
            program = stack.enter_context(stowplan(found, "kubenexus", "--config", str(config), *loud))
            program.wait_until_leading()
            yield Scene(found, program, program.page)
            return
        for what in (("--filename", "rbac.yaml"), ("--filename", "reservations-rbac.yaml")):
            file = str(FOLDER / what[1])
            found.kubectl("apply", what[0], file)
            stack.callback(found.kubectl, "delete", what[0], file)
        define(found)
        stack.callback(found.kubectl, "delete", "--kustomize", str(CRDS))
        running = stack.enter_context(deployed(found, tmp_path, yaml.safe_load(config.read_text()), loud))
        yield Scene(found, running.program, lambda path: admitted(running, path))
        check_no_limit_met(running.program.log)


def define(cluster: Cluster) -> None:
    cluster.kubectl("apply", "--kustomize", str(CRDS))
    for name in ("podgroups.scheduling.x-k8s.io", "resourcereservations.scheduling.kubenexus.io"):
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", f"crd/{name}")


def admitted(running: Deployed, path: str) -> str:
    """What an administrator sees; others see nothing."""
    assert running.page(path)[0] == 403
    status, text = running.page(path, running.plane.tokens["admin"])
    assert status == 200, text
    return text


@pytest.fixture
def namespace(scene: Scene) -> Iterator[str]:
    with scene.cluster.namespace() as name:
        yield name


def members(name: str, count: int, **labels: str) -> list[dict[str, Any]]:
    found = [a_live_pod(f"{name}-{at}", scheduler=NAME) for at in range(count)]
    for pod in found:
        pod["metadata"]["labels"] = labels
    return found


def named(name: str, minimum: int) -> dict[str, str]:
    return {f"{GROUP}/name": name, f"{GROUP}/min-available": str(minimum)}


def count(scene: Scene, namespace: str, prefix: str) -> int:
    return sum(name.startswith(prefix) for name in bound(scene.cluster, namespace))


def test_a_gang_by_labels(scene: Scene, namespace: str) -> None:
    pods = members("job", 3, **named("job", 3))
    with scene.cluster.nodes(2, prefix="nexus"):
        apply(scene.cluster, namespace, *pods[:2])
        waits = "pod group {}: 2 of 3 pods exist"
        said = waits.format(f"{namespace}/job")
        until("it waits", lambda: said in noted(scene.cluster, namespace, "job-0"), 60, scene.explain)
        assert not condition(scene.cluster, namespace, "job-0"), "not Unschedulable, for autoscalers"
        page = lambda: str(scene.groups(namespace))  # noqa: E731
        until("the page says so", lambda: shown(scene, namespace) == (3, 0, 2), 60, page)
        apply(scene.cluster, namespace, pods[2])
        until("it runs", lambda: count(scene, namespace, "job") == 3, 60, scene.explain)
        until("it is told", lambda: shown(scene, namespace) == (3, 3, 0), 60, page)
        found = scene.groups(namespace)["job"]
        assert found["timestamp"] <= found["lastUpdateTime"]
        wanted = (
            f'kubenexus_pod_group_size_count{{namespace="{namespace}"}} 1.0',
            'kubenexus_scheduling_attempts_total{plugin="Coscheduling",result="scheduled"} 1.0',
            "kubenexus_gang_wait_duration_seconds_count 1.0",
        )
        until("the figures say so", lambda: scene.counts(*wanted), 60, lambda: scene.page("/metrics"))
        for line in ("Pod group waits", "Pod group has its nodes", "Pod group is complete", "Successfully bound pod"):
            until(f"the log has {line}", lambda line=line: scene.said(f'"{line}'), 60, scene.explain)  # type: ignore[misc]


def shown(scene: Scene, namespace: str) -> tuple[int, int, int]:
    """How many must be placed together, how many have a node and how many wait, by the page."""
    found = scene.groups(namespace)["job"]
    return found["minAvailable"], found["scheduledPods"], found["waitingPods"]


def test_a_gang_by_its_object(scene: Scene, namespace: str) -> None:
    """Its status is written, which takes a right of its own."""
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"minMember": 3, "scheduleTimeoutSeconds": 20, "minResources": {"cpu": "100m"}},
    }

    def status() -> dict[str, Any]:
        found = scene.cluster.api().must("GET", f"{API}/namespaces/{namespace}/podgroups/train")
        return dict(found.get("status", {}))

    with scene.cluster.nodes(2, prefix="nexus"):
        apply(scene.cluster, namespace, *members("train", 3, **{"scheduling.x-k8s.io/pod-group": "train"}))
        missing = f"PodGroup {namespace}/train of scheduling.x-k8s.io does not exist"
        until(
            "they wait for it",
            lambda: any(missing in each for each in noted(scene.cluster, namespace, "train-0")),
            60,
            scene.explain,
        )
        apply(scene.cluster, namespace, group)
        until("it runs", lambda: count(scene, namespace, "train") == 3, 60, scene.explain)
        until(
            "its status says so",
            lambda: (status().get("phase"), status().get("running")) == ("Running", 3),
            60,
            lambda: str(status()),
        )
        assert "train" in scene.cluster.kubectl("-n", namespace, "get", "pg"), "by its short name"
        refused = {**group, "metadata": {"name": "none"}, "spec": {"minMember": 0}}
        answer = scene.cluster.api().ask("POST", f"{API}/namespaces/{namespace}/podgroups", refused)
        assert answer.status == 422 and b"spec.minMember" in answer.body


def test_a_spark_application(scene: Scene, namespace: str) -> None:
    with scene.cluster.nodes(2, prefix="nexus", capacity={"cpu": "4"}), Spark(scene.cluster, namespace):
        apply(scene.cluster, namespace, a_driver("pi", NAME, 3))
        until("all have a node", lambda: count(scene, namespace, "pi") == 4, 120, scene.explain)
        metric = f'kubenexus_resource_reservations{{namespace="{namespace}"}} 1.0'
        tried = 'kubenexus_scheduling_attempts_total{plugin="ResourceReservation",result="scheduled"} 1.0'
        until("it is counted", lambda: scene.counts(metric, tried), 60, lambda: scene.page("/metrics"))
        scene.cluster.kubectl("-n", namespace, "delete", "pod", "pi-driver", "--now")
        until("it is not any more", lambda: metric not in scene.page("/metrics"), 60, scene.explain)


@pytest.mark.controlplane
def test_a_server_takes_the_manifests(plane: ControlPlane, tmp_path: Path) -> None:
    """As their comment says."""
    line = "components: [profiles/kubenexus-scheduler]\n"
    assert line.strip() in (FOLDER / "kustomization.yaml").read_text(encoding="utf-8")
    folder = tmp_path / "deploy"
    shutil.copytree(DEPLOY, folder)
    with (folder / "kustomization.yaml").open("a", encoding="utf-8") as file:
        file.write(line)
    said = plane.kubectl("apply", "--dry-run=server", "--kustomize", str(folder))
    for name in ("podgroups.scheduling.x-k8s.io", "resourcereservations.scheduling.kubenexus.io"):
        assert f"customresourcedefinition.apiextensions.k8s.io/{name}" in said
    rendered = list(yaml.safe_load_all(plane.kubectl("kustomize", str(folder))))
    (config,) = (each["data"] for each in rendered if each["kind"] == "ConfigMap")
    assert config == {"config.yaml": (FOLDER / "config.yaml").read_text(encoding="utf-8")}
    roles = {each["metadata"]["name"] for each in rendered if each["kind"] == "ClusterRole"}
    assert roles == {"stowplan", "stowplan:coscheduling", "stowplan:resource-reservation"}
