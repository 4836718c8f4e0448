"""Preemption by a group: which pods are evicted, and that none is evicted in vain.

Four nodes of one core each are full of pods of lower priorities; then a group is created. In the embedded cluster and
on a real one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import MOSTLY_REAL
from tests.controlplane.pod_groups import HIGH, LOW, MIDDLE, coscheduling, gang, priority_classes, running, settled
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, a_live_pod, apply, condition, pods

CORES = 4


class Scene(NamedTuple):
    cluster: Cluster
    program: Stowplan


@pytest.fixture(scope="module", params=MOSTLY_REAL)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One scheduler for all of it."""
    found: Cluster = request.getfixturevalue(request.param)
    with (
        found.having(*priority_classes("PreemptLowerPriority")),
        found.nodes(CORES, prefix="gang", capacity={"cpu": "1"}),
        coscheduling(found, tmp_path_factory.mktemp("preemption")) as scheduler,
    ):
        yield Scene(found, scheduler.ready())


@pytest.fixture
def namespace(scene: Scene) -> Iterator[str]:
    with scene.cluster.namespace() as name:
        yield name


def singles(number: int, **spec: Any) -> list[dict[str, Any]]:
    """Pods of no gang that a budget can be about."""
    found = [a_live_pod(f"p{at}", cpu="1", **spec) for at in range(number)]
    for pod in found:
        pod["metadata"]["labels"] = {"app": "p"}
    return found


def whole(name: str, count: int, **spec: Any) -> list[dict[str, Any]]:
    return gang(name, count, cpu="1", **spec)


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "all-of-them"},
    "spec": {"minAvailable": CORES, "selector": {"matchLabels": {"app": "p"}}},
}


@pytest.mark.parametrize(
    ("there", "comes", "remain"),
    [
        pytest.param(singles(4, **LOW), whole("new", 3, **HIGH), [1], id="as many single pods as are in its way"),
        pytest.param(
            [*whole("a", 3, **MIDDLE), *singles(1, **LOW)],
            whole("new", 4, **HIGH),
            [],
            id="all there are if it takes all",
        ),
    ],
)
def test_who_goes_for_a_gang(
    scene: Scene, namespace: str, there: list[dict[str, Any]], comes: list[dict[str, Any]], remain: list[int]
) -> None:
    version = fill(scene, namespace, there)
    check_that_it_runs_and_who_goes(scene, namespace, version, comes, remain)


def test_a_whole_gang_goes_and_not_one_pod_of_each_of_two(scene: Scene, namespace: str) -> None:
    """One of each has come later than the others: pod by pod, those two would be the first to go."""
    cluster, there = scene.cluster, [*whole("a", 2, **LOW), *whole("b", 2, **LOW)]
    fill(scene, namespace, there)
    later = [there[1], there[3]]
    time.sleep(1.1)  # the start of a pod is known to the second
    names = [pod["metadata"]["name"] for pod in later]
    cluster.kubectl("-n", namespace, "delete", "pods", *names, "--force", "--grace-period=0")
    version = fill(scene, namespace, later)
    check_that_it_runs_and_who_goes(scene, namespace, version, whole("new", 2, **HIGH), [2])


def check_that_it_runs_and_who_goes(
    scene: Scene, namespace: str, version: str, comes: list[dict[str, Any]], remain: list[int]
) -> None:
    """All pods that were there and are not any more were marked as victims first."""
    cluster = scene.cluster
    before = {pod["metadata"]["name"] for pod in pods(cluster, namespace)}
    apply(cluster, namespace, *comes)
    until("it runs", lambda: running(cluster, namespace)["new"] == len(comes), 30, scene.program.explain)
    found = running(cluster, namespace)
    assert found.pop("new") == len(comes)
    assert list(found.values()) == remain
    gone = {pod["metadata"]["name"]: pod for pod in deleted_since(cluster, namespace, version)}
    assert gone.keys() == before - {pod["metadata"]["name"] for pod in pods(cluster, namespace)}
    for name, pod in gone.items():
        (target,) = (each for each in pod["status"]["conditions"] if each["type"] == "DisruptionTarget")
        assert (target["status"], target["reason"]) == ("True", "PreemptionByScheduler"), name


@pytest.mark.parametrize(
    ("budget", "size"),
    [
        pytest.param([BUDGET], 3, id="a budget protects those in its way"),
        pytest.param([], CORES + 1, id="it would not fit even without them"),
    ],
)
def test_nobody_goes_in_vain(scene: Scene, namespace: str, budget: list[dict[str, Any]], size: int) -> None:
    cluster = scene.cluster
    version = fill(scene, namespace, [*budget, *singles(CORES, **LOW)])
    before = running(cluster, namespace)
    apply(cluster, namespace, *whole("new", size, **HIGH))
    until(
        "it is told that it does not fit",
        lambda: "Pod group" in condition(cluster, namespace, "new-0").get("message", ""),
        30,
        scene.program.explain,
    )
    assert settled(cluster, namespace) == before
    assert not deleted_since(cluster, namespace, version)


def fill(scene: Scene, namespace: str, manifests: list[dict[str, Any]]) -> str:
    """All of them run; the version of the list after that."""
    apply(scene.cluster, namespace, *manifests)
    until(
        "the cluster is full",
        lambda: running(scene.cluster, namespace).total() == CORES,
        30,
        scene.program.explain,
    )
    found = scene.cluster.api().must("GET", f"/api/v1/namespaces/{namespace}/pods")
    return str(found["metadata"]["resourceVersion"])


def deleted_since(cluster: Cluster, namespace: str, version: str) -> list[dict[str, Any]]:
    """Pods that have gone since then, as they were at last."""
    path = f"/api/v1/namespaces/{namespace}/pods?watch=true&resourceVersion={version}&timeoutSeconds=1"
    events = [json.loads(line) for line in cluster.api().get(path).body.splitlines()]
    return [event["object"] for event in events if event["type"] == "DELETED"]
