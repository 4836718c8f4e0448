"""Gangs by Kubernetes' own PodGroup (1.36: v1alpha2, 1.37: v1beta1), with the rights of deploy/ alone.

Each server is one of its own: on those of the other tests the feature gates are closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.controlplane import build, flags
from tests.controlplane.deployed import DEPLOY, Deployed, deployed
from tests.controlplane.fixtures import running
from tests.controlplane.plane import ControlPlane
from tests.controlplane.pod_groups import HIGH, LOW, configuration, priority_classes, settled
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import a_live_pod, apply, bound, condition, noted

pytestmark = pytest.mark.controlplane

VERSIONS = [
    pytest.param(build.MAIN, id="on Kubernetes 1.36"),
    pytest.param(build.NEXT, id="on Kubernetes 1.37", marks=pytest.mark.full),
]
RIGHTS = str(DEPLOY / "profiles" / "kubenexus-scheduler" / "rbac.yaml")


@pytest.fixture(scope="module", params=VERSIONS)
def scheduler(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder, room = tmp_path_factory.mktemp("native"), {"cpu": "2"}
    with own_plane(request.param, request.config) as plane, plane.nodes(2, prefix="gang", capacity=room):
        plane.kubectl("apply", "--filename", RIGHTS)
        with deployed(plane, folder, configuration(lease=True)) as found:
            yield found
        # A terminating namespace forbids bindings, too; that is not about rights.
        assert "forbidden: user" not in found.program.log.read_text(encoding="utf-8").lower()


@contextmanager
def own_plane(version: str, config: pytest.Config) -> Iterator[ControlPlane]:
    yield from running(version, config, pod_groups=True)


@pytest.fixture
def namespace(scheduler: Deployed) -> Iterator[str]:
    with scheduler.plane.namespace() as name:
        yield name


def a_group(plane: ControlPlane, name: str, policy: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": flags.POD_GROUP_APIS[plane.version],
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def members(name: str, count: int, **spec: Any) -> list[dict[str, Any]]:
    named = {"podGroupName": name}
    return [a_live_pod(f"{name}-{at}", cpu="1", schedulingGroup=named, **spec) for at in range(count)]


def test_it_runs_whole_once_its_object_and_its_pods_are_there(scheduler: Deployed, namespace: str) -> None:
    plane, tell = scheduler.plane, scheduler.program.tail
    pods = members("a", 3)
    apply(plane, namespace, *pods[:2])
    wait_until_told(scheduler, namespace, "a-0", f"PodGroup {namespace}/a of scheduling.k8s.io does not exist")
    apply(plane, namespace, a_group(plane, "a", {"gang": {"minCount": 3}}))
    wait_until_told(scheduler, namespace, "a-0", f"pod group {namespace}/a: 2 of 3 pods exist")
    assert not condition(plane, namespace, "a-0"), "as with kube-scheduler: no autoscaler adds nodes for it"
    apply(plane, namespace, pods[2])
    until("it runs", lambda: bound(plane, namespace).keys() == {"a-0", "a-1", "a-2"}, 30, tell)
    group_says(scheduler, namespace, "a", "True", "3 of 3 pods have a node")


def test_kube_scheduler_itself_writes_nothing_for_a_gang_that_waits_for_pods(
    scheduler: Deployed, namespace: str
) -> None:
    """What ours is compared with: no condition, so that no autoscaler adds nodes."""
    plane = scheduler.plane
    if plane.version != build.MAIN:
        pytest.skip(f"kube-scheduler is built at {build.MAIN} alone, which does not know this PodGroup")
    with plane.start_kube_scheduler() as program:
        apply(plane, namespace, a_group(plane, "k", {"gang": {"minCount": 3}}))
        apply(plane, namespace, *members("k", 2, scheduler="default-scheduler"))
        apply(plane, namespace, a_live_pod("single", cpu="1", scheduler="default-scheduler"))
        until("a pod after it runs", lambda: "single" in bound(plane, namespace), 60, program.tail)
        assert not condition(plane, namespace, "k-0") and not noted(plane, namespace, "k-0")


def test_it_waits_whole_until_there_is_room_for_all(scheduler: Deployed, namespace: str) -> None:
    plane, tell = scheduler.plane, scheduler.program.tail
    apply(plane, namespace, *(a_live_pod(f"single-{at}", cpu="1") for at in range(2)))
    until("both run", lambda: len(bound(plane, namespace)) == 2, 30, tell)
    apply(plane, namespace, a_group(plane, "b", {"gang": {"minCount": 3}}), *members("b", 3))
    wait_until_told(scheduler, namespace, "b-0", f"Pod group {namespace}/b")
    group_says(scheduler, namespace, "b", "False", "0 of 3 pods have a node; pod b-")
    assert settled(plane, namespace).keys() == {"single-0", "single-1"}, "none of it is bound though two would fit"
    plane.kubectl("-n", namespace, "delete", "pod", "single-0", "--now")
    until("it runs", lambda: bound(plane, namespace).keys() == {"single-1", "b-0", "b-1", "b-2"}, 30, tell)


def test_the_basic_policy_asks_for_nothing(scheduler: Deployed, namespace: str) -> None:
    plane = scheduler.plane
    apply(plane, namespace, a_group(plane, "c", {"basic": {}}), *members("c", 5))
    until("as many as there is room for run", lambda: len(bound(plane, namespace)) == 4, 30, scheduler.program.tail)


def test_all_its_pods_preempt_and_the_victims_are_told_by_whom(scheduler: Deployed, namespace: str) -> None:
    plane, tell = scheduler.plane, scheduler.program.tail
    apply(plane, namespace, *priority_classes("PreemptLowerPriority"))
    apply(plane, namespace, *(a_live_pod(f"low-{at}", cpu="1", **LOW) for at in range(4)))
    until("all run", lambda: len(bound(plane, namespace)) == 4, 30, tell)
    apply(plane, namespace, a_group(plane, "d", {"gang": {"minCount": 3}}, **HIGH), *members("d", 4, **HIGH))
    until("the fourth runs, too", lambda: bound(plane, namespace).keys() == {f"d-{at}" for at in range(4)}, 30, tell)
    uid = plane.api().must("GET", path_of(scheduler, namespace, "d"))["metadata"]["uid"]
    note = f"Preempted by podgroup {uid} on node cluster"
    until("each is told", lambda: preempted(plane, namespace) == {f"low-{at}": note for at in range(4)}, 30, tell)


def test_a_group_that_is_disrupted_only_as_a_whole(scheduler: Deployed, namespace: str) -> None:
    plane, tell = scheduler.plane, scheduler.program.tail
    mode = "PodGroup" if plane.version == build.MAIN else {"all": {}}
    apply(plane, namespace, *priority_classes("PreemptLowerPriority"))
    apply(plane, namespace, a_group(plane, "e", {"basic": {}}, disruptionMode=mode, **LOW), *members("e", 4, **LOW))
    until("all run", lambda: len(bound(plane, namespace)) == 4, 30, tell)
    apply(plane, namespace, a_group(plane, "f", {"gang": {"minCount": 1}}, **HIGH), *members("f", 1, **HIGH))
    until("only it runs", lambda: bound(plane, namespace).keys() == {"f-0"}, 30, tell)
    assert settled(plane, namespace).keys() == {"f-0"}


def preempted(plane: ControlPlane, namespace: str) -> dict[str, str]:
    """What each pod was told about its preemption."""
    found = plane.api().must("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return {each["regarding"]["name"]: each["note"] for each in found if each["reason"] == "Preempted"}


def path_of(scheduler: Deployed, namespace: str, name: str) -> str:
    return f"/apis/{flags.POD_GROUP_APIS[scheduler.plane.version]}/namespaces/{namespace}/podgroups/{name}"


def group_says(scheduler: Deployed, namespace: str, name: str, status: str, words: str) -> None:
    """Its own condition PodGroupScheduled."""
    path = path_of(scheduler, namespace, name)

    def found() -> dict[str, Any]:
        conditions = scheduler.plane.api().must("GET", path).get("status", {}).get("conditions", ())
        return next((each for each in conditions if each["type"] == "PodGroupScheduled"), {})

    def as_expected() -> bool:
        return found().get("status") == status and words in found().get("message", "")

    until(f"{name} says {status}", as_expected, 60, lambda: f"{found()}\n{scheduler.program.tail()}")


def wait_until_told(scheduler: Deployed, namespace: str, name: str, words: str) -> None:
    until(
        f"{name} is told: {words}",
        lambda: any(words in each for each in noted(scheduler.plane, namespace, name)),
        30,
        scheduler.program.tail,
    )
