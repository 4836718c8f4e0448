"""The queue's order by a plugin that sees the cluster: active units are reordered when the cluster changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.interfaces import QueueEntry, Wake
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod, a_profile
from stowplan.testing.world import World


class FairShare:
    """The namespace with the fewest bound pods goes first, then the pod with the smaller name."""

    def __init__(self, events: Iterable[Wake] = (Wake("AssignedPod", ("Add", "Delete")),)) -> None:
        self.events, self.keys = events, 0

    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        raise AssertionError("cluster_key is asked instead")

    def cluster_key(self, entry: QueueEntry, cluster: Cluster) -> tuple[int, str]:
        self.keys += 1
        bound = Counter(pod.namespace for pod in cluster.known_pods() if pod.node_name)
        return bound[entry.pod.namespace], entry.pod.name

    def reorders_on(self) -> Iterable[Wake]:
        return self.events


def a_world(sort: object, nodes: int = 8) -> World:
    default = a_profile()
    points = {**default.points, "queueSort": (EnabledPlugin(type(sort).__name__, sort),)}
    profile = Profile("default-scheduler", points)
    return World(nodes=[a_node(f"n{number}") for number in range(nodes)], profiles={"default-scheduler": profile})


def order(world: World) -> list[str]:
    """The names of the pods in the order in which they were bound."""
    names = {pod.uid: pod.name for pod in world.pods()}
    return [names[uid] for uid in world.bound]


def submit_two_tenants(world: World) -> None:
    for name in ("a1", "a2", "a3"):
        world.submit(a_pod(name, namespace="a"))
    for name in ("b1", "b2"):
        world.submit(a_pod(name, namespace="b"))
    world.run()


def test_tenants_take_turns_when_every_binding_reorders_the_queue() -> None:
    world = a_world(FairShare())
    submit_two_tenants(world)
    assert order(world) == ["a1", "b1", "a2", "b2", "a3"]


def test_without_an_event_to_reorder_on_keys_stay_as_they_were() -> None:
    world = a_world(FairShare(events=()))
    submit_two_tenants(world)
    assert order(world) == ["a1", "a2", "a3", "b1", "b2"]


def test_keys_are_made_again_only_after_an_event() -> None:
    sort = FairShare(events=(Wake("Node", ("Add",)),))
    world = a_world(sort)
    world.answers = lambda _: None  # bindings stay unanswered
    world.submit(*(a_pod(name) for name in ("a", "b", "c")))
    before = sort.keys
    world.scheduler.step(world.now)
    assert sort.keys == before
    world.submit(a_node("new"))
    world.scheduler.step(world.now)
    assert sort.keys == before + 2, "two units were active"


def test_a_change_of_a_pending_pod_may_reorder_the_queue() -> None:
    sort = FairShare(events=(Wake("UnschedulablePod", ("*",)),))
    world = a_world(sort)
    world.submit(a_pod("a"), a_pod("b"))
    before = sort.keys
    world.submit(a_pod("b", labels={"new": "label"}))
    world.run()
    assert sort.keys == before + 2


def test_another_configuration_may_have_keys_of_another_type() -> None:
    """What the old plugin's keys left behind is not compared with the new ones."""
    world = a_world(FairShare())
    world.submit(a_pod("big", cpu=99), a_pod("small"))
    world.run()
    world.submit(a_node("new"))
    world.adopt({"default-scheduler": a_profile()})
    world.advance(60)
    assert world.bindings.keys() == {"small"}


@pytest.mark.parametrize("broken", ["cluster_key", "reorders_on"])
def test_a_plugin_that_raises_does_not_stop_the_queue(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    def fail(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(FairShare, broken, fail)
    world = a_world(FairShare())
    submit_two_tenants(world)
    if broken == "cluster_key":
        condition = world.pod("a1", "a").condition("PodScheduled")
        assert condition is not None and 'plugin "FairShare" failed at cluster_key: KeyError' in condition.message
        monkeypatch.setattr(FairShare, broken, lambda *_: 0)
        world.advance(20)
    assert sorted(order(world)) == ["a1", "a2", "a3", "b1", "b2"]
