"""GangScheduling: kube-scheduler's name for gangs by Kubernetes' own PodGroup."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.actions import Patch
from stowplan.objects.kinds import convert
from stowplan.objects.pod_groups import PodGroup
from stowplan.testing.builders import a_node, a_pod, a_profile
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import MIN, NAME, a_kubernetes_group


def a_world(nodes: int = 3) -> World:
    profile = a_profile("profiles: [{plugins: {multiPoint: {enabled: [{name: GangScheduling}]}}}]")
    return World(nodes=[a_node(f"n{at}", cpu=1) for at in range(nodes)], profiles={"default-scheduler": profile})


def member(name: str, **more: Any) -> Any:
    return a_pod(name, cpu=1, schedulingGroup={"podGroupName": "own"}, **more)


def bound(world: World) -> set[str]:
    return {pod.name for pod in world.pods() if pod.node_name}


def message(world: World, name: str) -> str:
    found = world.pod(name).condition("PodScheduled")
    return "" if found is None else found.message


def test_pods_wait_for_their_pod_group_and_for_each_other() -> None:
    world = a_world()
    world.submit(member("a"), member("b"))
    world.advance(5)
    assert not bound(world)
    assert "PodGroup default/own of scheduling.k8s.io does not exist" in world.event_notes("a")[-1]
    world.submit(a_kubernetes_group("own", 3))
    world.advance(5)
    assert not bound(world) and "2 of 3 pods exist" in world.event_notes("a")[-1]
    assert world.pod("a").condition("PodScheduled") is None, "as with kube-scheduler"
    world.submit(member("c"))
    world.advance(5)
    assert bound(world) == {"a", "b", "c"}


def test_labels_define_no_group() -> None:
    world = a_world()
    world.submit(a_pod("alone", cpu=1, labels={NAME: "g", MIN: "3"}))
    world.advance(5)
    assert bound(world) == {"alone"}


def test_the_pod_group_gets_its_condition() -> None:
    world = a_world()
    world.submit(a_kubernetes_group("own", 2), member("a"), member("b"))
    world.advance(5)
    (patch,) = (each for each in world.actions if isinstance(each, Patch))
    assert isinstance(patch.body, dict) and patch.body["status"]["conditions"][0]["status"] == "True"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param("Pod", "Pod", id="1.36: one by one"),
        pytest.param("PodGroup", "PodGroup", id="1.36: all together"),
        pytest.param({"single": {}}, "Pod", id="1.37: one by one"),
        pytest.param({"all": {}}, "PodGroup", id="1.37: all together"),
        pytest.param({}, "", id="1.37: neither"),
        pytest.param("Later", "", id="a mode of a later version"),
        pytest.param({"later": {}}, "", id="a mode of a later version as an object"),
        pytest.param(None, "", id="nothing"),
    ],
)
def test_the_disruption_mode_of_each_version(mode: Any, expected: str) -> None:
    spec = {"schedulingPolicy": {"basic": {}}, "disruptionMode": mode}
    assert convert(PodGroup, {"metadata": {"name": "g"}, "spec": spec}).disruption == expected
