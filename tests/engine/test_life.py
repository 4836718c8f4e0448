"""The life of a pod, edge by edge of the drawing at the top of `engine/scheduler.py`."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from stowplan.engine.placing import Step
from stowplan.engine.unit import Stage
from stowplan.objects.actions import Action, Bind, Evict, SetCondition
from stowplan.objects.changes import Result
from tests.builders import a_node, a_pod
from tests.world import World

FULL = "0/1 nodes are available: 1 Insufficient cpu."


def stage(world: World, name: str) -> Stage:
    return world.scheduler.queue.units[world.pod(name).uid].stage


def no_answer(kind: type) -> Any:
    return lambda action: None if isinstance(action, kind) else Result(action.id)


def refused(kind: type, status: int) -> Any:
    return lambda action: Result(action.id, status, "no") if isinstance(action, kind) else Result(action.id)


def of(world: World, kind: type[Action]) -> list[Any]:
    return [action for action in world.actions if isinstance(action, kind)]


def test_submitted_to_bound() -> None:
    world = World(nodes=["a"])
    world.submit(a_pod("web"))
    world.run()
    assert world.bindings == {"web": "a"}
    assert world.said("web") == ["Successfully assigned default/web to a"]
    assert not world.scheduler.queue.units and not world.scheduler.placings


def test_submitted_to_gated_and_gate_opens() -> None:
    world = World(nodes=["a"])
    world.submit(a_pod("web", schedulingGates=[{"name": "quota"}]))
    world.run()
    assert stage(world, "web") is Stage.GATED and not world.bindings
    world.submit(a_pod("web"))
    world.run()
    assert world.bindings == {"web": "a"}


def test_no_node_to_unschedulable_with_condition_and_event() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", cpu=2))
    world.run()
    assert stage(world, "web") is Stage.UNSCHEDULABLE
    condition = world.pod("web").condition("PodScheduled")
    assert condition is not None and condition.reason == "Unschedulable"
    assert condition.message.startswith(FULL)
    assert world.said("web", "FailedScheduling")[0].startswith(FULL)


def test_the_condition_is_written_only_when_it_changes() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", cpu=2))
    world.advance(3 * 300 + 60)
    assert len(of(world, SetCondition)) == 1
    assert len(world.said("web", "FailedScheduling")) > 1


def test_unschedulable_is_woken_by_what_helps() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", cpu=2))
    world.run()
    world.submit(a_node("a", cpu=1, labels={"of": "no help"}))
    assert stage(world, "web") is Stage.UNSCHEDULABLE
    world.submit(a_node("b", cpu=4))
    world.run()
    assert world.bindings == {"web": "b"}


def test_unschedulable_is_tried_after_five_minutes_anyway() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", cpu=2))
    world.run()
    before = len(world.said("web"))
    world.advance(299)
    assert len(world.said("web")) == before
    world.advance(2)
    assert len(world.said("web")) == before + 1


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(409, id="conflict"),
        pytest.param(429, id="too many requests"),
        pytest.param(500, id="server error"),
        pytest.param(503, id="unavailable"),
    ],
)
def test_binding_refused_to_error_backoff_and_again(status: int) -> None:
    world = World(nodes=["a"])
    world.answers = refused(Bind, status)
    world.submit(a_pod("web"))
    world.run()
    assert stage(world, "web") is Stage.BACKOFF and not world.scheduler.placings
    condition = world.pod("web").condition("PodScheduled")
    assert condition is not None and condition.reason == "SchedulerError"
    world.answers = lambda action: Result(action.id)
    world.advance(0.9)
    assert not world.bindings
    world.advance(0.2)
    assert world.bindings == {"web": "a"}


@pytest.mark.parametrize("status", [pytest.param(404, id="not found"), pytest.param(410, id="gone")])
def test_binding_of_a_pod_that_is_gone_to_out(status: int) -> None:
    world = World(nodes=["a"])
    pod = a_pod("web")
    world.answers = refused(Bind, status)
    world.submit(pod)
    world.objects.pop(("Pod", pod.key))
    world.run()
    assert not world.scheduler.queue.units and not world.scheduler.placings and not world.scheduler.state.pods


def test_binding_never_answered_is_read_again() -> None:
    world = World(nodes=["a"], answer_within=10)
    world.answers = no_answer(Bind)
    world.submit(a_pod("web"))
    world.run()
    assert [each.step for each in world.scheduler.placings.values()] == [Step.BINDING]
    world.answers = lambda action: Result(action.id)
    world.advance(20)
    assert world.bindings == {"web": "a"}


def test_errors_in_a_row_back_off_longer_and_longer() -> None:
    world = World(nodes=["a"])
    world.answers = refused(Bind, 500)
    world.submit(a_pod("web"))
    world.advance(60)
    moments = [action.deadline - 30 for action in of(world, Bind)]
    gaps = [round(later - sooner) for sooner, later in itertools.pairwise(moments)]
    assert gaps[:6] == [1, 2, 4, 8, 10, 10]


def test_bound_by_somebody_else_while_binding_to_out() -> None:
    world = World(nodes=["a", "b"])
    world.answers = no_answer(Bind)
    world.submit(a_pod("web", cpu=1))
    world.run()
    ours = next(iter(world.scheduler.placings.values())).node_name
    other = "b" if ours == "a" else "a"
    world.submit(a_pod("web", cpu=1, node=other))
    assert not world.scheduler.placings and not world.scheduler.queue.units
    world.check()


def test_deleted_while_binding_to_out() -> None:
    world = World(nodes=["a"])
    world.answers = no_answer(Bind)
    pod = a_pod("web", cpu=1)
    world.submit(pod)
    world.run()
    world.delete(pod)
    assert not world.scheduler.placings and not world.scheduler.state.pods
    world.check()


def test_recreated_under_the_same_name_while_binding() -> None:
    world = World(nodes=["a"])
    world.answers = no_answer(Bind)
    world.submit(a_pod("web", uid="first"))
    world.run()
    late = of(world, Bind)[0]
    world.delete(a_pod("web", uid="first"))
    world.answers = lambda action: Result(action.id)
    world.submit(a_pod("web", uid="second"))
    world.scheduler.handle(Result(late.id, 404), world.now)
    world.run()
    assert world.bindings == {"web": "a"} and world.pod("web").uid == "second"


def test_a_more_important_pod_evicts_and_takes_the_room() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("small", cpu=1, priority=1))
    world.run()
    world.submit(a_pod("big", cpu=1, priority=9))
    world.advance(2)
    assert world.bindings == {"big": "a"}
    assert [each.pod.name for each in of(world, Evict)] == ["small"]
    assert any(note.startswith("Preempted by pod ") for note in world.said("small", "Preempted"))


def test_a_restart_forgets_nothing_that_matters() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("one", cpu=1), a_pod("two", cpu=1))
    world.run()
    world.restart()
    world.run()
    assert len(world.bindings) == 1
    world.check()
