"""Room that is nominated for groups and when the nomination ends; what gates a group, and what is left of an evicted
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec
import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.engine.unit import QueueStage
from stowplan.framework.config.settings import Extender
from stowplan.framework.decision import RejectPod
from stowplan.framework.interfaces import Wake
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects import kinds
from stowplan.objects.actions import Action, Ask, Bind, Evict
from stowplan.objects.changes import Result
from stowplan.objects.devices import DeviceClass
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import (
    MIN,
    NAME,
    a_pod_group,
    a_world,
    bound_in_part,
    created,
    evicted,
    gang,
    member,
    profiles,
    refuse_binding,
    running,
)

GROUP = "scheduling.x-k8s.io/pod-group"


def nominated_pods(world: World) -> dict[str, set[str]]:
    by_node = world.scheduler.state.nominated_pods.by_node
    return {node: {pod.name for pod in pods.values()} for node, pods in by_node.items()}


# -- room that is kept


def test_a_pod_that_could_evict_the_group_takes_the_room_of_its_missing_member() -> None:
    world = bound_in_part()
    world.submit(created(a_pod("vip", cpu=1, priority=9), 0))
    world.advance(30)
    assert world.pod("vip").node_name and not evicted(world) and running(world)["g"] == 2


def lose_the_others(world: World) -> None:
    world.delete(world.pod("g-0"), world.pod("g-1"))


@pytest.mark.parametrize("on_partial", ["Complete", "Evict"])
def test_a_gated_group_has_no_nomination(on_partial: str) -> None:
    world = bound_in_part(args={"onPartialBind": on_partial})
    if on_partial == "Complete":
        lose_the_others(world)
    world.submit(*(created(a_pod(f"vip-{at}", cpu=1, priority=9, preemptionPolicy="Never"), 5) for at in range(3)))
    world.advance(30)
    assert dict(world.scheduler.queue.stages())["default/g"] is QueueStage.GATED
    assert not nominated_pods(world) and all(world.pod(f"vip-{at}").node_name for at in range(3))


def test_a_group_with_too_few_pods_has_no_nomination() -> None:
    world = a_world(nodes=3)
    refuse_binding(world, "g-2")
    world.submit(a_pod_group("g", 3), *(member(f"g-{at}", {GROUP: "g"}) for at in range(3)))
    world.run()
    assert nominated_pods(world)
    world.submit(a_pod_group("g", 5))
    world.run()
    assert not nominated_pods(world)


def test_a_group_that_preempted_and_lost_a_member_has_no_nomination() -> None:
    world = a_world(nodes=2, graceful=True)
    world.submit(*(a_pod(f"low-{at}", cpu=1, node=f"n{at}") for at in range(2)))
    world.submit(*gang("g", 2, priority=9))
    world.run()
    assert len(nominated_pods(world)) == 2
    world.delete(world.pod("g-0"))
    world.run()
    assert not nominated_pods(world)


# -- who comes first


@pytest.mark.parametrize("preemption", [True, False])
def test_room_that_is_freed_while_a_group_backs_off_is_not_for_lower_priorities(preemption: bool) -> None:
    world = a_world(nodes=3, args={"preemption": preemption})
    world.submit(*gang("old", 2, priority=50))
    world.run()
    world.submit(created(a_pod("other", cpu=1, priority=50), 0))
    world.run()
    world.submit(*gang("g", 2, at=1, priority=9), *(created(a_pod(f"single-{at}", cpu=1), 1) for at in range(3)))
    world.advance(20)
    world.delete(world.pod("other"))
    world.run()
    world.advance(0.3)
    world.delete(world.pod("old-0"), world.pod("old-1"))
    world.advance(30)
    assert running(world)["g"] == 2 and not evicted(world)


def test_members_that_disagreed_with_older_ones_are_asked_again_when_those_are_deleted() -> None:
    world = a_world(nodes=3)
    world.submit(*gang("g", 2))
    world.run()
    world.submit(*gang("g", 3, first=5, at=1))
    world.advance(10)
    assert running(world) == {"g": 2}
    lose_the_others(world)
    world.advance(10)
    assert running(world) == {"g": 3}


class WithoutDevices:
    """Gates pods with the label `needs` as long as there is a device class."""

    reads = ("DeviceClass",)

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> RejectPod | None:
        return RejectPod(("there are devices",)) if "needs" in pod.labels and cluster.every(DeviceClass) else None

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("DeviceClass", ("Delete",))


def test_a_group_that_two_plugins_gate_is_requeued_by_either() -> None:
    ((name, profile),) = profiles().items()
    gates = (*profile.points["preEnqueue"], EnabledPlugin("WithoutDevices", WithoutDevices(), 1))
    named = {name: Profile(name, {**profile.points, "preEnqueue": gates})}
    world = World(nodes=["n0", "n1", "n2"], profiles=named)
    device = kinds.convert(DeviceClass, {"metadata": {"name": "gpu"}})
    world.submit(device, *gang("g", 1, 2, schedulingGates=[{"name": "x"}]))
    needy = a_pod("g-1", labels={NAME: "g", MIN: "2", "needs": "it"}, cpu=1)
    world.submit(created(needy, 1), *gang("g", 1, 2, first=2, at=1))
    world.advance(20)
    (unit,) = world.scheduler.queue.units.values()
    assert not unit.attempts
    world.delete(device)
    world.advance(20)
    assert unit.attempts


def test_a_member_that_is_created_while_extenders_are_asked_is_gated_too() -> None:
    world = a_world(
        nodes=3, extenders=(Extender(url_prefix="http://it", filter_verb="filter", node_cache_capable=True),)
    )
    asked: list[Ask] = []

    def answer(action: Action) -> Result | None:
        if isinstance(action, Ask):
            asked.append(action)
            return None
        return Result(action.id)

    world.answers = answer
    world.submit(*gang("g", 2))
    world.run()
    world.submit(*gang("g", 1, 2, first=2, at=1, schedulingGates=[{"name": "x"}]))
    for number in range(9):
        if number < len(asked):
            world.deliver_result(Result(asked[number].id, body={"NodeNames": list(asked[number].nodes)}))
            world.run()
    assert running(world) == {"g": 2} and not world.pod("g-2").node_name


# -- evictions that are refused


def refuse_evictions(*names: str) -> Callable[[Action], Result]:
    def answer(action: Action) -> Result:
        refused = isinstance(action, Evict) and action.pod.name in names
        return Result(action.id, 429, "a budget says no") if refused else Result(action.id)

    return answer


@pytest.mark.parametrize(
    ("refused", "left"),
    [
        pytest.param(["low-0", "low-1"], 2, id="no pod was evicted, so the rest runs on"),
        pytest.param(["low-0"], 0, id="the first one stays, and is too few"),
        pytest.param(["low-1"], 0, id="so is the second one"),
    ],
)
def test_the_rest_of_an_evicted_group(refused: list[str], left: int) -> None:
    world = a_world(nodes=2)
    world.submit(*gang("low", 2))
    world.run()
    world.answers = refuse_evictions(*refused)
    world.submit(*gang("vip", 2, at=3, priority=9))
    world.run()
    world.delete(world.pod("vip-0"), world.pod("vip-1"))
    world.answers = world.succeed
    world.advance(60)
    assert running(world).get("low", 0) == left


def test_a_group_without_a_minimum_is_not_evicted_as_a_whole() -> None:
    world = a_world(nodes=3)
    world.submit(a_pod_group("g", 1), *(member(f"g-{at}", {GROUP: "g"}) for at in range(4)))
    world.run()
    world.delete(a_pod_group("g", 1))
    world.run()
    world.submit(created(a_pod("vip", cpu=1, priority=9), 3))
    world.advance(30)
    assert len(evicted(world)) == 1 and world.pod("vip").node_name


# -- another configuration


@pytest.mark.parametrize("on_partial", ["Complete", "Evict"])
def test_a_new_configuration_does_not_change_a_group_that_is_being_bound(on_partial: str) -> None:
    world = a_world(nodes=3, args={"onPartialBind": on_partial})
    late: list[Bind] = []

    def answer(action: Action) -> Result | None:
        if isinstance(action, Bind) and action.pod.name != "g-0":
            late.append(action)
            return None
        return Result(action.id)

    world.answers = answer
    world.submit(*gang("g", 3))
    world.run()
    world.adopt(profiles({"onPartialBind": on_partial}))
    world.run()
    assert not evicted(world)
    world.answers = world.succeed
    for action in late:
        world.complete(action)
    world.advance(10)
    assert running(world) == {"g": 3}


def test_a_group_that_is_deleted_and_created_again_is_another_group() -> None:
    """The old pods are still terminating; the new group was never whole."""
    world = a_world(nodes=3, args={"matchPolicy": "once-satisfied"})
    world.submit(*gang("g", 2))
    world.run()
    for name in ("g-0", "g-1"):
        pod = world.pod(name)
        leaving = msgspec.structs.replace(pod.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
        world.submit(msgspec.structs.replace(pod, metadata=leaving))
    world.submit(*gang("g", 2, first=5, at=2))
    world.advance(60)
    assert not world.pod("g-5").node_name and not world.pod("g-6").node_name, "there is room for one of them only"
