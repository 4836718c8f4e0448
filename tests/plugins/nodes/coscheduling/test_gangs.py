"""Gangs over time: they wait for their members, start together or not at all, lose members, grow and age."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.engine.unit import QueueStage
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import (
    GROUP,
    MIN,
    NAME,
    a_pod_group,
    a_world,
    created,
    gang,
    member,
    running,
)


def test_a_gang_waits_for_its_members_and_is_told_so() -> None:
    world = a_world(nodes=3)
    first, *rest = gang("g", 3)
    world.submit(first)
    world.advance(5)
    assert not world.bindings
    assert world.event_notes("g-0") == ["pod group default/g: 1 of 3 pods exist"]
    assert world.pod("g-0").condition("PodScheduled") is None
    world.submit(*rest)
    world.run()
    assert running(world) == {"g": 3}


def unschedulable(world: World) -> set[str]:
    """The pods for which an autoscaler would add nodes."""
    told = ((pod, pod.condition("PodScheduled")) for pod in world.pods() if not pod.node_name)
    return {pod.name for pod, each in told if each is not None and each.reason == "Unschedulable"}


def test_an_autoscaler_adds_nodes_for_a_gang_that_does_not_fit_and_not_for_one_that_is_incomplete() -> None:
    world = a_world(nodes=2)
    *most, last = gang("g", 3)
    world.submit(*most)
    world.advance(20)
    assert not unschedulable(world)
    world.submit(last)
    world.advance(20)
    assert unschedulable(world) == {"g-0", "g-1", "g-2"}
    world.delete(world.pod("g-2"))
    world.advance(20)
    assert not unschedulable(world), "it waits for a pod again, not for room"
    told = world.pod("g-0").condition("PodScheduled")
    assert told is not None and (told.status, told.reason) == ("False", "SchedulingGated")
    assert told.message == "pod group default/g: 2 of 3 pods exist"
    world.submit(last)
    world.advance(20)
    assert unschedulable(world) == {"g-0", "g-1", "g-2"}


def test_a_pod_with_a_scheduling_gate_keeps_the_api_servers_condition() -> None:
    world = a_world(nodes=3)
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "by the API server"}
    *most, _ = gang("g", 3, schedulingGates=[{"name": "wait"}], status={"conditions": [gated]})
    world.submit(*most)
    world.advance(20)
    told = world.pod("g-0").condition("PodScheduled")
    assert told is not None and told.message == "by the API server"


def test_a_burst_of_members_is_told_once() -> None:
    world = a_world(nodes=30)
    for each in gang("g", 20, needed=30):
        world.submit(each)
        world.advance(0.1)
    world.advance(5)
    assert all(world.event_notes(f"g-{at}") == ["pod group default/g: 20 of 30 pods exist"] for at in range(20))


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        pytest.param({"needed": 2}, "pod group default/g needs 3 pods, but this pod says 2", id="another number"),
        pytest.param({"priority": 7}, "pod group default/g has priority 0, but this pod has 7", id="another priority"),
    ],
)
def test_members_must_agree(odd: dict[str, Any], says: str) -> None:
    world = a_world(nodes=4)
    needed = odd.pop("needed", 3)
    world.submit(*gang("g", 2, 3), *gang("g", 1, needed, first=2, at=1, **odd))
    world.advance(5)
    assert not world.bindings and any(says in each for each in world.event_notes("g-2"))
    world.submit(*gang("g", 1, 3, first=3))
    world.run()
    assert running(world) == {"g": 3} and not world.pod("g-2").node_name


def test_members_with_gates_do_not_count_and_do_not_hold_the_others() -> None:
    world = a_world(nodes=4)
    gated = gang("g", 1, 3, first=9, schedulingGates=[{"name": "wait"}])
    world.submit(*gang("g", 2, 3), *gated)
    world.advance(5)
    assert not world.bindings and "2 of 3 pods exist, 1 held back" in world.event_notes("g-0")[-1]
    world.submit(*gang("g", 1, 3, first=2))
    world.run()
    assert running(world) == {"g": 3}
    world.submit(*gang("g", 1, 3, first=9))
    world.run()
    assert running(world) == {"g": 4}


@pytest.mark.parametrize("state", ["finished", "terminating"])
def test_members_that_have_ended_do_not_count(state: str) -> None:
    world = a_world(nodes=6)
    gone = gang(
        "g", 1, 6, first=9, node="n0", **({"phase": "Succeeded"} if state == "finished" else {"terminating": True})
    )
    world.submit(*gone, *gang("g", 5, 6))
    world.advance(60)
    assert set(running(world)) <= {"g"} and not any(world.pod(f"g-{at}").node_name for at in range(5))


def test_what_the_groups_pods_are_told_when_it_does_not_fit() -> None:
    world = a_world(nodes=2)
    world.submit(*gang("g", 3))
    world.run()
    told = {name: world.event_notes(name)[0] for name in ("g-0", "g-1", "g-2")}
    assert told["g-0"].startswith("pod would fit on n")
    assert "Pod group default/g: 2 of 3 pods tried found a node, 3 of 3 must; pod g-2 did not: 0/2 nodes" in told["g-0"]
    assert told["g-2"].startswith("0/2 nodes are available: 2 Insufficient cpu.")


@pytest.mark.parametrize("interleaved", [False, True])
def test_two_gangs_for_the_room_of_one(interleaved: bool) -> None:
    world = a_world(nodes=10)
    one, two = gang("one", 10), gang("two", 10, at=1)
    pods = [pod for pair in zip(one, two, strict=True) for pod in pair] if interleaved else [*one, *two]
    for pod in pods:
        world.submit(pod)
        world.run()
    world.advance(30)
    (name,) = running(world)
    assert running(world) == {name: 10}
    world.delete(*(pod for pod in world.pods() if pod.labels[NAME] == name))
    world.advance(30)
    assert list(running(world).values()) == [10] and name not in running(world)


def test_members_beyond_the_minimum_come_one_by_one() -> None:
    world = a_world(nodes=4)
    world.submit(*gang("g", 6, 3))
    world.advance(1)
    assert running(world) == {"g": 4}
    world.submit(a_node("more", cpu=1))
    world.advance(15)
    assert running(world) == {"g": 5}


@pytest.mark.parametrize(
    ("policy", "returns"),
    [
        pytest.param("waiting-and-running", True, id="those that run count"),
        pytest.param("once-satisfied", True, id="it was complete once"),
        pytest.param("only-waiting", False, id="those that run do not count"),
    ],
)
def test_a_member_that_was_lost_returns_alone(policy: str, returns: bool) -> None:
    world = a_world(nodes=3, args={"matchPolicy": policy})
    world.submit(*gang("g", 3))
    world.run()
    world.delete(world.pod("g-1"))
    world.submit(*gang("g", 1, 3, first=7, at=30))
    world.advance(20)
    assert running(world) == {"g": 3 if returns else 2}


def test_once_satisfied_even_most_of_a_group_may_return_in_parts() -> None:
    world = a_world(nodes=3, args={"matchPolicy": "once-satisfied"})
    world.submit(*gang("g", 3))
    world.run()
    world.delete(*(world.pod(f"g-{at}") for at in range(3)))
    world.submit(*gang("g", 1, 3, first=7))
    world.run()
    assert running(world) == {}  # the group was gone: this is another one


def test_different_members_find_the_order_in_which_they_fit() -> None:
    """The small ones could take the large one's room; and the picky one's, which is not large."""
    nodes = [a_node("large", cpu=4, labels={"kind": "large"}), a_node("small", cpu=3, labels={"kind": "small"})]
    world = a_world(nodes=0)
    world.submit(*nodes)
    labels = {NAME: "g", MIN: "4"}
    small = [member(f"a-{at}", labels, cpu=1) for at in range(2)]
    picky = member("b", labels, cpu=1, node_selector={"kind": "small"})
    large = member("z", labels, cpu=4)
    world.submit(*small, picky, large)
    world.run()
    assert len(world.bindings) == 4 and world.bindings["z"] == "large"


def test_the_hardest_to_place_goes_first_in_a_second_try() -> None:
    world = a_world(nodes=0)
    world.submit(a_node("a", cpu=2, labels={"kind": "a"}), a_node("b", cpu=2))
    labels = {NAME: "g", MIN: "3"}
    free = [member(f"x-{at}", labels, cpu=2 - at) for at in range(2)]
    picky = member("z", labels, cpu=1, node_selector={"kind": "a"})
    world.submit(*free, picky)
    world.run()
    assert len(world.bindings) == 3


def test_min_resources_must_be_free() -> None:
    world = a_world(nodes=3)
    world.submit(a_pod_group("p", 2, minResources={"cpu": "4"}))
    world.submit(*(created(a_pod(f"p{at}", cpu=1, labels={GROUP: "p"}), at) for at in range(2)))
    world.advance(2)
    assert not world.bindings
    assert "pod group default/p needs 4000 of cpu, 3000 are free (minResources)" in world.event_notes("p0")
    world.submit(a_node("more", cpu=1))
    world.advance(20)
    assert set(world.bindings) == {"p0", "p1"}


def test_a_pod_group_may_come_after_its_pods() -> None:
    world = a_world(nodes=3)
    world.submit(*(a_pod(f"p{at}", cpu=1, labels={GROUP: "p"}) for at in range(3)))
    world.advance(5)
    assert not world.bindings
    assert all("PodGroup default/p" in each for each in world.event_notes("p0"))
    world.submit(a_pod_group("p", 3))
    world.advance(15)
    assert len(world.bindings) == 3


def test_an_aged_group_goes_before_more_important_pods() -> None:
    world = a_world(nodes=2, args={"starvationSeconds": 60})
    world.submit(*(a_pod(f"busy{at}", cpu=1, node=f"n{at}", priority=100) for at in range(2)))
    world.submit(*gang("g", 2, at=0))
    world.advance(100)
    assert {stage for _, stage in world.scheduler.queue.stages()} == {QueueStage.UNSCHEDULABLE}
    world.submit(*(created(a_pod(f"new{at}", cpu=1, priority=50, preemptionPolicy="Never"), 30) for at in range(2)))
    world.delete(world.pod("busy0"), world.pod("busy1"))
    world.advance(20)
    assert running(world) == {"g": 2}
