"""Preemption for an application: room for the driver and all its executors, or no eviction."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.actions import Evict
from stowplan.objects.applications import KUBENEXUS
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_budget, a_node, a_pod, a_profile
from stowplan.testing.invariants import check_nothing_left_behind
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling import pod_groups
from tests.plugins.nodes.resource_reservation.reservations import (
    a_driver,
    a_world,
    bound,
    held,
    needs,
    rivals,
    told,
)

NODES = [a_node("a", cpu=4), a_node("b", cpu=4)]


def full(number: int = 8, **options: Any) -> World:
    """Two nodes of four CPUs with so many rivals of one CPU."""
    world = a_world(*NODES, graceful=True, **options)
    world.submit(*rivals(number, priority=1))
    world.run()
    assert len(bound(world, "rival")) == number
    return world


def app(number: int = 5, priority: int = 10, name: str = "app", **pod: Any) -> Pod:
    return a_driver(name, annotations=needs(number), priority=priority, **pod)


def small(number: int, priority: int = 10) -> list[Pod]:
    """Pods that would take any room, but evict nobody."""
    each: dict[str, Any] = {"cpu": 1, "priority": priority, "preemptionPolicy": "Never"}
    return [a_pod(f"small-{at}", **each) for at in range(number)]


def evicted(world: World) -> list[str]:
    return sorted(each.pod.name for each in world.actions if isinstance(each, Evict))


def leave(world: World, *names: str) -> None:
    """These victims are gone now; all of them, if no names are given."""
    for pod in [pod for pod in world.pods() if pod.terminating and (not names or pod.name in names)]:
        world.delete(pod)
    world.advance(15)


def test_it_preempts_for_the_driver_and_its_executors_on_several_nodes() -> None:
    world = full()
    world.submit(app(5))
    world.advance(1)
    assert len(evicted(world)) == 6 and "app-driver" not in world.bindings
    leave(world)
    assert "app-driver" in world.bindings and held(world).total() == 5
    assert len(evicted(world)) == 6, "no more than needed"


def test_free_room_is_used_first() -> None:
    world = full(6)
    world.submit(app(3))
    world.advance(1)
    assert len(evicted(world)) == 2


@pytest.mark.parametrize(
    ("executors", "more"),
    [
        pytest.param(8, {}, id="more than the cluster has"),
        pytest.param(5, {"preemptionPolicy": "Never"}, id="preemptionPolicy Never"),
        pytest.param(5, {"priority": 1}, id="no higher priority"),
        pytest.param(3, {"cpu": 5}, id="the driver fits no node"),
    ],
)
def test_no_pod_is_evicted_for_a_part(executors: int, more: dict[str, Any]) -> None:
    world = full()
    world.submit(app(executors, **more))
    world.advance(60)
    assert not evicted(world) and not world.pod("app-driver").nominated_node


def test_pods_of_the_same_priority_stay() -> None:
    world = full(5)
    world.submit(*(a_pod(f"peer-{at}", cpu=1, priority=10) for at in range(3)))
    world.run()
    world.submit(app(5))
    world.advance(60)
    assert not evicted(world), "5 of 6 are not enough"
    assert "even without pods of lower priority there is too little room" in told(world, "app-driver")
    world.submit(app(4, name="smaller"))
    world.advance(1)
    assert len(evicted(world)) == 5


def test_disruption_budgets_are_kept() -> None:
    world = a_world(*NODES, graceful=True)
    world.submit(a_budget("keep", app="kept"))
    world.submit(*rivals(8, priority=1, labels={"app": "kept"}))
    world.run()
    world.submit(app(2))
    world.advance(30)
    assert not evicted(world)


def test_nobody_takes_the_room_while_victims_leave() -> None:
    """Not even on the nodes of executors, and not if the victims leave one after the other."""
    world = full()
    world.submit(app(5))
    world.advance(1)
    victims = evicted(world)
    world.submit(*small(8))
    for name in victims[:-1]:
        leave(world, name)
        assert not bound(world, "small") and "app-driver" not in world.bindings
    leave(world)
    assert "app-driver" in world.bindings and held(world).total() == 5 and not bound(world, "small")
    assert evicted(world) == victims


def test_a_victim_that_never_goes_does_not_keep_the_cluster_idle() -> None:
    world = a_world(*(a_node(f"n{at}", cpu=4) for at in range(10)), graceful=True)
    world.submit(a_pod("victim", cpu=4, priority=1, node="n0"))
    world.run()
    world.submit(a_driver("app", annotations=needs(38, memory="1Mi"), priority=10))
    world.advance(1)
    small = [a_pod(f"small-{at}", cpu=1, priority=5) for at in range(10)]
    world.submit(*small)
    world.advance(60)
    assert world.pod("app-driver").nominated_node and not {each.name for each in small} <= world.bindings.keys()
    world.advance(1200)
    assert {each.name for each in small} <= world.bindings.keys()


def test_a_higher_priority_may_take_it() -> None:
    world = full()
    world.submit(app(5))
    world.advance(1)
    world.submit(a_pod("urgent", cpu=4, priority=100))
    leave(world)
    leave(world)
    assert "urgent" in world.bindings and "app-driver" not in world.bindings
    assert not held(world) and not world.scheduler.state.nominated_pods
    check_nothing_left_behind(world)


def test_two_applications_do_not_count_on_the_same_room() -> None:
    world = full()
    world.submit(app(5))
    world.advance(1)
    world.submit(app(5, name="other"))
    leave(world)
    leave(world)
    assert "app-driver" in world.bindings and "other-driver" not in world.bindings
    assert held(world).total() == 5


@pytest.mark.parametrize("at", ["asked", "half", "gone"])
def test_a_restart_changes_nothing(at: str) -> None:
    """The driver is attempted first, sees who is leaving, and keeps the room again."""
    world = full()
    world.submit(app(5), *small(8, priority=5))
    world.advance(1)
    victims = evicted(world)
    if at == "half":
        leave(world, *victims[:3])
    if at == "gone":
        for pod in [pod for pod in world.pods() if pod.terminating]:
            world.delete(pod)
    world.restart()
    world.advance(1)
    assert not bound(world, "small")
    leave(world)
    assert "app-driver" in world.bindings and held(world).total() == 5 and evicted(world) == victims


def test_the_room_is_free_again_when_the_driver_is_deleted() -> None:
    world = full()
    world.submit(app(5))
    world.advance(1)
    world.submit(*small(6, priority=0))
    for pod in [pod for pod in world.pods() if pod.terminating]:
        world.delete(pod)
    world.delete(world.pod("app-driver"))
    world.advance(15)
    assert len(bound(world, "small")) == 6
    check_nothing_left_behind(world)


def test_what_the_event_says() -> None:
    """Not that all executors have room, while it refuses."""
    world = a_world(a_node("a", cpu=2))
    world.submit(app(2, priority=0))
    world.run()
    said = told(world, "app-driver")
    assert "The driver and 1 of 2 executors (cpu 1, memory 1Gi each) have room beside other pods" in said
    assert "2 of 2" not in said
    world.submit(*rivals(1))
    world.submit(app(2, name="big", cpu=3, priority=0))
    world.run()
    assert "No node is left for the driver itself; without it 1 of 2 executors" in told(world, "big-driver")


def test_nothing_is_said_of_room_if_that_is_not_what_it_lacks() -> None:
    """On the only node for this application another pod has the driver's port."""
    world = a_world(a_node("a", labels={"disk": "fast"}), a_node("b"))
    world.submit(a_pod("web", cpu=1, ports=[80], node="a"))
    world.submit(app(2, priority=0, ports=[80], node_selector={"disk": "fast"}))
    world.run()
    assert "2 of 2" not in told(world, "app-driver")


# -- in a group


@pytest.mark.parametrize(
    "annotations", [pytest.param(needs(5), id="annotations"), pytest.param({}, id="the two labels alone")]
)
def test_a_driver_in_a_group_preempts_the_same_way(annotations: dict[str, Any]) -> None:
    world = World(nodes=NODES, graceful=True, profiles=pod_groups.profiles({}, "ResourceReservation"))
    world.submit(*rivals(8, priority=1))
    world.run()
    labels = {f"{KUBENEXUS}/name": "app", f"{KUBENEXUS}/min-available": "6", "spark-role": "driver"}
    driver = a_driver(annotations=annotations, priority=10)
    world.submit(pod_groups.relabelled(driver, labels))
    world.advance(1)
    assert len(evicted(world)) == 6
    world.submit(*small(8, priority=5))
    leave(world, *evicted(world)[:3])
    assert not bound(world, "small") and "app-driver" not in world.bindings
    leave(world)
    assert "app-driver" in world.bindings and held(world).total() == 5 and len(evicted(world)) == 6


def test_profiles_without_default_preemption_preempt_nobody() -> None:
    document = {
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {
                    "multiPoint": {"enabled": [{"name": "ResourceReservation"}]},
                    "postFilter": {"disabled": [{"name": "DefaultPreemption"}]},
                },
            }
        ]
    }
    world = World(nodes=NODES, graceful=True, profiles={"default-scheduler": a_profile(document)})
    world.submit(*rivals(8, priority=1))
    world.run()
    world.submit(app(5))
    world.advance(30)
    assert not evicted(world)
