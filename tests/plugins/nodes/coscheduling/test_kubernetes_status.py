"""What Kubernetes' own PodGroup is told about itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.objects.actions import Bind, Patch
from stowplan.objects.changes import Result
from stowplan.objects.meta import Condition
from stowplan.objects.pod_groups import PodGroup, PodGroupSpec
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import a_kubernetes_group, a_world

DISRUPTED = Condition("DisruptionTarget", "False", "Nothing", "")


def pods(count: int, **more: Any) -> list[Pod]:
    return [a_pod(f"p{at}", cpu=1, schedulingGroup={"podGroupName": "own"}, **more) for at in range(count)]


def conditions(world: World) -> dict[str, Condition]:
    found = world.objects["PodGroup", "default/own"]
    assert isinstance(found, PodGroup)
    return {each.type: each for each in found.status.conditions}


def patches(world: World) -> int:
    return sum(isinstance(action, Patch) for action in world.actions)


def test_a_gang_that_is_scheduled() -> None:
    world = a_world(nodes=3)
    world.submit(a_kubernetes_group("own", 3), *pods(3))
    world.advance(3)
    told = conditions(world)["PodGroupScheduled"]
    assert (told.status, told.reason, told.message) == ("True", "Scheduled", "3 of 3 pods have a node")
    world.delete(world.pod("p0"))
    world.advance(30)
    assert conditions(world)["PodGroupScheduled"].status == "True" and patches(world) == 1


def test_a_gang_that_waits_for_members_then_does_not_fit_then_does() -> None:
    world = a_world(nodes=2)
    world.submit(a_kubernetes_group("own", 3), *pods(2))
    world.advance(5)
    assert not conditions(world), "as with kube-scheduler: no attempt, no condition"
    world.submit(*pods(3)[2:])
    world.advance(30)
    told, before = conditions(world)["PodGroupScheduled"], patches(world)
    assert (told.status, told.reason) == ("False", "Unschedulable")
    assert told.message.startswith("0 of 3 pods have a node; pod p2: 0/2 nodes are available: 2 Insufficient cpu.")
    assert told.message.endswith("Pod group default/own: 2 of 3 pods tried found a node, 3 of 3 must.")
    world.advance(600)
    assert patches(world) == before, "nothing new"
    world.submit(a_node("n2", cpu=1))
    world.advance(20)
    assert conditions(world)["PodGroupScheduled"].status == "True"


def test_something_that_went_wrong_is_told_as_such() -> None:
    world = a_world(nodes=3)
    world.answers = lambda action: Result(action.id, 500, "no") if isinstance(action, Bind) else Result(action.id)
    world.submit(a_kubernetes_group("own", 3), *pods(3))
    world.advance(3)
    told = conditions(world)["PodGroupScheduled"]
    assert told.reason == "SchedulerError" and "pod p0: binding rejected: no." in told.message


def test_other_conditions_stay() -> None:
    world = a_world(nodes=3)
    group = a_kubernetes_group("own", 3)
    world.submit(msgspec.structs.replace(group, status=msgspec.structs.replace(group.status, conditions=(DISRUPTED,))))
    world.submit(*pods(3))
    world.advance(3)
    assert set(conditions(world)) == {"DisruptionTarget", "PodGroupScheduled"}
    assert conditions(world)["DisruptionTarget"] == DISRUPTED


@pytest.mark.parametrize(
    ("group", "more"),
    [
        pytest.param(a_kubernetes_group("own", 3), {"schedulerName": "another"}, id="of another scheduler"),
        pytest.param(msgspec.structs.replace(a_kubernetes_group("own", 1), spec=PodGroupSpec()), {}, id="no gang"),
    ],
)
def test_groups_that_are_none_of_ours(group: PodGroup, more: dict[str, Any]) -> None:
    world = a_world(nodes=3)
    world.submit(group, *pods(3, **more))
    world.advance(30)
    assert not conditions(world)


def test_the_object_may_come_after_its_pods() -> None:
    world = a_world(nodes=3)
    world.submit(*pods(2))
    world.advance(5)
    world.submit(a_kubernetes_group("own", 2))
    world.advance(15)
    assert conditions(world)["PodGroupScheduled"].status == "True"
