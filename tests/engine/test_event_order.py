"""Answers and watch events come in any order, late, twice or not at all; what is old news must not undo what is new."""

from __future__ import annotations

import pytest

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.pods import assumed
from stowplan.engine.unit import QueueStage
from stowplan.objects.actions import Bind, Evict, Nominate, Read, SetCondition
from stowplan.objects.changes import Result
from tests.builders import a_node, a_pod
from tests.engine.life_cycle_worlds import UID, no_answer, of, refused
from tests.engine.small_plugins import Patience, profiles
from tests.world import World


def test_a_watch_that_is_behind_the_answer_does_not_bring_the_pod_back() -> None:
    world = World(nodes=["a", "b"])
    world.lag()
    world.submit_at_once(a_pod("web", cpu=1))
    world.run()
    assert world.bindings and world.scheduler.assumed_pods[UID].step is BindStep.BOUND
    world.submit_at_once(a_pod("web", cpu=1, labels={"old": "news"}))
    world.run()
    assert len(of(world, Bind)) == 1
    world.catch_up()
    assert not world.scheduler.assumed_pods and len(world.scheduler.state.pods) == 1
    world.check()


def test_its_own_nomination_that_comes_late_does_not_either() -> None:
    world = World(nodes=["a"], profiles=profiles(permit=[Patience()]))
    world.lag()
    world.submit_at_once(a_pod("web", cpu=1, labels={"patience": "9"}))
    world.run()
    world.allow(UID, "Patience")
    assert of(world, Nominate) and world.scheduler.assumed_pods[UID].step is BindStep.BOUND
    world.catch_up()
    world.run()
    assert len(of(world, Bind)) == 1 and not world.scheduler.assumed_pods
    world.check()


def test_a_pod_bound_and_gone_before_the_watch_says_either() -> None:
    world = World(nodes=["a"])
    world.lag()
    world.submit_at_once(pod := a_pod("web", cpu=1))
    world.run()
    world.delete(assumed(pod, "a"))
    world.catch_up()
    assert not world.scheduler.assumed_pods and not world.scheduler.state.pods
    world.check()


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize("reading", [200, 500, None], ids=["it is there", "the server fails", "no answer"])
def test_a_pod_the_server_denies_is_not_lost(status: int, reading: int | None) -> None:
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


def test_a_pod_the_server_denies_and_does_not_have_is_out() -> None:
    world = World(nodes=["a"])
    world.answers = refused(Bind, 404)
    world.submit(pod := a_pod("web"))
    world.objects.pop(("Pod", pod.key))
    world.run()
    assert not world.scheduler.queue.units and not world.scheduler.assumed_pods and not world.scheduler.pods


def test_a_pod_of_the_same_name_takes_the_place_of_one_nobody_said_was_gone() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", uid="first", cpu=1))
    world.run()
    world.submit(a_pod("web", uid="second", cpu=1))
    world.run()
    assert world.bindings == {"web": "a"} and set(world.scheduler.state.pods) == {"second"}
    world.check()


def test_results_twice_or_of_nothing_are_nothing() -> None:
    world = World(nodes=["a"])
    world.submit(a_pod("web"))
    world.run()
    before = len(world.actions)
    for number in (-1, 0, 1, 2, 3, 999):
        world.answer(Result(number, 500))
        world.answer(Result(number))
    assert len(world.actions) == before and world.bindings == {"web": "a"}


def test_a_result_cannot_end_a_wait() -> None:
    world = World(nodes=["a"], profiles=profiles(permit=[Patience()]))
    world.submit(a_pod("web", labels={"patience": "60"}))
    world.run()
    for number in range(-5, 5):
        world.answer(Result(number, 0))
    assert world.scheduler.assumed_pods[UID].step is BindStep.WAITING


def test_nobody_else_is_evicted_while_the_first_victim_leaves_and_the_promise_is_not_written() -> None:
    world = World(nodes=[a_node("a", cpu=1), a_node("b", cpu=1)], graceful=True)
    world.submit(a_pod("v1", cpu=1, node="a"), a_pod("v2", cpu=1, node="b"))
    world.answers = no_answer(SetCondition)
    world.submit(a_pod("web", cpu=1, priority=9))
    world.run()
    world.submit(a_pod("web", cpu=1, priority=9, labels={"tried": "again"}))
    world.advance(400)
    assert len(of(world, Evict)) == 1


def test_two_preemptors_tell_a_victim_once_and_say_so_when_it_was_told() -> None:
    world = World(nodes=[a_node("a", cpu=1)], graceful=True)
    world.submit(a_pod("victim", cpu=1, node="a"))
    world.answers = no_answer(Evict)
    world.submit(a_pod("one", cpu=1, priority=5), a_pod("two", cpu=1, priority=9))
    world.run()
    (evict,) = of(world, Evict)
    assert not world.said("victim", "Preempted")
    world.perform_late(evict)
    assert len(world.said("victim", "Preempted")) == 1
