"""Requeueing: by cluster events, after failures, and early if the active queue is empty.

The events of each built-in plugin are in the tables of `test_requeueing_nodes.py`, `_pods.py` and `_volumes.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from stowplan.columns.nodes.views import Nodes
from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import Reject
from stowplan.framework.interfaces import Wake
from stowplan.objects.actions import Bind, PodRef
from stowplan.objects.changes import Gone
from stowplan.objects.custom_resources import CustomResource
from stowplan.objects.meta import Object, ObjectMeta
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.situations.recorders import Asked, attempts, of, only, rejectors, uid, where
from tests.engine.situations.requeueing import away, called, in_group, queued_again, rejected, spread
from tests.engine.small_plugins import profiles

ANTI = {"anti1": "anti1"}


class Foo(Object, frozen=True):
    """A kind that only a plugin reads."""


class NeedsFoo:
    """Rejects every node, and registers for all events of its own kind."""

    reads = (CustomResource(Foo, group="example.com", version="v1", plural="foos"),)

    def filter(self, pod: Pod, nodes: Nodes) -> list[Reject]:
        return [Reject(np.ones(len(nodes), np.bool_), "always fail")]

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Foo", ("*",))


def test_a_pod_is_requeued_by_a_kind_that_only_its_plugin_reads() -> None:
    world = World(nodes=["a"], profiles=profiles(filter=[NeedsFoo()]), initial_backoff=0, max_backoff=0)
    world.submit(a_pod("web"))
    world.run()
    assert where(world, "web") is QueueStage.UNSCHEDULABLE and rejectors(world, "web") == {"NeedsFoo"}
    foo = Foo(metadata=ObjectMeta(name="foo1", namespace="default"))
    for tried in (1, 2):
        assert attempts(world, "web") == tried
        world.submit(foo) if tried == 1 else world.delete(foo)
        assert where(world, "web") is QueueStage.ACTIVE
        world.run()
    assert where(world, "web") is QueueStage.UNSCHEDULABLE and attempts(world, "web") == 3


def test_a_pod_whose_binding_failed_is_requeued_without_an_event() -> None:
    tries: list[str] = []

    def bind(pod: Pod, node_name: str) -> Bind:
        tries.append(node_name)
        if len(tries) == 1:
            raise KeyError("oops")
        return Bind(pod=PodRef(pod.namespace, pod.name, pod.uid), node_name=node_name)

    world = World(nodes=["a"], profiles=only(bind=[Asked(bind=bind)]))
    world.submit(a_pod("web"))
    world.run()
    assert tries == ["a"] and where(world, "web") is QueueStage.BACKOFF
    world.advance(1)
    assert tries == ["a", "a"] and world.bindings == {"web": "a"} and len(of(world, Bind)) == 1


class Slow:
    """Delays every pod, and registers for labels of nodes; counts the calls of its hint."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def permit(self, pod: Pod, *_: Any) -> float:
        return 30.0

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("UpdateNodeLabel",), hint="helps")

    def helps(self, pod: Pod, *_: Any) -> bool:
        self.asked.append(pod.name)
        return True


def test_events_during_a_wait_count_when_the_pod_is_rejected() -> None:
    plugin = Slow()
    world = World(nodes=["a"], profiles=profiles(permit=[plugin]), initial_backoff=0, max_backoff=0)
    world.submit(a_pod("pod-1"))
    world.run()
    world.submit(a_node("a", labels={"updated": ""}))
    world.submit(a_pod("pod-2"))
    world.run()
    assert {where(world, "pod-1"), where(world, "pod-2")} == {BindStep.WAITING} and plugin.asked == []
    world.reject(uid("pod-1"), "Slow", "go away")
    assert where(world, "pod-1") is QueueStage.ACTIVE, "the node changed since it was tried"
    world.allow(uid("pod-2"), "Slow")
    world.run()
    assert world.bindings == {"pod-2": "a"} and where(world, "pod-1") is BindStep.WAITING
    assert plugin.asked == ["pod-1"]
    world.reject(uid("pod-1"), "Slow", "go away")
    assert where(world, "pod-1") is QueueStage.UNSCHEDULABLE, "nothing happened this time"


def test_a_pod_in_backoff_is_attempted_at_once_if_the_active_queue_is_empty() -> None:
    world = World(nodes=["a"], initial_backoff=1000, max_backoff=1000)
    world.submit(a_pod("web", **in_group("b")))
    world.run()
    assert where(world, "web") is QueueStage.UNSCHEDULABLE
    world.submit(a_node("b", labels={"group": "b"}))
    assert where(world, "web") is QueueStage.BACKOFF
    world.run()
    assert world.bindings == {"web": "b"} and world.now == 0.0


def test_a_plugin_that_narrows_the_search_counts_as_rejecting() -> None:
    nodes = [a_node("n", cpu=2, labels={"node": "n"}), a_node("m", cpu=2, labels={"node": "m", "zone": "z"})]
    world = rejected("NodeAffinity NodeResourcesFit", nodes, [a_pod("pod1", cpu=4, **called("n"))])
    assert rejectors(world, "pod1") == {"NodeAffinity", "NodeResourcesFit"}


@pytest.mark.parametrize(
    ("there", "happens"),
    [
        pytest.param([], [a_pod("other", labels=ANTI, schedulerName="another")], id="one comes"),
        pytest.param(
            [a_pod("other", schedulerName="another")],
            [a_pod("other", labels=ANTI, schedulerName="another")],
            id="one changes",
        ),
        pytest.param(
            [a_pod("other", labels=ANTI, schedulerName="another")],
            [Gone(a_pod("other", schedulerName="another"))],
            id="one goes",
        ),
    ],
)
def test_a_pod_without_a_node_requeues_no_other_pod(there: list[Pod], happens: list[Object | Gone]) -> None:
    nodes = [a_node("n", labels={"node": "n"}), a_pod("near", labels=ANTI, node="n"), *there]
    waiting = [
        a_pod("pod1", **away("anti1", "node")),
        a_pod("pod2", labels={"key1": "val"}, **spread("key1", "missing", 2)),
    ]
    world = rejected("InterPodAffinity PodTopologySpread", nodes, waiting)
    assert queued_again(world, waiting, happens) == set()
