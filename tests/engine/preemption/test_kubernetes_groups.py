"""Preemption with Kubernetes' own PodGroups: their own priority, their disruption mode, and kube-scheduler's words.

The cases are those that kube-scheduler's own tests ask for, with its plugin GangScheduling and with Coscheduling.
"""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.actions import Evict, ObjectRef, Record
from stowplan.objects.changes import Result
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_budget, a_node, a_pod, a_profile
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import a_kubernetes_group, evicted, profiles

GANG_SCHEDULING = "profiles: [{plugins: {multiPoint: {enabled: [{name: GangScheduling}]}}}]"
WHOLE = {"disruptionMode": "PodGroup"}


@pytest.fixture(params=["GangScheduling", "Coscheduling"])
def plugin(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def a_world(plugin: str, *cpus: int, **more: Any) -> World:
    nodes = [a_node(f"n{at}", cpu=cpu) for at, cpu in enumerate(cpus)]
    by_kube = {"default-scheduler": a_profile(GANG_SCHEDULING)}
    return World(nodes=nodes, profiles=profiles() if plugin == "Coscheduling" else by_kube, **more)


def members(group: str, count: int, priority: int, prefix: str = "high", **more: Any) -> list[Pod]:
    spec: dict[str, Any] = {"cpu": 1, "schedulingGroup": {"podGroupName": group}, **more}
    return [a_pod(f"{prefix}-{at}", priority=priority, **spec) for at in range(count)]


def low(count: int, priority: int = 10, **more: Any) -> list[Pod]:
    return [a_pod(f"low-{at}", cpu=1, priority=priority, **more) for at in range(count)]


def bound(world: World) -> set[str]:
    return {pod.name for pod in world.pods() if pod.node_name}


def preempted(world: World, cpus: int, before: list[Object], after: list[Object]) -> tuple[list[str], set[str]]:
    """Which pods are evicted, and which have a node in the end."""
    world.submit(*before)
    world.advance(5)
    assert len(bound(world)) == cpus, "all pods that were there before run"
    world.submit(*after)
    world.advance(30)
    return evicted(world), bound(world)


@pytest.mark.parametrize("minimum", [pytest.param(3, id="a gang"), pytest.param(None, id="a basic group")])
def test_a_group_takes_the_place_of_lower_pods(plugin: str, minimum: int | None) -> None:
    world = a_world(plugin, 3)
    group = a_kubernetes_group("g", minimum, priority=100)
    gone, runs = preempted(world, 3, [group, *low(3)], [*members("g", 3, 100)])
    assert gone == ["low-0", "low-1", "low-2"] and runs == {"high-0", "high-1", "high-2"}


def test_its_fourth_member_preempts_beyond_the_minimum(plugin: str) -> None:
    world = a_world(plugin, 4)
    gone, runs = preempted(world, 4, [*low(4)], [a_kubernetes_group("g", 3, priority=100), *members("g", 4, 100)])
    assert len(gone) == 4 and len(runs) == 4 and all(name.startswith("high") for name in runs)


@pytest.mark.parametrize("minimum", [pytest.param(3, id="a gang"), pytest.param(None, id="a basic group")])
def test_free_room_is_used_and_the_lower_pod_is_evicted(plugin: str, minimum: int | None) -> None:
    world = a_world(plugin, 2, 2)
    world.submit(a_kubernetes_group("g", minimum, priority=100))
    world.submit(a_pod("low", cpu=1, priority=10, node="n0"), a_pod("lowest", cpu=2, priority=5, node="n1"))
    world.submit(*members("g", 3, 100))
    world.advance(30)
    assert evicted(world) == ["lowest"] and bound(world) == {"low", "high-0", "high-1", "high-2"}


def test_a_budget_keeps_its_pods(plugin: str) -> None:
    world = a_world(plugin, 3)
    before = [a_budget("two", app="foo"), *low(2, labels={"app": "foo"}), a_pod("other", cpu=1, priority=10)]
    group = a_kubernetes_group("g", 2, priority=100)
    gone, runs = preempted(world, 3, [group, *before], [*members("g", 2, 100, cpu="500m")])
    assert gone == ["other"] and runs == {"low-0", "low-1", "high-0", "high-1"}


def test_nothing_is_evicted_if_that_is_not_enough(plugin: str) -> None:
    world = a_world(plugin, 3)
    before = [a_kubernetes_group("g", 3, priority=100), *low(2), a_pod("mid", cpu=1, priority=500)]
    gone, runs = preempted(world, 3, before, [*members("g", 3, 100)])
    assert not gone and runs == {"mid", "low-0", "low-1"}


@pytest.mark.parametrize(
    ("minimum", "mode", "gone"),
    [
        pytest.param(3, WHOLE, 3, id="a gang that is disrupted only as a whole"),
        pytest.param(1, WHOLE, 3, id="the same, though enough members would be left"),
        pytest.param(None, WHOLE, 3, id="a basic group that is disrupted only as a whole"),
        pytest.param(1, {"disruptionMode": {"all": {}}}, 3, id="the same, as 1.37 writes it"),
        pytest.param(3, {"disruptionMode": "Pod"}, 1, id="a gang whose pods are disrupted one by one"),
        pytest.param(3, {"disruptionMode": {"single": {}}}, 1, id="the same, as 1.37 writes it one by one"),
        pytest.param(3, {}, 3, id="a gang that does not say it, below its minimum"),
        pytest.param(2, {}, 1, id="a gang that does not say it, above its minimum"),
    ],
)
@pytest.mark.parametrize("alone", [pytest.param(False, id="for a group"), pytest.param(True, id="for a pod")])
def test_how_many_pods_of_a_group_are_evicted(
    plugin: str, minimum: int | None, mode: dict[str, Any], gone: int, alone: bool
) -> None:
    world = a_world(plugin, 3)
    lesser = a_kubernetes_group("lesser", minimum, priority=10, **mode)
    high = a_pod("high-0", cpu=1, priority=100) if alone else members("g", 1, 100)[0]
    before = [lesser, a_kubernetes_group("g", 1, priority=100), *members("lesser", 3, 10, "low")]
    found, runs = preempted(world, 3, before, [high])
    assert len(found) == gone and "high-0" in runs


@pytest.mark.parametrize(
    ("own", "pods", "others", "other_pods", "gone"),
    [
        pytest.param(100, 10, 10, 100, 3, id="a group of higher priority evicts pods of a higher one"),
        pytest.param(10, 100, 100, 10, 0, id="a group of lower priority does not evict pods of a lower one"),
        pytest.param(10, 100, 10, 1, 0, id="groups of equal priority"),
    ],
)
def test_the_priority_of_the_group_counts(
    plugin: str, own: int, pods: int, others: int, other_pods: int, gone: int
) -> None:
    world = a_world(plugin, 3)
    groups = [a_kubernetes_group("g", 1, priority=own), a_kubernetes_group("lesser", 3, priority=others, **WHOLE)]
    found, runs = preempted(world, 3, [*groups, *members("lesser", 3, other_pods, "low")], [*members("g", 1, pods)])
    assert len(found) == gone and ("high-0" in runs) == bool(gone)


def test_a_pod_does_not_evict_a_whole_group_of_higher_priority(plugin: str) -> None:
    world = a_world(plugin, 3)
    group = a_kubernetes_group("g", 3, priority=100, **WHOLE)
    found, _ = preempted(world, 3, [group, *members("g", 3, 10, "low")], [a_pod("mid", cpu=1, priority=50)])
    assert not found


def test_a_group_does_not_evict_its_own_pods(plugin: str) -> None:
    world = a_world(plugin, 2)
    group = a_kubernetes_group("g", 1, priority=100)
    found, runs = preempted(world, 2, [group, *members("g", 2, 10, "low")], [*members("g", 1, 10)])
    assert not found and runs == {"low-0", "low-1"}


def test_members_of_different_priorities_and_the_lowest_is_evicted(plugin: str) -> None:
    world = a_world(plugin, 3)
    before = [a_kubernetes_group("g", 1, priority=10, disruptionMode="Pod")]
    spec: dict[str, Any] = {"cpu": 1, "schedulingGroup": {"podGroupName": "g"}}
    pods = [a_pod(f"low-{priority}", priority=priority, **spec) for priority in (30, 20, 10)]
    found, runs = preempted(world, 3, [*before, *pods], [a_pod("high", cpu=1, priority=100)])
    assert found == ["low-10"] and runs == {"low-30", "low-20", "high"}


def test_members_of_higher_priority_get_their_nodes_first(plugin: str) -> None:
    world = a_world(plugin, 2)
    world.submit(a_kubernetes_group("g", 1, priority=10))
    spec: dict[str, Any] = {"cpu": 1, "schedulingGroup": {"podGroupName": "g"}}
    world.submit(*(a_pod(f"p{priority}", priority=priority, **spec) for priority in (1, 3, 2)))
    world.advance(5)
    assert bound(world) == {"p3", "p2"}


def test_without_a_priority_of_its_own_members_must_agree(plugin: str) -> None:
    world = a_world(plugin, 2)
    world.submit(a_kubernetes_group("g", 2), *members("g", 1, 10), *members("g", 1, 20, "other"))
    world.advance(5)
    assert not bound(world)


def test_what_victims_are_told(plugin: str) -> None:
    world = a_world(plugin, 1)
    preempted(world, 1, [a_kubernetes_group("g", 1, priority=100), *low(1)], [*members("g", 1, 100)])
    (event,) = (each for each in world.actions if isinstance(each, Record) and each.reason == "Preempted")
    assert event.note == "Preempted by podgroup uid-of-g on node cluster"
    assert event.related == ObjectRef("default", "g", "uid-of-g", "PodGroup", "scheduling.k8s.io/v1alpha2")
    (eviction,) = (each for each in world.actions if isinstance(each, Evict))
    assert eviction.message == "default-scheduler: preempting to accommodate a higher priority podgroup"


def test_the_gang_that_is_complete_first_is_first() -> None:
    world = a_world("GangScheduling", 4)
    world.submit(a_kubernetes_group("a", 3), a_kubernetes_group("b", 3))
    first, second = members("b", 3, 0, "b"), members("a", 3, 0, "a")
    for pair in zip(first, second, strict=True):
        world.submit(*pair)
    world.advance(5)
    assert bound(world) == {"b-0", "b-1", "b-2"}


def test_the_rest_of_a_whole_group_goes_though_the_server_refuses_at_first(plugin: str) -> None:
    world = a_world(plugin, 3)
    before = [a_kubernetes_group("lesser", None, priority=10, **WHOLE), a_kubernetes_group("g", 1, priority=100)]
    refusals = ["low-1", "low-1"]

    def answer(action: Any) -> Result:
        if isinstance(action, Evict) and action.pod.name in refusals:
            refusals.remove(action.pod.name)
            return Result(action.id, 429, "not now")
        return Result(action.id)

    world.answers = answer
    _, runs = preempted(world, 3, [*before, *members("lesser", 3, 10, "low")], [*members("g", 1, 100)])
    assert runs == {"high-0"}
