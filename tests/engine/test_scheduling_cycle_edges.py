"""Edges of the scheduling cycle: a pod from its submission to its node, through the queue and its attempts.

These are the edges above `reserved` in the drawing at the top of `engine/scheduler.py`, one test each, named after it:
from, to, and why. The others are in `test_binding_cycle_edges.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import Reject, RejectPod
from stowplan.framework.interfaces import Wake
from stowplan.objects.actions import Ask, Evict
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.life_cycle_worlds import (
    EXTENDER,
    FULL,
    GATED,
    a_gang,
    a_world,
    fine,
    no_answer,
    of,
    reason,
    refused,
    stage,
)
from tests.engine.small_plugins import Gangs, Notes, profiles

# -- queued


def test_submitted_to_active() -> None:
    world = World(nodes=["a"])
    world.submit(a_pod("web"))
    assert stage(world) is QueueStage.ACTIVE


def test_submitted_to_gated() -> None:
    world = World(nodes=["a"])
    world.submit(a_pod("web", **GATED))
    world.run()
    assert stage(world) is QueueStage.GATED and not world.actions


def test_gated_to_active_when_its_gate_opens() -> None:
    world = World(nodes=["a"])
    world.submit(a_pod("web", **GATED))
    world.submit(a_pod("web"))
    assert stage(world) is QueueStage.ACTIVE
    world.run()
    assert world.bindings == {"web": "a"}


class Curfew:
    """A gate that is open until a test closes it; a new node makes the queue ask again."""

    open = True

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> RejectPod | None:
        return None if self.open else RejectPod(("too late",), resolvable=False)

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("Add",))


def test_unschedulable_to_gated_when_its_gate_closes() -> None:
    curfew = Curfew()
    world = a_world(curfew, at=["preEnqueue"])
    world.submit(a_pod("web", cpu=2))
    world.run()
    assert stage(world) is QueueStage.UNSCHEDULABLE
    curfew.open = False
    world.submit(a_node("b", cpu=4))
    world.advance(60)
    assert stage(world) is QueueStage.GATED
    curfew.open = True
    world.submit(a_node("c", cpu=4))
    world.run()
    assert "web" in world.bindings


def test_unschedulable_to_backoff_when_requeued_before_its_backoff_is_over() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", cpu=2))
    world.run()
    world.submit(a_node("a", cpu=1, labels={"of": "no help"}))
    assert stage(world) is QueueStage.UNSCHEDULABLE
    world.submit(a_node("b", cpu=4))
    assert stage(world) is QueueStage.BACKOFF


def test_unschedulable_to_active_when_requeued_after_its_backoff() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", cpu=2))
    world.advance(2)
    world.submit(a_node("b", cpu=4))
    assert stage(world) is QueueStage.ACTIVE


def test_unschedulable_to_active_after_five_minutes_anyway() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", cpu=2))
    world.advance(299)
    assert len(world.event_notes("web")) == 1
    world.advance(2)
    assert len(world.event_notes("web")) == 2


def test_backoff_to_active_when_it_is_over() -> None:
    world = a_world(Notes("one", [], reserve=KeyError("oops")))
    world.submit(a_pod("web"))
    world.run()
    assert stage(world) is QueueStage.BACKOFF and world.scheduler.next_deadline() == pytest.approx(1.0)


def test_backoff_to_deciding_early_when_nothing_is_active() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", cpu=2))
    world.run()
    world.submit(a_node("b", cpu=4))
    assert stage(world) is QueueStage.BACKOFF and world.now == 0
    world.run()
    assert world.bindings == {"web": "b"}


@pytest.mark.parametrize("before", ["active", "backoff", "unschedulable", "deciding"])
def test_a_group_with_too_few_members_to_gated(before: str) -> None:
    extenders = (EXTENDER,) if before == "deciding" else ()
    room = a_node("a", cpu=8 if before in ("active", "deciding") else 1)
    world = World(nodes=[room], profiles=profiles(postBind=[Gangs()]), extenders=extenders)
    world.answers = no_answer(Ask)
    world.submit(*(gang := a_gang(2, cpu=2)))
    if before != "active":
        world.run()
    if before == "backoff":
        world.submit(a_node("b", cpu=8))
    (unit,) = world.scheduler.queue.units.values()
    assert unit.stage.value == {"deciding": "in flight"}.get(before, before)
    world.delete(gang[0])
    for ask in of(world, Ask):
        world.deliver_result(Result(ask.id, body={"NodeNames": ["a"]}))
    world.run()
    assert unit.stage is QueueStage.GATED and not world.bindings


def test_unschedulable_to_error_backoff_when_an_eviction_fails() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("small", cpu=1, node="a"))
    world.answers = refused(Evict, 500)
    world.submit(a_pod("web", cpu=1, priority=9))
    world.run()
    assert stage(world) is QueueStage.BACKOFF and world.scheduler.next_deadline() == pytest.approx(1.0)
    assert not world.event_notes("small", "Preempted")
    world.answers = fine
    world.advance(3)
    assert world.bindings == {"web": "a"}


# -- deciding


def test_deciding_to_unschedulable_when_there_is_no_node() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", cpu=2))
    world.run()
    assert stage(world) is QueueStage.UNSCHEDULABLE and reason(world) == "Unschedulable"
    assert world.event_notes("web", "FailedScheduling")[0].startswith(FULL)


class Broken:
    def filter(self, pod: Pod, nodes: Any) -> Iterable[Reject]:
        raise KeyError("oops")


def test_deciding_to_error_backoff_when_a_plugin_raises() -> None:
    world = a_world(Broken(), at=["filter"])
    world.submit(a_pod("web"))
    world.run()
    assert stage(world) is QueueStage.BACKOFF and reason(world) == "SchedulerError"
    assert 'plugin "Broken" failed at filter' in world.event_notes("web", "FailedScheduling")[0]


def test_deciding_to_asking_when_an_extender_must_be_asked() -> None:
    world = World(nodes=["a", "b"], extenders=(EXTENDER,))
    world.answers = no_answer(Ask)
    world.submit(a_pod("web"))
    world.run()
    (asked,) = of(world, Ask)
    assert (asked.verb, set(asked.nodes), asked.deadline) == ("filter", {"a", "b"}, 5.0)
    assert stage(world) is QueueStage.IN_FLIGHT and not world.scheduler.state.pods


def test_asking_to_deciding_when_it_is_answered() -> None:
    world = World(nodes=["a", "b"], extenders=(EXTENDER,))
    world.extender = lambda ask: Result(ask.id, body={"NodeNames": ["b"], "FailedNodes": {"a": "too far"}})
    world.submit(a_pod("web"))
    world.run()
    assert world.bindings == {"web": "b"}


def test_asking_to_error_backoff_when_it_is_never_answered() -> None:
    world = World(nodes=["a", "b"], extenders=(EXTENDER,))
    world.answers = no_answer(Ask)
    world.submit(a_pod("web"))
    world.advance(5)
    assert stage(world) is QueueStage.BACKOFF and reason(world) == "SchedulerError"
    assert "no answer in time" in world.event_notes("web", "FailedScheduling")[0]


def test_deciding_to_reserved_to_bound() -> None:
    world = World(nodes=["a"])
    world.submit(a_pod("web"))
    world.run()
    assert world.bindings == {"web": "a"}
    assert world.event_notes("web") == ["Successfully assigned default/web to a"]
    assert not world.scheduler.queue.units and not world.scheduler.assumed_pods
