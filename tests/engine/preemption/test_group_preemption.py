"""Preemption by a group: which pods are evicted, and which are not."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.testing.builders import a_budget, a_pod
from tests.plugins.nodes.coscheduling.pod_groups import a_world, created, evicted, gang, low, running


def test_a_group_preempts_for_all_its_members() -> None:
    world = a_world(nodes=4)
    world.submit(*low(4))
    world.submit(*gang("g", 3, priority=10))
    world.advance(20)
    assert running(world)["g"] == 3 and len(evicted(world)) == 3


def test_no_pod_is_evicted_for_a_group_that_would_not_fit_even_then() -> None:
    world = a_world(nodes=4)
    world.submit(*low(3), a_pod("high", cpu=1, node="n3", priority=20))
    world.submit(*gang("g", 4, priority=10))
    world.advance(60)
    assert not evicted(world) and "g" not in running(world)


def test_the_lowest_priorities_are_evicted_and_no_more_than_needed() -> None:
    world = a_world(nodes=4)
    world.submit(*(a_pod(f"p{at}", cpu=1, node=f"n{at}", priority=at) for at in range(4)))
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert evicted(world) == ["p0", "p1"] and running(world)["g"] == 2


def test_free_room_is_used_before_a_pod_is_evicted() -> None:
    world = a_world(nodes=5)
    world.submit(*low(4))
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert len(evicted(world)) == 1 and running(world)["g"] == 2


def test_another_group_is_evicted_whole_or_not_at_all() -> None:
    world = a_world(nodes=4)
    world.submit(*gang("lesser", 3, priority=1))
    world.run()
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert evicted(world) == ["lesser-0", "lesser-1", "lesser-2"] and running(world)["g"] == 2


def test_a_single_preemptor_does_not_leave_a_part_of_a_group() -> None:
    world = a_world(nodes=2)
    world.submit(*gang("lesser", 2, priority=1))
    world.run()
    world.submit(a_pod("single", cpu=1, priority=10))
    world.advance(20)
    assert evicted(world) == ["lesser-0", "lesser-1"] and set(running(world)) == {"single"}


def test_members_beyond_the_minimum_may_be_evicted_alone() -> None:
    world = a_world(nodes=3)
    world.submit(*gang("lesser", 3, 2, priority=1))
    world.run()
    world.submit(a_pod("single", cpu=1, priority=10))
    world.advance(20)
    assert len(evicted(world)) == 1 and running(world) == {"lesser": 2, "single": 1}


def test_budgets_are_respected() -> None:
    world = a_world(nodes=3)
    world.submit(a_budget("keep", app="kept"))
    world.submit(*low(3, labels={"app": "kept"}))
    world.submit(*gang("g", 2, priority=10))
    world.advance(30)
    assert not evicted(world)


@pytest.mark.parametrize(
    ("args", "spec"),
    [
        pytest.param({"preemption": False}, {}, id="switched off"),
        pytest.param({}, {"preemptionPolicy": "Never"}, id="the pods do not want it"),
    ],
)
def test_a_group_with_the_preemption_policy_never_does_not_preempt(args: dict[str, Any], spec: dict[str, Any]) -> None:
    world = a_world(nodes=3, args=args)
    world.submit(*low(3))
    world.submit(*gang("g", 2, priority=10, **spec))
    world.advance(30)
    assert not evicted(world)


def test_slow_victims_are_not_evicted_twice_and_their_room_stays_nominated() -> None:
    world = a_world(nodes=2, graceful=True)
    world.submit(*low(2))
    world.submit(*gang("g", 2, priority=10))
    world.advance(40)
    assert evicted(world) == ["low-0", "low-1"]
    world.submit(created(a_pod("rival", cpu=1, priority=5), 0))
    world.delete(world.pod("low-0"))
    world.advance(20)
    assert running(world).get("g", 0) == 0 and not world.pod("rival").node_name
    world.delete(world.pod("low-1"))
    world.advance(20)
    assert running(world)["g"] == 2


def test_extra_members_are_evicted_before_their_group() -> None:
    world = a_world(nodes=6)
    world.submit(*gang("lesser", 6, 2, priority=1))
    world.advance(2)
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert len(evicted(world)) == 2 and running(world) == {"g": 2, "lesser": 4}


def test_a_budget_that_allows_one_disruption_is_spent_on_the_lowest_priority() -> None:
    world = a_world(nodes=3)
    world.submit(a_budget("keep", app="kept", allowed=2))
    world.submit(*(a_pod(f"p{at}", cpu=1, node=f"n{at}", priority=at, labels={"app": "kept"}) for at in range(3)))
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert evicted(world) == ["p0", "p1"]
