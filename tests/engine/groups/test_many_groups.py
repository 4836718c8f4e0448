"""Many groups at once, and groups beside other pods: which of them run, which wait, and for how long."""

from __future__ import annotations

import dataclasses

import pytest

from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import NAME, a_pod_group, a_world, created, gang, profiles, running


def test_an_infeasible_group_does_not_block_a_small_one() -> None:
    world = a_world(nodes=4)
    world.submit(*gang("large", 6, cpu=1, at=0))
    world.submit(*gang("small", 2, at=5))
    world.advance(5)
    assert running(world) == {"small": 2}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([*gang("a", 3, cpu=50), *gang("b", 4, cpu=100, at=1)], {"a": 3}, id="equal gangs in order"),
        pytest.param(
            [*gang("a", 3, cpu=100, priority=50), *gang("b", 3, cpu=50, priority=100, at=1)], {"b": 3}, id="by priority"
        ),
        pytest.param(
            [*[a_pod(f"r{at}", cpu=100, priority=100) for at in range(3)], *gang("b", 3, cpu=50, priority=50)],
            {"r0": 1, "r1": 1, "r2": 1}, id="important pods before a gang",
        ),
        pytest.param(
            [*gang("a", 3, 4, cpu=50), *[a_pod(f"r{at}", cpu=100) for at in range(2)]],
            {"r0": 1, "r1": 1}, id="too few members",
        ),
        pytest.param(
            [*gang("a", 4, cpu=100), *gang("b", 4, cpu=100, at=1), *gang("c", 3, cpu=100, at=2)],
            {"c": 3}, id="the one that fits",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("interleaved", [False, True])
def test_which_pods_run_on_a_small_cluster(pods: list[Pod], expected: dict[str, int], interleaved: bool) -> None:
    """One node with 300 of a resource."""
    world = a_world(nodes=0)
    world.submit(a_node("n", cpu=300))
    for pod in sorted(pods, key=lambda pod: pod.name[::-1]) if interleaved else pods:
        world.submit(pod)
    world.advance(30)
    assert running(world) == expected


def test_groups_are_forgotten_ten_minutes_after_their_last_member() -> None:
    world = a_world(nodes=3)
    world.submit(*gang("g", 3), *gang("h", 3, at=1))
    world.run()
    groups = world.scheduler.groups
    assert {each.group.name for each in groups} == {"default/g", "default/h"}
    world.delete(*(pod for pod in world.pods() if pod.labels[NAME] == "g"))
    world.advance(500)
    assert {each.group.name for each in groups} == {"default/g", "default/h"}
    world.advance(200)
    world.delete(world.pod("h-0"))
    assert {each.group.name for each in groups} == {"default/h"}


def test_pods_of_two_schedulers_are_no_group_and_no_pod_is_lost() -> None:
    (profile,) = profiles().values()
    other = dataclasses.replace(profile, scheduler_name="other")
    both = {"default-scheduler": profile, "other": other}
    world = World(nodes=[a_node(f"n{at}", cpu=1) for at in range(3)], profiles=both)
    world.submit(*gang("g", 2, 3), *gang("g", 1, 3, first=5, schedulerName="other"))
    world.advance(5)
    assert not world.bindings
    assert any("has schedulerName default-scheduler" in each for each in world.event_notes("g-5"))
    world.submit(*gang("g", 1, 3, first=2))
    world.advance(15)
    assert running(world) == {"g": 3} and not world.pod("g-5").node_name


def test_a_deleted_pod_group_starts_no_pod() -> None:
    world = a_world(nodes=2)
    group = a_pod_group("p", 3)
    labels = {"scheduling.x-k8s.io/pod-group": "p"}
    world.submit(group, *(created(a_pod(f"p{at}", cpu=1, labels=labels), 0) for at in range(3)))
    world.advance(2)
    world.delete(group)
    world.submit(a_node("n2", cpu=0))
    world.advance(400)
    assert not world.bindings


def test_more_members_do_not_shorten_a_groups_backoff() -> None:
    world = a_world(nodes=2)
    world.submit(*gang("g", 3))
    world.run()
    tried = len(world.event_notes("g-0"))
    world.submit(*gang("g", 10, 3, first=3))
    world.run()
    assert len(world.event_notes("g-0")) <= tried + 1


def test_a_large_group_does_not_starve_where_room_is_freed_bit_by_bit() -> None:
    world = a_world(nodes=2, args={"starvationSeconds": 10, "preemption": False})
    world.submit(a_pod("s0", cpu=1, node="n0"), a_pod("s1", cpu=1, node="n1"))
    world.submit(*gang("g", 2, at=0))
    for number in range(2, 40):
        world.advance(15)
        world.submit(created(a_pod(f"s{number}", cpu=1, preemptionPolicy="Never"), 59))
        leaves = next((pod for pod in world.pods() if pod.node_name and pod.name.startswith("s")), None)
        if leaves is None:
            break
        world.delete(leaves)
    world.advance(30)
    assert running(world)["g"] == 2
