"""Preemption where gangs are involved, as the preemptors or among the victims."""

from __future__ import annotations

from tests.builders import a_node, a_pod
from tests.engine.test_gangs import evicted
from tests.plugins.nodes.gangs import MIN, NAME, a_world, member, running

# -- whom to evict for a gang


def test_a_gang_that_fits_in_the_second_order_only_makes_room() -> None:
    """The large one likes the node that is the only one for the picky one."""
    world = a_world(nodes=0)
    world.submit(a_node("a", cpu="2500m", labels={"kind": "a"}), a_node("b", cpu=2))
    world.submit(a_pod("low-a", cpu=2, node="a", priority=1), a_pod("low-b", cpu=2, node="b", priority=1))
    labels = {NAME: "g", MIN: "2"}
    large, picky = (
        member("x", labels, cpu=2, priority=10),
        member("z", labels, node_selector={"kind": "a"}, priority=10),
    )
    world.submit(large, picky)
    world.advance(20)
    assert running(world) == {"g": 2} and evicted(world) == ["low-a", "low-b"]
