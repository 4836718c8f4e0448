"""Members of a group beyond its minimum: they preempt, too, once the minimum has nodes."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.testing.builders import a_budget, a_pod
from tests.plugins.nodes.coscheduling.pod_groups import a_world, evicted, gang, low, refuse_binding, running


@pytest.mark.parametrize(
    ("nodes", "lower", "pods", "minimum"),
    [
        pytest.param(4, 4, 4, 3, id="the minimum preempts, and so does the fourth"),
        pytest.param(4, 1, 4, 3, id="the minimum finds free nodes, and the fourth preempts"),
        pytest.param(6, 6, 6, 2, id="four more than the minimum"),
        pytest.param(5, 2, 5, 2, id="the minimum and one more find free nodes, and two preempt"),
    ],
)
def test_they_preempt(nodes: int, lower: int, pods: int, minimum: int) -> None:
    world = a_world(nodes=nodes)
    world.submit(*low(lower))
    world.submit(*gang("g", pods, minimum, priority=10))
    world.advance(30)
    assert running(world) == {"g": pods} and len(evicted(world)) == lower


def test_one_that_comes_later_preempts() -> None:
    world = a_world(nodes=3)
    world.submit(*low(1))
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert running(world) == {"g": 2, "low-0": 1}
    world.submit(*gang("g", 1, 2, first=2, priority=10))
    world.advance(20)
    assert running(world) == {"g": 3} and evicted(world) == ["low-0"]


def test_victims_are_evicted_for_all_of_them_at_once() -> None:
    world = a_world(nodes=6, graceful=True)
    world.submit(*low(4))
    world.submit(*gang("g", 6, 2, priority=10))
    world.advance(1)
    assert running(world)["g"] == 2 and evicted(world) == ["low-0", "low-1", "low-2", "low-3"]
    world.advance(60)
    assert len(evicted(world)) == 4
    for at in range(4):
        world.delete(world.pod(f"low-{at}"))
        world.advance(20)
    assert running(world) == {"g": 6}


def test_as_many_as_possible_preempt_if_there_is_not_room_for_all() -> None:
    world = a_world(nodes=6, graceful=True)
    world.submit(*low(3), a_pod("high", cpu=1, node="n3", priority=20))
    world.submit(*gang("g", 7, 2, priority=10))
    world.advance(1)
    assert running(world)["g"] == 2 and evicted(world) == ["low-0", "low-1", "low-2"]


@pytest.mark.parametrize(
    ("args", "spec", "labels"),
    [
        pytest.param({"preemption": False}, {}, {}, id="preemption is switched off"),
        pytest.param({}, {"preemptionPolicy": "Never"}, {}, id="the pods do not want it"),
        pytest.param({}, {"priority": 1}, {}, id="nobody has a lower priority"),
        pytest.param({}, {}, {"app": "kept"}, id="a disruption budget protects the others"),
    ],
)
def test_they_do_not_preempt(args: dict[str, Any], spec: dict[str, Any], labels: dict[str, str]) -> None:
    world = a_world(nodes=4, args=args)
    world.submit(a_budget("keep", app="kept"))
    world.submit(*low(2, labels=labels))
    world.submit(*gang("g", 4, 2, **{"priority": 10, **spec}))
    world.advance(60)
    assert not evicted(world) and running(world)["g"] == 2


def test_a_group_that_fails_to_be_bound_still_runs_whole_in_the_end() -> None:
    world = a_world(nodes=4)
    world.submit(*low(1))
    refuse_binding(world, "g-0", "g-1", "g-2")
    world.submit(*gang("g", 4, 3, priority=10))
    world.advance(5)
    world.answers = world.succeed
    world.advance(60)
    assert running(world) == {"g": 4} and evicted(world) == ["low-0"]
