"""The short set for servers of other versions: rights, pods, conditions and events, explain, groups, placements.

The other tests run on the main version. Those that take `ON_EACH_SERVER` run on these servers, too, in the long run.
Here kube-apiserver and etcd run alone: a bare machine builds one program of each version, and not two. So pods are
created one by one, and nobody plays the kubelets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import build, deployed_placement, pod_groups
from tests.controlplane.deployed import DEPLOY, Deployed, check_no_limit_met, configuration, deployed, reader_of
from tests.controlplane.fixtures import running
from tests.controlplane.place_process import Hub, a_taint
from tests.controlplane.plane import ControlPlane
from tests.controlplane.pod_groups import gang, settled
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import a_live_pod, apply, bound, condition, noted, wait_until_bound
from tests.controlplane.waiting_pods import explained

pytestmark = pytest.mark.controlplane
OTHERS = [each for each in build.VERSIONS if each != build.MAIN]
NAMES = [f"on Kubernetes {build.minor(each)}" for each in OTHERS]


@pytest.fixture(scope="module", params=OTHERS, ids=NAMES)
def server(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    yield from running(request.param, request.config, benchmark=True)


@pytest.fixture
def namespace(server: ControlPlane) -> Iterator[str]:
    with server.namespace() as name:
        yield name
    server.check()


def test_it_is_that_version_and_takes_the_manifests(server: ControlPlane) -> None:
    says = server.api().get("/version").json()["gitVersion"]
    assert says == f"v{server.version}"
    said = server.kubectl("apply", "--dry-run=server", "--kustomize", str(DEPLOY))
    assert "deployment.apps/stowplan created (server dry run)" in said


@pytest.fixture
def scheduler(server: ControlPlane, tmp_path: Path) -> Iterator[Deployed]:
    """With the rights and the configuration of `deploy/`."""
    with deployed(server, tmp_path, configuration()) as found:
        yield found
        check_no_limit_met(found.program.log)


def test_pods_are_bound_with_the_rights_of_deploy_and_have_events(scheduler: Deployed, namespace: str) -> None:
    plane, tell = scheduler.plane, scheduler.program.tail
    with plane.nodes(3, capacity={"pods": "2"}) as nodes:
        apply(plane, namespace, *(a_live_pod(f"web-{at}") for at in range(6)))
        wait_until_bound(plane, namespace, 6, explain=tell)
        found = bound(plane, namespace)
        assert sorted(found.values()) == sorted(2 * nodes), "each node has room for two"
        until("each has its event", lambda: told_of_their_nodes(plane, namespace) == found.keys(), 30, tell)


def gone(plane: ControlPlane, namespace: str, name: str) -> None:
    """At once: no kubelet says that it has stopped."""
    plane.kubectl("delete", "pod", name, "-n", namespace, "--grace-period=0", "--force")


def told_of_their_nodes(plane: ControlPlane, namespace: str) -> set[str]:
    found = plane.api().must("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return {each["regarding"]["name"] for each in found if each["reason"] == "Scheduled"}


def test_a_pod_without_a_node_says_why_and_explain_says_the_same(scheduler: Deployed, namespace: str) -> None:
    plane, tell = scheduler.plane, scheduler.program.tail
    why = "0/1 nodes are available: 1 Insufficient cpu."
    with plane.nodes(1, capacity={"cpu": "1"}) as [node]:
        apply(plane, namespace, a_live_pod("first", cpu="800m"))
        wait_until_bound(plane, namespace, 1, explain=tell)
        apply(plane, namespace, a_live_pod("second", cpu="800m"))
        until("its event says why", lambda: any(why in each for each in noted(plane, namespace, "second")), 30, tell)
        says = condition(plane, namespace, "second")
        assert (says["status"], says["reason"]) == ("False", "Unschedulable") and why in says["message"]
        answer, shown = explained(reader_of(plane), "second", "-n", namespace)
        assert answer["message"] == says["message"], shown
        assert [each["code"] for group in answer["causes"] for each in group["causes"]] == ["insufficient"]
        gone(plane, namespace, "first")
        until("it has the room", lambda: bound(plane, namespace) == {"second": node}, 60, tell)


def test_a_gang_waits_whole_and_runs_whole(server: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """By labels: the PodGroup of Kubernetes itself is newer than some of these servers."""
    server.kubectl("apply", "--filename", str(DEPLOY / "profiles" / "kubenexus-scheduler" / "rbac.yaml"))
    config = pod_groups.configuration(lease=True)
    with server.nodes(1, prefix="gang", capacity={"cpu": "3"}), deployed(server, tmp_path, config) as found:
        tell = found.program.tail
        apply(server, namespace, a_live_pod("before", cpu="1"))
        wait_until_bound(server, namespace, 1, explain=tell)
        apply(server, namespace, *gang("a", 3, cpu="1"))
        until("it is told that it waits", lambda: noted(server, namespace, "a-0"), 30, tell)
        assert dict(settled(server, namespace)) == {"before": 1}, "two would fit, and none is bound"
        gone(server, namespace, "before")
        until("it runs", lambda: bound(server, namespace).keys() == {"a-0", "a-1", "a-2"}, 30, tell)
        check_no_limit_met(found.program.log)


def test_a_placement_gets_its_clusters(server: ControlPlane, namespace: str, tmp_path: Path) -> None:
    rights, run = tmp_path / "rights", tmp_path / "run"
    with (
        deployed_placement.granted(server, made(rights)),
        deployed_placement.running(server, made(run)) as (_, program),
    ):
        hub = Hub(server, namespace, program.tail)
        hub.a_cluster("small", cpu=(2, 10), memory=(10, 100))
        hub.a_cluster("large", cpu=(9, 10), memory=(90, 100))
        hub.bind()
        hub.place(numberOfClusters=2)
        hub.gets("large", "small")
        assert hub.says("PlacementSatisfied", "True", "AllDecisionsScheduled")
        hub.taint("small", a_taint("away", "NoSelect"))
        hub.gets("large")
        hub.tidy()
        server.api().must("DELETE", hub.path("placements"))


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder
