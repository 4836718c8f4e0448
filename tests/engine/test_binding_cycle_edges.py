"""Edges of the binding cycle: a pod that has a node, from reserved to bound, or rolled back, alone or with its group.

These are the edges from `reserved` on in the drawing at the top of `engine/scheduler.py`, one test each, named after
it: from, to, and why; and the ways out from everywhere. The others are in `test_scheduling_cycle_edges.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.pods import assumed
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import RejectPod
from stowplan.framework.group import Group
from stowplan.objects.actions import Ask, Bind, Evict, Patch, Read, SetCondition
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_pod
from stowplan.testing.world import World
from tests.engine.life_cycle_worlds import (
    EVERYWHERE,
    PATCH,
    UID,
    a_gang,
    a_waiting_world,
    a_world,
    delete,
    fine,
    finish,
    let_somebody_else_bind,
    no_answer,
    of,
    reason,
    recreate,
    refused,
    stage,
    step,
)
from tests.engine.small_plugins import Gangs, Notes, Patience, profiles

# -- reserved


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_reserved_to_unschedulable_when_refused(point: str) -> None:
    log: list[str] = []
    world = a_world(Notes("one", log), Notes("two", log, **{point: RejectPod(("no",))}))
    world.submit(a_pod("web"))
    world.run()
    assert stage(world) is QueueStage.UNSCHEDULABLE and reason(world) == "Unschedulable"
    assert world.event_notes("web") == ["0/1 nodes are available: 1 no."]
    assert log[-2:] == ["two unreserve", "one unreserve"] and not world.scheduler.state.pods


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_reserved_to_error_backoff_when_a_plugin_raises(point: str) -> None:
    log: list[str] = []
    world = a_world(Notes("one", log), Notes("two", log, **{point: KeyError("oops")}))
    world.submit(a_pod("web"))
    world.run()
    assert stage(world) is QueueStage.BACKOFF and reason(world) == "SchedulerError"
    assert f'plugin "two" failed at {point}' in world.event_notes("web")[0]
    assert log[-2:] == ["two unreserve", "one unreserve"] and not world.scheduler.state.pods


def test_reserved_to_waiting() -> None:
    world = a_waiting_world()
    assert step(world) is BindStep.WAITING and not of(world, Bind)
    assert world.scheduler.next_deadline() == 60
    assert world.pod("web").nominated_node == "a"


def test_waiting_to_pre_binding_when_allowed() -> None:
    world = a_world(Patience(), Notes("one", [], pre_bind=[PATCH]))
    world.answers = no_answer(Patch)
    world.submit(a_pod("web", labels={"patience": "60"}))
    world.run()
    world.allow(UID, "Patience")
    assert step(world) is BindStep.PRE_BINDING


def test_waiting_to_unschedulable_when_rejected() -> None:
    world = a_waiting_world()
    world.reject(UID, "Patience", "the others did not come")
    assert stage(world) is QueueStage.UNSCHEDULABLE and not world.scheduler.state.pods
    assert world.event_notes("web") == ["0/1 nodes are available: 1 the others did not come."]
    assert world.pod("web").nominated_node == ""


def test_waiting_to_unschedulable_when_its_time_is_up() -> None:
    world = a_waiting_world(90.0)
    world.advance(89)
    assert step(world) is BindStep.WAITING
    world.advance(1)
    assert stage(world) is QueueStage.UNSCHEDULABLE
    late = "rejected due to timeout after waiting 1m30s at plugin Patience"
    assert world.event_notes("web") == [f"0/1 nodes are available: 1 {late}."]


def test_waiting_to_error_backoff_when_preempted() -> None:
    world = a_waiting_world()
    world.submit(a_pod("big", cpu=1, priority=9))
    world.advance(0.5)
    assert world.bindings == {"big": "a"}
    assert stage(world) is QueueStage.BACKOFF and world.pod("web").terminating is False
    assert world.event_notes("web", "Preempted") == [
        "Preempted by pod uid-of-default-big on node a (in kube-scheduler memory)."
    ]


# -- pre-binding and binding


def test_reserved_to_pre_binding() -> None:
    world = a_world(Notes("one", [], pre_bind=[PATCH]))
    world.answers = no_answer(Patch)
    world.submit(a_pod("web"))
    world.run()
    assert step(world) is BindStep.PRE_BINDING and not of(world, Bind)
    assert world.pod("web").nominated_node == "a"


def test_pre_binding_to_error_backoff_when_a_plugin_raises() -> None:
    log: list[str] = []
    world = a_world(Notes("one", log, pre_bind=KeyError("oops")))
    world.submit(a_pod("web"))
    world.run()
    assert stage(world) is QueueStage.BACKOFF and log[-1] == "one unreserve"
    assert 'plugin "one" failed at pre_bind' in world.event_notes("web")[0]


def test_pre_binding_to_error_backoff_when_an_action_fails() -> None:
    log: list[str] = []
    world = a_world(Notes("one", log, pre_bind=[PATCH]))
    world.answers = refused(Patch, 500)
    world.submit(a_pod("web"))
    world.run()
    assert stage(world) is QueueStage.BACKOFF and log[-1] == "one unreserve" and not world.scheduler.state.pods
    assert world.pod("web").nominated_node == ""
    world.answers = fine
    world.advance(2)
    assert world.bindings == {"web": "a"}


def test_pre_binding_to_binding_when_all_actions_are_done() -> None:
    world = a_world(Notes("one", [], pre_bind=[PATCH, PATCH]))
    world.answers = no_answer(Patch, Bind)
    world.submit(a_pod("web"))
    world.run()
    first, second = of(world, Patch)
    world.deliver_result(Result(first.id))
    assert step(world) is BindStep.PRE_BINDING
    world.deliver_result(Result(second.id))
    assert step(world) is BindStep.BINDING and len(of(world, Bind)) == 1


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_binding_to_error_backoff_when_refused(status: int) -> None:
    world = World(nodes=["a"])
    world.answers = refused(Bind, status)
    world.submit(a_pod("web"))
    world.run()
    assert stage(world) is QueueStage.BACKOFF and reason(world) == "SchedulerError" and not world.scheduler.state.pods
    assert len(of(world, Read)) == (status == 409)
    world.answers = fine
    world.advance(0.9)
    assert not world.bindings
    world.advance(0.2)
    assert world.bindings == {"web": "a"}


def test_binding_to_error_backoff_when_never_answered() -> None:
    world = World(nodes=["a"], answer_within=10)
    world.answers = no_answer(Bind)
    world.submit(a_pod("web"))
    world.run()
    assert step(world) is BindStep.BINDING
    world.answers = fine
    world.advance(10)
    assert stage(world) is QueueStage.BACKOFF and len(of(world, Read)) == 1
    world.advance(2)
    assert world.bindings == {"web": "a"}


def test_binding_to_bound_though_never_answered_when_the_server_shows_it() -> None:
    world = World(nodes=["a"], answer_within=10)
    world.answers = no_answer(Bind)
    world.submit(a_pod("web"))
    world.run()
    world.submit(assumed(world.pod("web"), "a"))
    world.advance(10)
    assert world.event_notes("web") == ["Successfully assigned default/web to a"]
    assert not world.scheduler.assumed_pods and not of(world, SetCondition)


def test_bound_to_out_when_the_watch_says_so_too() -> None:
    world = World(nodes=["a"])
    world.pause_watch()
    world.deliver_object(a_pod("web"))
    world.run()
    assert step(world) is BindStep.BOUND and world.event_notes("web")
    world.resume_watch()
    assert not world.scheduler.assumed_pods and len(world.scheduler.state.pods) == 1


# -- with a group


@pytest.mark.parametrize("before", [BindStep.WAITING, BindStep.PRE_BINDING])
def test_waiting_or_pre_binding_fails_with_another_member_of_its_group(before: BindStep) -> None:
    waits = {"patience": "60"}
    world = World(nodes=["a"], profiles=profiles(postBind=[Gangs()], permit=[Patience()]))
    first, second = a_gang(2)
    both = before is BindStep.WAITING
    patient = a_pod("g1", labels={**second.labels, **waits})
    world.submit(a_pod("g0", labels={**first.labels, **(waits if both else {})}), patient)
    world.run()
    assert world.scheduler.assumed_pods[first.uid].step is before
    world.reject(patient.uid, "Patience", "no")
    assert not world.scheduler.assumed_pods and not world.scheduler.state.pods
    (unit,) = world.scheduler.queue.units.values()
    assert set(unit.pods) == {first.uid, second.uid} and unit.stage is QueueStage.UNSCHEDULABLE


def test_waiting_or_pre_binding_fails_when_its_group_takes_too_long() -> None:
    world = World(nodes=["a"], profiles=profiles(postBind=[Gangs()], permit=[Patience()]))
    first, second = a_gang(2)
    world.submit(first, a_pod("g1", labels={**second.labels, "patience": "60"}))
    world.run()
    assert {each.step for each in world.scheduler.assumed_pods.values()} == {BindStep.WAITING, BindStep.PRE_BINDING}
    world.now += 10
    world.scheduler.step(world.now)
    (unit,) = world.scheduler.queue.units.values()
    assert set(unit.pods) == {first.uid, second.uid} and not world.bindings


def test_bound_to_evicted_when_its_group_stays_partially_bound() -> None:
    class WholeOrNothing(Gangs):
        def group_of(self, pod: Pod, cluster: Cluster) -> Group | None:
            group = super().group_of(pod, cluster)
            return None if group is None else msgspec.structs.replace(group, evicts=True)

    world = World(nodes=["a"], profiles=profiles(postBind=[WholeOrNothing()]))
    world.answers = lambda action: (
        Result(action.id, 500, "no") if isinstance(action, Bind) and action.pod.name == "g1" else Result(action.id)
    )
    world.submit(*a_gang(2))
    world.run()
    assert [action.pod.name for action in of(world, Evict)] == ["g0"] and not world.bindings


# -- out, from everywhere


@pytest.mark.parametrize("happens", [delete, finish, let_somebody_else_bind, recreate], ids=lambda each: each.__name__)
@pytest.mark.parametrize("begin", EVERYWHERE, ids=lambda each: each.__name__)
def test_everywhere_to_out(begin: Callable[[], World], happens: Callable[[World], None]) -> None:
    world = begin()
    before = [action for action in world.actions if isinstance(action, Ask | Bind | Patch)]
    happens(world)
    bound = {pod.uid for pod in world.pods() if pod.node_name and not pod.finished}
    assert UID not in world.scheduler.queue.units or world.scheduler.attempts.rounds.asking
    assert UID not in world.scheduler.assumed_pods and set(world.scheduler.state.pods) == bound
    for late in before:
        world.deliver_result(Result(late.id, 200, body={"NodeNames": ["a"]}))  # a late answer is ignored
    world.answers = fine
    world.advance(400)
    assert not world.scheduler.queue.units and set(world.scheduler.state.pods) == bound
    assert not world.bound, "it was bound after all"
    world.check()
