"""Reserve, permit, pre-bind and post-bind: one plugin at each point, and what becomes of the pod when it says no."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.engine.placing import Step
from stowplan.engine.unit import Stage
from stowplan.framework.profile import Bound, Profile
from stowplan.framework.verdict import Refuse
from stowplan.objects.actions import Evict, Patch
from stowplan.objects.changes import Result
from tests.builders import a_node, a_pod, a_profile
from tests.world import World

UID = "uid-of-default-web"


class Notes:
    """Writes down what it is asked, and answers what a test wants."""

    def __init__(self, name: str, log: list[str], **answers: Any) -> None:
        self.name, self.log, self.answers = name, log, answers

    def _say(self, point: str) -> Any:
        self.log.append(f"{self.name} {point}")
        answer = self.answers.get(point)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def reserve(self, *_: Any) -> Any:
        return self._say("reserve")

    def unreserve(self, *_: Any) -> None:
        self._say("unreserve")

    def permit(self, *_: Any) -> Any:
        return self._say("permit")

    def pre_bind(self, *_: Any) -> Any:
        return self._say("pre_bind") or ()

    def post_bind(self, *_: Any) -> Any:
        return self._say("post_bind") or ()


def a_world(*plugins: Notes) -> World:
    default = a_profile()
    bounds = tuple(Bound(plugin.name, plugin) for plugin in plugins)
    points = {**default.points, **dict.fromkeys(("reserve", "permit", "preBind", "postBind"), bounds)}
    world = World(nodes=["a"], profiles={"default-scheduler": Profile("default-scheduler", points)})
    world.submit(a_pod("web", cpu=1))
    return world


def test_every_point_in_order() -> None:
    log: list[str] = []
    world = a_world(Notes("one", log), Notes("two", log))
    world.run()
    assert world.bindings == {"web": "a"}
    points = ("reserve", "permit", "pre_bind", "post_bind")
    assert log == [f"{name} {point}" for point in points for name in ("one", "two")]


@pytest.mark.parametrize(
    ("point", "answer", "stage"),
    [
        pytest.param("reserve", Refuse(("no",)), Stage.UNSCHEDULABLE, id="reserve refuses"),
        pytest.param("permit", Refuse(("no",)), Stage.UNSCHEDULABLE, id="permit refuses"),
        pytest.param("reserve", KeyError("oops"), Stage.BACKOFF, id="reserve raises"),
        pytest.param("permit", KeyError("oops"), Stage.BACKOFF, id="permit raises"),
        pytest.param("pre_bind", KeyError("oops"), Stage.BACKOFF, id="pre-bind raises"),
    ],
)
def test_what_was_reserved_is_given_back_in_reverse(point: str, answer: Any, stage: Stage) -> None:
    log: list[str] = []
    world = a_world(Notes("one", log), Notes("two", log, **{point: answer}))
    world.run()
    assert not world.bindings and not world.scheduler.state.pods
    assert log[-2:] == ["two unreserve", "one unreserve"]
    assert world.scheduler.queue.units[UID].stage is stage
    condition = world.pod("web").condition("PodScheduled")
    error = isinstance(answer, Exception)
    assert condition is not None and condition.reason == ("SchedulerError" if error else "Unschedulable")
    assert ('plugin "two" failed at' in condition.message) is error


def test_waiting_until_it_is_allowed() -> None:
    world = a_world(Notes("one", [], permit=60.0), Notes("two", [], permit=30.0))
    world.run()
    assert world.scheduler.placings[UID].step is Step.WAITING
    world._perform(world.scheduler.allow(UID, "one", world.now))
    assert not world.bindings
    world._perform(world.scheduler.allow(UID, "two", world.now))
    world._deliver()
    assert world.bindings == {"web": "a"}


def test_waiting_until_it_is_refused() -> None:
    world = a_world(Notes("one", [], permit=60.0))
    world.run()
    world._perform(world.scheduler.reject(UID, "one", "the others did not come", world.now))
    world._deliver()
    assert not world.scheduler.placings and not world.scheduler.state.pods
    assert world.said("web", "FailedScheduling") == ["0/1 nodes are available: 1 the others did not come."]


def test_waiting_until_its_time_is_up() -> None:
    world = a_world(Notes("one", [], permit=60.0))
    world.run()
    world.advance(59)
    assert world.scheduler.placings[UID].step is Step.WAITING
    world.advance(2)
    assert "rejected due to timeout after waiting" in world.said("web", "FailedScheduling")[0]


def test_pre_binding_waits_for_its_actions_and_fails_with_them() -> None:
    patch = Patch(kind="PersistentVolumeClaim", key="default/data", body={})
    world = a_world(Notes("one", [], pre_bind=[patch]))
    world.answers = lambda action: None if isinstance(action, Patch) else Result(action.id)
    world.run()
    assert world.scheduler.placings[UID].step is Step.PRE_BINDING
    asked = next(action for action in world.actions if isinstance(action, Patch))
    world._perform(world.scheduler.handle(Result(asked.id, 500, "no"), world.now))
    world._deliver()
    assert world.scheduler.queue.units[UID].stage is Stage.BACKOFF and not world.scheduler.state.pods
    world.answers = lambda action: Result(action.id)
    world.advance(2)
    assert world.bindings == {"web": "a"}


def test_a_waiting_pod_is_preempted_without_being_deleted() -> None:
    log: list[str] = []
    patient = Notes("one", log, permit=600.0)
    default = a_profile()
    points = {**default.points, "reserve": (Bound("one", patient),), "permit": (Bound("one", patient),)}
    profiles = {"default-scheduler": Profile("default-scheduler", points)}
    world = World(nodes=[a_node("a", cpu=1)], profiles=profiles)
    world.submit(a_pod("small", cpu=1, priority=1))
    world.run()
    patient.answers = {}
    world.submit(a_pod("big", cpu=1, priority=9))
    world.advance(0.5)
    assert world.bindings == {"big": "a"}
    assert "one unreserve" in log
    assert not any(isinstance(action, Evict) for action in world.actions)
    assert world.pod("small").name == "small"
