"""Nominations: when a pod's status names a node, when that is cleared, and which pods must respect it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from stowplan.columns.nodes.views import Nodes
from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import Reject
from stowplan.framework.interfaces import Wake
from stowplan.objects.actions import Evict, Nominate, Patch
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.situations.recorders import HIGH, LOW, MEDIUM, Asked, Held, of, only, reason, uid, where
from tests.engine.small_plugins import profiles


def nominated(world: World, name: str) -> str:
    """Return the pod's nominated node; the scheduler's state must agree."""
    said = world.pod(name).nominated_node
    assert world.scheduler.state.nominated_pods.node_of(uid(name)) == said
    return said


def cleared(world: World) -> None:
    """Delete the terminating pods."""
    world.delete(*(pod for pod in world.pods() if pod.terminating))


# -- set, and cleared again


def preempting(cpu: int, low: Iterable[int], medium: int, *nodes: Node, **at: Any) -> World:
    """Return a world in which `medium` has preempted pods of a low priority, which are terminating."""
    named = profiles(**at)
    world = World(nodes=[a_node("node", cpu=cpu), *nodes], profiles=named, graceful=True)
    world.submit(*(a_pod(f"low-{number}", cpu=each, priority=LOW) for number, each in enumerate(low)))
    world.run()
    assert set(world.bindings.values()) == {"node"}
    world.submit(a_pod("medium", cpu=medium, priority=MEDIUM))
    world.run()
    assert where(world, "medium") is QueueStage.UNSCHEDULABLE and nominated(world, "medium") == "node"
    return world


def test_cleared_when_a_higher_priority_preempts_on_that_node() -> None:
    world = preempting(5, [1, 1, 1, 1], 3)
    world.submit(a_pod("high", cpu=4, priority=HIGH))
    world.run()
    assert nominated(world, "high") == "node" and nominated(world, "medium") == ""
    cleared(world)
    world.advance(60)
    assert where(world, "high") == "node" and nominated(world, "medium") == ""
    assert where(world, "medium") is QueueStage.UNSCHEDULABLE


def test_cleared_and_requeued_at_once_since_another_node_may_fit() -> None:
    """The cleared nomination requeues the pod itself, before a victim is deleted."""
    world = preempting(4, [2, 2], 2)
    world.submit(a_pod("other", cpu=4, priority=LOW + 50, node="node2"), a_node("node2", cpu=4))
    world.run()
    assert where(world, "medium") is QueueStage.UNSCHEDULABLE and nominated(world, "medium") == "node"
    world.submit(a_pod("high", cpu=4, priority=HIGH))
    world.run()
    assert nominated(world, "high") == "node" and world.pod("other").terminating
    assert nominated(world, "medium") == "node2"


def test_cleared_when_a_higher_priority_takes_the_room_without_preempting() -> None:
    world = preempting(2, [1], 2)
    world.submit(a_pod("high", cpu=1, priority=HIGH))
    world.run()
    assert where(world, "high") == "node" and nominated(world, "medium") == "node", "not tried again yet"
    cleared(world)
    world.run()
    assert where(world, "medium") is QueueStage.UNSCHEDULABLE and nominated(world, "medium") == ""


def test_cleared_when_no_node_is_left() -> None:
    world = preempting(1, [1], 1)
    world.delete(a_node("node"))
    cleared(world)
    world.run()
    assert nominated(world, "medium") == ""
    assert where(world, "medium") is QueueStage.BACKOFF and reason(world, "medium") == "Unschedulable"
    assert world.event_notes("medium", "FailedScheduling")[-1] == "no nodes available to schedule pods"


def test_cleared_when_eviction_cannot_help_on_the_nodes_that_are_left() -> None:
    world = preempting(1, [1], 1, a_node("tainted", cpu=1, taints=["tainted=true:NoSchedule"]))
    world.delete(a_node("node"))
    cleared(world)
    world.run()
    assert nominated(world, "medium") == "" and where(world, "medium") is QueueStage.UNSCHEDULABLE


def test_cleared_when_the_pod_fails_at_pre_bind() -> None:
    def pre_bind(pod: Pod, *_: Any) -> tuple[()]:
        if pod.name == "medium":
            raise KeyError("oops")
        return ()

    world = preempting(1, [1], 1, preBind=[Asked(pre_bind=pre_bind)])
    cleared(world)
    world.run()
    assert nominated(world, "medium") == "" and where(world, "medium") is QueueStage.BACKOFF


def test_cleared_by_the_binding() -> None:
    world = World(nodes=["node"])
    world.submit(a_pod("web", cpu=4, nominated="node"))
    world.run()
    assert world.bindings == {"web": "node"} and nominated(world, "web") == ""


def test_set_by_preemption() -> None:
    world = World(nodes=["node"])
    world.submit(a_pod("victim", cpu=4, priority=1, node="node"))
    held = Held(world, Evict)
    world.submit(a_pod("preemptor", cpu=2, priority=100))
    world.run()
    assert where(world, "preemptor") is QueueStage.UNSCHEDULABLE and nominated(world, "preemptor") == "node"
    held.let_go()
    world.run()
    assert world.bindings == {"preemptor": "node"}


def test_changed_by_preemption_on_another_node() -> None:
    world = World(nodes=["node", "node2"])
    world.submit(*(a_pod(f"victim-{number}", cpu=2, priority=1, node="node") for number in (1, 2)))
    world.submit(a_pod("victim-3", cpu=3, priority=1, node="node2"))
    held = Held(world, Evict)
    world.submit(a_pod("preemptor", cpu=4, priority=100, nominated="node"))
    world.run()
    assert held.names() == ["victim-3"], "one victim is better than two"
    assert where(world, "preemptor") is QueueStage.UNSCHEDULABLE and nominated(world, "preemptor") == "node2"
    held.let_go()
    world.run()
    assert where(world, "preemptor") == "node2"


# -- who must respect it


def test_a_nomination_that_cannot_be_used_is_ignored_at_once() -> None:
    world = World(nodes=["node"])
    world.submit(a_pod("too-big", cpu=5, priority=1, nominated="node"))
    world.submit(a_pod("fits", cpu=3, priority=1))
    world.run()
    assert where(world, "too-big") is QueueStage.UNSCHEDULABLE and nominated(world, "too-big") == ""
    assert world.bindings == {"fits": "node"}


def test_a_nomination_does_not_bind_a_higher_priority() -> None:
    world = World(nodes=["node"])
    world.submit(a_pod("low", cpu=4, priority=1, nominated="node"))
    world.submit(a_pod("high", cpu=4, priority=100))
    world.run()
    assert world.bindings == {"high": "node"}
    assert where(world, "low") is QueueStage.UNSCHEDULABLE and nominated(world, "low") == ""


@pytest.mark.parametrize(
    ("taken", "node"),
    [
        pytest.param("node-2", "node-1", id="there is room: the nominated node"),
        pytest.param("node-1", "node-2", id="there is none: another node"),
    ],
)
def test_the_nominated_node_is_evaluated_first(taken: str, node: str) -> None:
    world = World(nodes=[a_node(name, cpu="500m", memory=500, pods=32) for name in ("node-1", "node-2")])
    world.submit(a_pod("low", cpu="100m", priority=LOW, node=taken))
    world.submit(a_pod("preemptor", cpu="500m", priority=HIGH, nominated="node-1"))
    world.run()
    assert where(world, "preemptor") == node
    looked_at = dict(world.explain("preemptor").trail.rejections())
    assert set(looked_at) == ({"node-1"} if node == "node-1" else {"node-1", "node-2"})


def test_the_nominated_node_is_taken_though_another_has_a_better_score() -> None:
    world = World(nodes=[a_node("small", cpu=1), a_node("large", cpu=64)])
    world.submit(a_pod("web", cpu="500m", nominated="small"), a_pod("other", cpu="500m"))
    world.run()
    assert world.bindings == {"web": "small", "other": "large"}


# -- pods for which a nomination leaves no room


def with_a_nomination() -> World:
    """Return a world in which `mid` waits until `low` is deleted; its nomination leaves no room for `small`."""
    world = World(nodes=[a_node("node", memory=32)], graceful=True)
    world.submit(a_pod("low", memory=10, priority=LOW))
    world.run()
    world.submit(a_pod("mid", memory=25, priority=MEDIUM))
    world.run()
    assert nominated(world, "mid") == "node" and world.pod("low").terminating
    world.submit(a_pod("small", memory=20, priority=LOW))
    world.run()
    assert where(world, "small") is QueueStage.UNSCHEDULABLE
    return world


def test_requeued_when_the_nominated_pod_is_deleted() -> None:
    world = with_a_nomination()
    world.delete(world.pod("mid"))
    assert where(world, "small") is QueueStage.BACKOFF
    world.run()
    assert where(world, "small") == "node"


def test_requeued_when_the_nomination_is_cleared() -> None:
    world = with_a_nomination()
    world.submit(a_pod("mid", memory=25, priority=MEDIUM))
    assert where(world, "small") is QueueStage.BACKOFF
    world.run()
    assert where(world, "small") == "node"


def test_requeued_when_a_higher_priority_makes_the_nomination_void() -> None:
    world = with_a_nomination()
    world.submit(a_pod("high", memory=10, priority=HIGH))
    world.run()
    assert where(world, "high") == "node" and where(world, "small") is QueueStage.UNSCHEDULABLE
    cleared(world)
    world.advance(60)
    assert where(world, "mid") is QueueStage.UNSCHEDULABLE and nominated(world, "mid") == ""
    assert where(world, "small") == "node"


def test_a_cleared_nomination_does_not_requeue_a_higher_priority() -> None:
    world = with_a_nomination()
    world.submit(a_pod("huge", memory=30, priority=HIGH, preemptionPolicy="Never"))
    world.run()
    assert where(world, "huge") is QueueStage.UNSCHEDULABLE
    world.delete(world.pod("mid"))
    assert where(world, "huge") is QueueStage.UNSCHEDULABLE and where(world, "small") is QueueStage.BACKOFF


# -- announced before a binding that takes a while


@pytest.mark.parametrize(
    ("at", "step"),
    [
        pytest.param(
            {"preBind": Asked(pre_bind=[Patch(kind="ConfigMap", key="default/x", body={})])},
            BindStep.PRE_BINDING,
            id="a pre-bind has something to do",
        ),
        pytest.param({"permit": Asked(permit=600.0)}, BindStep.WAITING, id="a permit makes the pod wait"),
        pytest.param({"permit": Asked(permit=None)}, None, id="a permit lets it go on"),
        pytest.param({}, None, id="no plugin has anything to do"),
    ],
)
def test_a_node_is_nominated_before_a_slow_binding(at: dict[str, Asked], step: BindStep | None) -> None:
    seen: list[str] = []
    after = Asked("After", post_bind=lambda pod, *_: seen.append(world.pod(pod.name).nominated_node))
    named = profiles(postBind=[after], **{point: [plugin] for point, plugin in at.items()})
    world: World = World(nodes=[f"n{number}" for number in range(10)], profiles=named)
    held = Held(world, Patch)
    world.submit(a_pod("web"))
    world.run()
    if step is None:
        assert list(world.bindings) == ["web"] and not of(world, Nominate)
    else:
        placing = world.scheduler.assumed_pods[uid("web")]
        assert placing.step is step and not world.bindings
        assert world.pod("web").nominated_node == placing.node_name
        assert held.actions == [] or world.actions.index(of(world, Nominate)[0]) < world.actions.index(held.actions[0])
        held.let_go()
        world.allow(uid("web"), "Asked")
        assert list(world.bindings) == ["web"]
    assert world.pod("web").nominated_node == "" and seen == [""]


# -- one update of a node, two things in it


class FirstTaint:
    """Rejects nodes with taints, and is registered for changes of taints only."""

    def filter(self, pod: Pod, nodes: Nodes) -> list[Reject]:
        return [Reject(nodes.taints.where(bool), "tainted")]

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("UpdateNodeTaint",))


def test_an_update_of_a_node_is_one_cluster_event_per_changed_aspect() -> None:
    world = World(nodes=[a_node("a", taints=["closed:NoSchedule"])], profiles=only(filter=[FirstTaint()]))
    world.submit(a_pod("web"))
    world.run()
    assert where(world, "web") is QueueStage.UNSCHEDULABLE
    world.submit(a_node("a", labels={"foo": "bar"}, taints=["closed:NoSchedule"]))
    assert where(world, "web") is QueueStage.UNSCHEDULABLE, "it did not register for labels"
    world.submit(a_node("a", labels={"foo": "baz"}))
    assert where(world, "web") is QueueStage.BACKOFF
    world.run()
    assert world.bindings == {"web": "a"}
