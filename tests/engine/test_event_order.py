"""Answers and watch events in any order, late, twice or not at all: an old version must not undo a newer one."""

from __future__ import annotations

import pytest

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.pods import assumed
from stowplan.engine.unit import QueueStage
from stowplan.objects.actions import Bind, Evict, Nominate, Read, SetCondition
from stowplan.objects.changes import Result
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.life_cycle_worlds import UID, no_answer, of, refused
from tests.engine.small_plugins import Patience, profiles


def test_a_watch_that_is_behind_the_answer_does_not_bring_the_pod_back() -> None:
    world = World(nodes=["a", "b"])
    world.pause_watch()
    world.deliver_object(a_pod("web", cpu=1))
    world.run()
    assert world.bindings and world.scheduler.assumed_pods[UID].step is BindStep.BOUND
    world.deliver_object(a_pod("web", cpu=1, labels={"old": "news"}))
    world.run()
    assert len(of(world, Bind)) == 1
    world.resume_watch()
    assert not world.scheduler.assumed_pods and len(world.scheduler.state.pods) == 1
    world.check()


def test_a_late_nomination_does_not_bring_the_pod_back() -> None:
    world = World(nodes=["a"], profiles=profiles(permit=[Patience()]))
    world.pause_watch()
    world.deliver_object(a_pod("web", cpu=1, labels={"patience": "9"}))
    world.run()
    world.allow(UID, "Patience")
    assert of(world, Nominate) and world.scheduler.assumed_pods[UID].step is BindStep.BOUND
    world.resume_watch()
    world.run()
    assert len(of(world, Bind)) == 1 and not world.scheduler.assumed_pods
    world.check()


def test_a_pod_that_is_bound_and_deleted_before_the_watch_shows_either() -> None:
    world = World(nodes=["a"])
    world.pause_watch()
    world.deliver_object(pod := a_pod("web", cpu=1))
    world.run()
    world.delete(assumed(pod, "a"))
    world.resume_watch()
    assert not world.scheduler.assumed_pods and not world.scheduler.state.pods
    world.check()


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize("reading", [200, 500, None], ids=["it is there", "the server fails", "no answer"])
def test_a_pod_that_the_server_reports_as_missing_is_not_lost(status: int, reading: int | None) -> None:
    world = World(nodes=["a"])

    def answers(action: object) -> Result | None:
        if isinstance(action, Bind):
            return Result(action.id, status, "not found")
        if isinstance(action, Read) and reading != 200:
            return None if reading is None else Result(action.id, reading)
        return Result(action.id)  # type: ignore[attr-defined]

    world.answers = answers
    world.submit(a_pod("web"))
    world.run()
    assert world.scheduler.queue.units[UID].stage is QueueStage.BACKOFF and of(world, Read)
    world.answers = lambda action: Result(action.id)
    world.advance(40)
    assert world.bindings == {"web": "a"}


def test_a_pod_that_the_server_does_not_have_is_dropped() -> None:
    world = World(nodes=["a"])
    world.answers = refused(Bind, 404)
    world.submit(pod := a_pod("web"))
    world.objects.pop(("Pod", pod.key))
    world.run()
    assert not world.scheduler.queue.units and not world.scheduler.assumed_pods and not world.scheduler.pods


def test_a_new_pod_of_the_same_name_replaces_one_whose_deletion_was_not_seen() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", uid="first", cpu=1))
    world.run()
    world.submit(a_pod("web", uid="second", cpu=1))
    world.run()
    assert world.bindings == {"web": "a"} and set(world.scheduler.state.pods) == {"second"}
    world.check()


def test_repeated_and_unknown_results_are_ignored() -> None:
    world = World(nodes=["a"])
    world.submit(a_pod("web"))
    world.run()
    before = len(world.actions)
    for number in (-1, 0, 1, 2, 3, 999):
        world.deliver_result(Result(number, 500))
        world.deliver_result(Result(number))
    assert len(world.actions) == before and world.bindings == {"web": "a"}


def test_a_result_cannot_end_a_wait() -> None:
    world = World(nodes=["a"], profiles=profiles(permit=[Patience()]))
    world.submit(a_pod("web", labels={"patience": "60"}))
    world.run()
    for number in range(-5, 5):
        world.deliver_result(Result(number, 0))
    assert world.scheduler.assumed_pods[UID].step is BindStep.WAITING


def test_no_other_pod_is_evicted_while_the_first_victim_terminates_and_the_nomination_is_not_written() -> None:
    world = World(nodes=[a_node("a", cpu=1), a_node("b", cpu=1)], graceful=True)
    world.submit(a_pod("v1", cpu=1, node="a"), a_pod("v2", cpu=1, node="b"))
    world.answers = no_answer(SetCondition)
    world.submit(a_pod("web", cpu=1, priority=9))
    world.run()
    world.submit(a_pod("web", cpu=1, priority=9, labels={"tried": "again"}))
    world.advance(400)
    assert len(of(world, Evict)) == 1


def test_two_preemptors_evict_a_victim_once_and_the_event_comes_with_the_eviction() -> None:
    world = World(nodes=[a_node("a", cpu=1)], graceful=True)
    world.submit(a_pod("victim", cpu=1, node="a"))
    world.answers = no_answer(Evict)
    world.submit(a_pod("one", cpu=1, priority=5), a_pod("two", cpu=1, priority=9))
    world.run()
    (evict,) = of(world, Evict)
    assert not world.event_notes("victim", "Preempted")
    world.complete(evict)
    assert len(world.event_notes("victim", "Preempted")) == 1
