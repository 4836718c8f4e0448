"""Groups of pods: held back until complete, tried whole, committed whole or not at all."""

from __future__ import annotations

from typing import Any

from stowplan.columns.views import Cluster
from stowplan.engine.unit import Stage
from stowplan.framework.interfaces import Group
from stowplan.framework.profile import Bound, Profile
from stowplan.objects.affinity import PodQuery
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import from_labels
from tests.builders import a_node, a_pod, a_profile
from tests.world import World


class Gangs:
    """Pods with the labels `gang` and `min` belong together."""

    def group_of(self, pod: Pod, cluster: Cluster) -> Group | None:
        if "gang" not in pod.labels:
            return None
        alike = PodQuery(frozenset({pod.namespace}), from_labels({"gang": pod.labels["gang"]}))
        placed = int(cluster.nodes.count(alike).sum())
        return Group(f"{pod.namespace}/{pod.labels['gang']}", int(pod.labels["min"]), placed)

    def post_bind(self, *_: Any) -> tuple[()]:
        return ()


def a_gang_world(nodes: int, cpu: int = 1) -> World:
    default = a_profile()
    profile = Profile(default.scheduler_name, {**default.points, "postBind": (Bound("Gangs", Gangs()),)})
    named = [a_node(f"n{number}", cpu=cpu) for number in range(nodes)]
    return World(nodes=named, profiles={"default-scheduler": profile})


def members(count: int, needed: int, name: str = "g") -> list[Pod]:
    labels = {"gang": name, "min": str(needed)}
    return [a_pod(f"{name}{number}", cpu=1, labels=labels) for number in range(count)]


def test_a_group_waits_until_it_is_complete() -> None:
    world = a_gang_world(nodes=3)
    first, *rest = members(3, needed=3)
    world.submit(first)
    world.run()
    assert {stage for _, stage in world.scheduler.queue.stages()} == {Stage.GATED}
    world.submit(*rest)
    world.run()
    assert len(world.bindings) == 3


def test_a_group_that_does_not_fit_leaves_nothing_behind() -> None:
    world = a_gang_world(nodes=2)
    world.submit(*members(3, needed=3))
    world.run()
    assert not world.bindings and not world.scheduler.state.pods
    condition = world.pod("g0").condition("PodScheduled")
    assert condition is not None and "Pod group default/g" in condition.message
    world.submit(a_node("n2", cpu=1))
    world.run()
    assert len(world.bindings) == 3


def test_more_members_than_needed_may_stay_behind() -> None:
    world = a_gang_world(nodes=2)
    world.submit(*members(3, needed=2))
    world.run()
    assert len(world.bindings) == 2
    world.submit(a_node("n2", cpu=1))
    world.advance(15)
    assert len(world.bindings) == 3


def test_of_two_groups_with_room_for_one_exactly_one_runs_whole() -> None:
    world = a_gang_world(nodes=3)
    for one, other in zip(members(3, 3, "a"), members(3, 3, "b"), strict=True):
        world.submit(one, other)
    world.run()
    assert {name[0] for name in world.bindings} in ({"a"}, {"b"})
    assert len(world.bindings) == 3
    for pod in world.pods():
        if pod.node_name:
            world.delete(pod)
    world.advance(15)
    assert len(world.bindings) == 3
