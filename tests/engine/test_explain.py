"""`Scheduler.explain`: what it answers, and that it changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.config.settings import Extender
from stowplan.framework.group import Group
from stowplan.objects.actions import Evict
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.small_plugins import Gangs, Ledger, profiles


def members(count: int, needed: int) -> list[Pod]:
    labels = {"gang": "g", "min": str(needed)}
    return [a_pod(f"g{number}", cpu=1, labels=labels) for number in range(count)]


def a_world(*pods: Pod, nodes: int = 2, **plugins: Any) -> World:
    """A world whose pods are queued and not attempted yet."""
    named = [a_node(f"n{number}", cpu=1) for number in range(nodes)]
    world = World(nodes=named, profiles=profiles(postBind=[Gangs()], **plugins))
    world.submit(*pods)
    return world


def test_a_pending_pod_goes_where_it_is_then_bound() -> None:
    world = a_world(a_pod("web", cpu=1), nodes=1)
    found = world.scheduler.explain(world.pod("web").uid)
    assert (found.node, found.because, found.group) == ("n0", "", None)
    world.run()
    assert world.bindings == {"web": "n0"}


def test_a_pod_that_fits_nowhere_has_the_reasons_of_the_event() -> None:
    world = a_world(a_pod("big", cpu=9))
    found = world.scheduler.explain(world.pod("big").uid)
    world.run()
    assert found.node is None and world.event_notes("big") == [found.why_not]


def test_a_bound_pod_is_explained_as_if_it_had_no_node() -> None:
    """Its own room counts as free, and it stays bound."""
    world = a_world(a_pod("web", cpu=1, node="n0"), nodes=1)
    assert world.scheduler.explain(world.pod("web").uid).node == "n0"
    assert set(world.scheduler.state.pods) == {world.pod("web").uid}
    world.check()


@pytest.mark.parametrize(
    ("count", "needed", "nodes", "found"),
    [
        pytest.param(2, 2, 2, {"n0", "n1"}, id="a group that fits"),
        pytest.param(3, 3, 2, {None}, id="a group that does not fit"),
        pytest.param(1, 2, 2, {None}, id="a group with too few members"),
    ],
)
def test_a_member_is_explained_with_its_group(count: int, needed: int, nodes: int, found: set[str | None]) -> None:
    world = a_world(*members(count, needed), nodes=nodes)
    explained = world.scheduler.explain_all([pod.uid for pod in world.pods()])
    assert {each.node for each in explained.values()} == found
    assert all(each.why_not for each in explained.values() if each.node is None)
    world.run()
    assert set(world.bindings.values()) == found - {None}


def test_each_group_is_looked_at_once() -> None:
    """All members of a group have the same explanation of the group."""
    world = a_world(*members(3, needed=3), nodes=3)
    explained = world.scheduler.explain_all([pod.uid for pod in world.pods()])
    assert len({id(each.group) for each in explained.values()}) == 1


def story(reads: int) -> World:
    """Single pods and groups that fit or do not, explained so many times before each run."""
    ledger = Ledger()
    world = a_world(nodes=3, reserve=[ledger])
    for pods in ([a_pod("web", cpu=1)], members(2, needed=2), [a_pod("big", cpu=9)], [a_pod("late", cpu=1)]):
        world.submit(*pods)
        for _ in range(reads):
            world.scheduler.explain_all(list(world.scheduler.pods))
        assert ledger.held == set(world.scheduler.assumed_pods) | {pod.uid for pod in world.pods() if pod.node_name}
        world.run()
    world.advance(30)
    return world


def test_explaining_changes_nothing() -> None:
    """Every action afterwards is the same, whether pods were explained or not."""
    read, unread = story(reads=3), story(reads=0)
    assert read.actions == unread.actions
    assert read.bindings == unread.bindings


def test_an_unknown_pod_cannot_be_explained() -> None:
    with pytest.raises(KeyError):
        a_world().scheduler.explain("nobody")


def test_explaining_a_bound_pod_does_not_change_which_pods_are_evicted() -> None:
    """Victims of equal importance are taken by the order in which the state knows them."""

    def evicted(*explained: str) -> list[str]:
        world = World(nodes=[a_node("n", cpu=3)], profiles=profiles(postBind=[Gangs()]))
        world.submit(*(a_pod(name, cpu=1, node="n") for name in ("a", "b", "c")))
        for name in explained:
            assert world.scheduler.explain(world.pod(name).uid).node == "n"
        labels = {"gang": "g", "min": "2"}
        world.submit(*(a_pod(f"g{number}", cpu=1, priority=5, labels=labels) for number in range(2)))
        world.run()
        return [action.pod.name for action in world.actions if isinstance(action, Evict)]

    assert evicted() == evicted("a") == evicted("b") == evicted("c", "a")


def test_a_group_in_flight_with_too_few_members_left_is_gated() -> None:
    """One member is deleted while an extender is asked about the group."""
    extender = Extender(url_prefix="http://extender", filter_verb="filter")
    world = World(nodes=["n0", "n1"], profiles=profiles(postBind=[Gangs()]), extenders=[extender])
    world.answers = lambda _: None
    first, second = members(2, needed=2)
    world.submit(first, second)
    world.run()
    world.delete(second)
    found = world.scheduler.explain(first.uid)
    assert found.node is None and "1 of 2 pods exist" in found.why_not


def test_a_group_that_asks_for_more_members_now_is_explained_as_such() -> None:
    """Before the next attempt asks its plugin again."""

    class Growing(Gangs):
        minimum = 2

        def group_of(self, pod: Pod, cluster: Cluster) -> Group:
            return Group("default/g", self.minimum)

    groups = Growing()
    world = World(nodes=["n0", "n1"], profiles=profiles(postBind=[groups]))
    world.submit(*members(2, needed=2))
    (one, *_) = world.pods()
    assert world.scheduler.explain(one.uid).node is not None
    groups.minimum = 5
    assert world.scheduler.explain(one.uid).node is None


def test_pods_that_would_be_evicted_for_a_pod_or_for_a_group_are_named() -> None:
    low = [a_pod(f"low{number}", cpu=1, node=f"n{number}") for number in range(2)]
    gang = [a_pod(f"g{number}", cpu=1, priority=9, labels={"gang": "g", "min": "2"}) for number in range(2)]
    world = a_world(*low, *gang)
    found = world.scheduler.explain(world.pod("g0").uid)
    assert found.node is None and found.evictions is not None
    assert {each.key for each in found.evictions.victims} == {"default/low0", "default/low1"}
    assert set(found.evictions.nodes) == {"default/g0", "default/g1"}
    assert world.scheduler.explain(world.pod("g1").uid).evictions == found.evictions
    assert not [action for action in world.actions if isinstance(action, Evict)]
    alone = a_world(*low, a_pod("high", cpu=1, priority=9))
    evicted = alone.scheduler.explain(alone.pod("high").uid).evictions
    assert evicted is not None and len(evicted.victims) == 1 and list(evicted.nodes) == ["default/high"]
