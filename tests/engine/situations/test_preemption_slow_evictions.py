"""Slow evictions: until the API server has accepted all of them, the preemptor is not attempted again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stowplan.columns.nodes.views import Nodes
from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import Reject
from stowplan.framework.interfaces import Wake
from stowplan.objects.actions import Bind, Evict
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.situations.recorders import Asked, Held, of, uid, where
from tests.engine.small_plugins import profiles

NOT_TRIED = (QueueStage.UNSCHEDULABLE, QueueStage.GATED)


def a_world(*victims: int, graceful: bool = False, **at: Any) -> World:
    """Return a world with one node of four CPUs, and pods on it with these requests."""
    world = World(
        nodes=[a_node("node", cpu=4)], profiles=profiles(**at), initial_backoff=0, max_backoff=0, graceful=graceful
    )
    world.submit(*(a_pod(f"victim-{at}", cpu=cpu, node="node", priority=1) for at, cpu in enumerate(victims)))
    return world


def submit(world: World, name: str, cpu: int, priority: int) -> None:
    world.submit(a_pod(name, cpu=cpu, priority=priority))
    world.run()


class Friends:
    """Activates the preemptor when the friend gets its node."""

    def siblings(self, pod: Pod, cluster: Any) -> list[str]:
        return [uid("preemptor")] if pod.name == "friend" else []


@pytest.mark.parametrize("victims", [pytest.param([2, 2], id="two victims"), pytest.param([1], id="a single victim")])
def test_a_preemptor_is_attempted_when_the_last_eviction_was_accepted(victims: list[int]) -> None:
    world = a_world(*victims)
    held = Held(world, Evict)
    submit(world, "preemptor", 4, 100)
    assert where(world, "preemptor") in NOT_TRIED and len(held.actions) == len(victims)
    assert world.pod("preemptor").nominated_node == "node"
    for _ in victims[1:]:
        held.let_go(1)
        assert where(world, "preemptor") in NOT_TRIED, "the others are still to be told"
    held.let_go()
    assert where(world, "preemptor") is QueueStage.ACTIVE
    world.run()
    assert world.bindings == {"preemptor": "node"}


@pytest.mark.parametrize("victims", [pytest.param([2, 2], id="two victims"), pytest.param([4], id="a single victim")])
def test_a_preemptor_is_not_attempted_earlier_even_if_a_plugin_activates_it(victims: list[int]) -> None:
    world = a_world(*victims, reserve=[Friends()])
    held = Held(world, Evict)
    submit(world, "preemptor", 4, 100)
    world.submit(a_pod("friend", priority=1000))
    world.run()
    assert where(world, "friend") == "node"
    assert where(world, "preemptor") in NOT_TRIED and len(of(world, Evict)) == len(victims)
    held.let_go()
    world.run()
    assert where(world, "preemptor") == "node"


def test_a_preemptor_whose_evictions_fail_is_requeued() -> None:
    world = a_world(2, 2)
    failing = iter([Result(0, 500, "no")])
    world.answers = lambda action: (
        Result(action.id, 500, "no") if isinstance(action, Evict) and next(failing, None) else Result(action.id)
    )
    submit(world, "preemptor", 4, 100)
    assert len(of(world, Evict)) == 3, "the one that failed is told again"
    assert world.bindings == {"preemptor": "node"}


def test_a_lower_priority_does_not_take_the_room() -> None:
    world = a_world(2, 2)
    held = Held(world, Evict)
    submit(world, "high", 4, 100)
    submit(world, "mid", 4, 50)
    assert {where(world, "high"), where(world, "mid")} <= set(NOT_TRIED)
    assert len(held.actions) == 2, "no pod is evicted for the lower priority"
    held.let_go()
    assert where(world, "high") is QueueStage.ACTIVE
    world.run()
    assert world.bindings == {"high": "node"} and where(world, "mid") is QueueStage.UNSCHEDULABLE


def test_a_higher_priority_takes_the_room() -> None:
    world = a_world(1, 1, 1, 1)
    held = Held(world, Evict)
    submit(world, "high", 4, 100)
    assert world.pod("high").nominated_node == "node"
    submit(world, "super-high", 4, 200)
    assert where(world, "super-high") in NOT_TRIED and where(world, "high") in NOT_TRIED
    assert world.pod("super-high").nominated_node == "node" and world.pod("high").nominated_node == ""
    assert set(Counter(held.names()).values()) == {1}, "no pod is evicted twice"
    held.let_go()
    world.run()
    assert world.bindings == {"super-high": "node"} and where(world, "high") is QueueStage.UNSCHEDULABLE


def test_a_lower_priority_also_preempts_where_there_is_room_for_both() -> None:
    world = a_world(1, 1, 1, 1)
    held = Held(world, Evict)
    submit(world, "high", 2, 100)
    assert len(held.actions) == 2
    submit(world, "mid", 2, 50)
    assert where(world, "mid") in NOT_TRIED and world.pod("mid").nominated_node == "node"
    assert set(held.names()) == {f"victim-{number}" for number in range(4)}
    held.let_go()
    assert {where(world, "high"), where(world, "mid")} == {QueueStage.ACTIVE}
    world.run()
    assert world.bindings == {"high": "node", "mid": "node"} and world.bound[0] == uid("high")


# -- a victim whose binding is under way


@pytest.mark.parametrize(
    ("graceful", "resumed"),
    [
        pytest.param(False, True, id="is deleted, and its binding fails later"),
        pytest.param(True, False, id="is terminating, and its binding never ends"),
        pytest.param(True, True, id="is terminating, and its binding fails later"),
    ],
)
def test_a_victim_that_is_being_bound(graceful: bool, resumed: bool) -> None:
    """What plugins reserved for the victim is released at once, without waiting until its binding fails."""
    plugin = Asked()
    world = a_world(graceful=graceful, reserve=[plugin])
    binding = Held(world, Bind, pods=["slow"])
    evicting = Held(world, Evict)
    submit(world, "slow", 2, 1)
    assert where(world, "slow") is BindStep.BINDING
    submit(world, "preemptor", 4, 100)
    assert where(world, "preemptor") in NOT_TRIED and evicting.names() == ["slow"]
    evicting.let_go()
    assert where(world, "slow") == "" and plugin.count("unreserve", "slow") == 1
    assert where(world, "preemptor") is QueueStage.ACTIVE
    world.run()
    assert world.bindings == {"preemptor": "node"}
    if resumed:
        binding.let_go()
        world.advance(60)
    world.check()
    assert world.bindings == {"preemptor": "node"} and not world.scheduler.queue.units
    assert world.bound == [uid("preemptor")]


# -- what wakes the preemptor


class Shy:
    """Rejects nodes with pods called blocking, and registers for events that never help."""

    def filter(self, pod: Pod, nodes: Nodes) -> list[Reject]:
        return [Reject(nodes.requested["pods"] >= 1, "node has blocking pod")]

    def wakes_on(self) -> list[Wake]:
        return [Wake("Pod", ("Delete",), hint="never")]

    def never(self, *_: Any) -> bool:
        return False


def test_a_preemptor_that_no_hint_requeues_is_attempted_after_a_while() -> None:
    world = a_world(1, 1, filter=[Shy()])
    held = Held(world, Evict)
    submit(world, "preemptor", 0, 100)
    assert where(world, "preemptor") in NOT_TRIED and len(held.actions) == 2
    held.let_go()
    world.run()
    assert [pod.name for pod in world.pods()] == ["preemptor"]
    assert where(world, "preemptor") is QueueStage.UNSCHEDULABLE
    world.advance(299)
    assert where(world, "preemptor") is QueueStage.UNSCHEDULABLE
    world.advance(2)
    assert world.bindings == {"preemptor": "node"}


def test_a_pod_that_loses_its_node_to_a_higher_priority_finds_another() -> None:
    """Before the last eviction is requested, another pod takes the room of the others. Then a second node is added."""
    world = a_world(1, 1, 1)
    binding = Held(world, Bind, pods=["slow"])
    submit(world, "slow", 1, 1)
    last = Held(world, Evict, pods=["slow"])
    submit(world, "mid", 4, 50)
    assert last.names() == ["slow"] and len(world.bindings) == 0
    assert where(world, "mid") in NOT_TRIED, "one victim is still to be told"
    world.submit(a_node("node2", cpu=4))
    world.submit(*(a_pod(f"other-{number}", cpu=1, node="node2", priority=1) for number in range(4)))
    submit(world, "high", 2, 100)
    assert where(world, "high") == "node" and where(world, "mid") in NOT_TRIED
    on_node2 = Held(world, Evict)
    last.let_go()
    assert where(world, "mid") is QueueStage.ACTIVE
    world.run()
    assert where(world, "mid") in NOT_TRIED and sorted(on_node2.names()) == [f"other-{n}" for n in range(4)]
    assert world.pod("mid").nominated_node == "node2"
    on_node2.let_go()
    world.run()
    assert where(world, "mid") == "node2"
    assert binding.names() == ["slow"]
