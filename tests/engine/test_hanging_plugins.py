"""Plugins that hang: a watchdog ends the call from outside. After three such attempts the engine sets the pod aside."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.engine.messages import PLUGIN_HUNG, ended, times_hung
from stowplan.engine.unit import QueueStage
from stowplan.framework.plugin_faults import CallInterrupted
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod, a_profile
from stowplan.testing.world import World
from tests.engine.small_plugins import profiles

UID = "uid-of-default-web"
PROBLEM = 'plugin "Hanging" failed at filter: did not answer within 5 s (mine.py:12)'


class Hanging:
    """What a watchdog makes of a plugin that hangs over pods with a label."""

    def __init__(self) -> None:
        self.enabled: EnabledPlugin[Any] | None = None
        self.calls = 0

    def filter(self, pod: Pod, _: Any) -> Any:
        if "bad" in pod.labels:
            self.calls += 1
            raise CallInterrupted(self.enabled, 5)
        return ()


def a_world() -> tuple[World, Hanging]:
    hanging = Hanging()
    found = profiles(filter=[hanging])
    hanging.enabled = next(each for each in found["default-scheduler"].filters if each.plugin is hanging)
    return World(nodes=["a"], profiles=found), hanging


def hang(world: World) -> None:
    """Report that a plugin hung in the pod's last attempt."""
    for action in world.scheduler.plugin_hung(UID, PROBLEM, world.now):
        world.perform(action)
    world.run()


def set_aside() -> tuple[World, Hanging]:
    world, hanging = a_world()
    world.submit(a_pod("web", labels={"bad": "yes"}))
    world.run()
    hang(world)
    for calls in (2, 3):
        before = hanging.calls
        while hanging.calls == before:
            world.advance(1)
        hang(world)
        assert hanging.calls == calls
    return world, hanging


def test_an_interrupted_call_is_an_error_like_any_other() -> None:
    world, _ = a_world()
    world.submit(a_pod("web", labels={"bad": "yes"}), a_pod("other"))
    world.run()
    assert world.bindings == {"other": "a"}
    assert world.scheduler.queue.units[UID].stage is QueueStage.BACKOFF
    condition = world.pod("web").condition("PodScheduled")
    assert condition is not None and condition.reason == "SchedulerError"
    assert "failed at filter: did not answer within 5 s (test_hanging_plugins.py:" in condition.message


def test_after_three_attempts_the_pod_is_set_aside_with_an_event() -> None:
    world, hanging = set_aside()
    condition = world.pod("web").condition("PodScheduled")
    assert condition is not None and condition.reason == PLUGIN_HUNG
    assert condition.message == f"{PROBLEM}; the pod is set aside until it or the configuration changes"
    assert world.event_notes("web")[-1] == condition.message
    world.submit(a_node("b"), a_pod("other"))
    world.advance(1000)
    assert hanging.calls == 3, "no event and no time brings it back"
    assert set(world.bindings) == {"other"}


def test_a_pod_whose_attempt_goes_on_is_set_aside_when_it_fails() -> None:
    """The engine may be told while it waits for an extender's answer."""
    attempts: list[str] = []

    class Telling:
        def filter(self, pod: Pod, _: Any) -> Any:
            attempts.append(pod.name)
            unit = world.scheduler.queue.find(UID)
            assert unit is not None and unit.stage is QueueStage.IN_FLIGHT
            unit.queued.hung = 2
            world.scheduler.plugin_hung(UID, PROBLEM, world.now)
            raise KeyError("in vain")

    world = World(nodes=["a"], profiles=profiles(filter=[Telling()]))
    world.submit(a_pod("web"))
    world.advance(1000)
    note = world.event_notes("web")[-1]
    assert "in vain" in note and note.endswith("the pod is set aside until it or the configuration changes")
    assert attempts == ["web"]


def test_two_hangs_of_one_attempt_count_once() -> None:
    world, _ = a_world()
    world.submit(a_pod("web", labels={"bad": "yes"}))
    world.run()
    for _ in range(5):
        hang(world)
    assert world.scheduler.queue.units[UID].queued.hung == 1


def test_a_pod_that_was_set_aside_comes_back_when_it_changes() -> None:
    world, hanging = set_aside()
    world.submit(a_pod("web", labels={"good": "yes"}))
    world.run()
    assert world.bindings == {"web": "a"} and hanging.calls == 3


def test_a_pod_that_was_set_aside_comes_back_with_another_configuration() -> None:
    world, _ = set_aside()
    world.adopt({"default-scheduler": a_profile()})
    world.advance(20)
    assert world.bindings == {"web": "a"}


def test_the_next_scheduler_tries_such_pods_last() -> None:
    world, _ = set_aside()
    marked = world.pod("web")
    order: list[str] = []

    class Noting:
        def post_bind(self, pod: Pod, *_: Any) -> tuple[()]:
            order.append(pod.name)
            return ()

    after = World(nodes=["a"], profiles=profiles(postBind=[Noting()]))
    after.submit(marked, *(a_pod(f"p{number}") for number in range(3)))
    after.run()
    assert order == ["p0", "p1", "p2"]
    after.pause_watch()
    after.advance(9)
    after.submit(a_pod("late"))
    after.resume_watch()
    after.advance(20)
    assert order == ["p0", "p1", "p2", "late", "web"]


@pytest.mark.parametrize(("times", "waits"), [(1, 10), (2, 60), (3, 360), (4, 2160), (5, 3600), (99, 3600)])
def test_each_time_the_scheduler_had_to_be_ended_the_pod_waits_for_longer(times: int, waits: int) -> None:
    world = World(nodes=["a"], profiles=profiles())
    world.submit(ended_over(times))
    world.advance(waits - 1)
    assert not world.bindings
    world.advance(2)
    assert world.bindings == {"web": "a"}


@pytest.mark.parametrize("what", ["pod", "configuration"])
def test_a_pod_that_waits_for_that_reason_comes_back_when_something_changes(what: str) -> None:
    world = World(nodes=["a"], profiles=profiles())
    world.submit(ended_over(5))
    world.advance(20)
    assert not world.bindings
    if what == "pod":
        world.submit(a_pod("web", labels={"good": "yes"}))
    else:
        world.adopt({"default-scheduler": a_profile()})
    world.advance(11)
    assert world.bindings == {"web": "a"}


def ended_over(times: int) -> Pod:
    """A pod over which the scheduler had to be ended so often."""
    pod = a_pod("web")
    for number in range(times):
        assert times_hung(pod) == number
        mark = ended(pod, PROBLEM)
        condition = {"type": "PodScheduled", "status": mark.status, "reason": mark.reason, "message": mark.message}
        pod = a_pod("web", status={"conditions": [condition]})
    return pod


@pytest.mark.parametrize("twice", [False, True], ids=["the step raises", "the failure raises, too"])
def test_a_step_that_raises_fails_the_pod_that_was_attempted(monkeypatch: pytest.MonkeyPatch, twice: bool) -> None:
    world = World(nodes=["a"], profiles=profiles())
    failures = world.scheduler._failures
    told = failures._tell

    def attempt(*_: Any) -> None:
        raise MemoryError

    def tell(*_: Any) -> None:
        if not twice:
            monkeypatch.setattr(failures, "_tell", told)
        raise MemoryError

    monkeypatch.setattr(failures, "_tell", tell)
    monkeypatch.setattr(world.scheduler.attempts, "_attempt", attempt)
    with pytest.raises(MemoryError):
        world.submit(a_pod("web"))
        world.run()
    if twice:
        with pytest.raises(MemoryError):
            world.scheduler.step_failed("MemoryError", world.now)
    else:
        assert world.scheduler.step_failed("MemoryError", world.now)
    monkeypatch.undo()
    assert world.scheduler.queue.units[UID].stage is QueueStage.BACKOFF
    world.advance(20)
    assert world.bindings == {"web": "a"}
