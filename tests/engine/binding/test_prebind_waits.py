"""Pre-bind plugins that delay a binding until their actions took effect (`prebind_waits.py`)."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import NotYet, RejectPod
from stowplan.objects.actions import Patch
from stowplan.objects.changes import Result
from stowplan.testing.builders import a_namespace, a_pod, a_service
from stowplan.testing.world import World
from tests.engine.small_plugins import profiles

UID = "uid-of-default-web"
PATCH = Patch(kind="ConfigMap", key="default/x", body={})
NOT_YET = NotYet(frozenset({("Service", "default/web")}))


class Slow:
    """A plugin with pre-bind actions and answers that a test chooses."""

    awaits = ("Namespace",)
    writes: ClassVar = {"ConfigMap": ("patch",)}

    def __init__(self, *answers: Any, name: str = "Slow", begins: Any = (), timeout: float | None = None) -> None:
        self.name, self.answers, self.begins, self.asked = name, list(answers), begins, 0
        if timeout is not None:
            self.pre_bind_timeout = timeout

    def pre_bind(self, *_: Any) -> Any:
        return self.begins

    def pre_bound(self, *_: Any) -> Any:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def a_world(*plugins: Slow) -> World:
    world = World(nodes=["a"], profiles=profiles(preBind=plugins))
    world.submit(a_pod("web"))
    world.run()
    return world


def times_asked(plugin: Slow) -> int:
    return plugin.asked


def test_a_pre_binding_that_is_finished_at_once_does_not_wait() -> None:
    assert a_world(Slow(True)).bindings == {"web": "a"}


@pytest.mark.parametrize(
    ("attribute", "wrong", "problem"),
    [
        pytest.param("pre_bind_timeout", "1m", "is '1m'; a number of seconds is right", id="a time"),
        pytest.param("awaits", 7, "TypeError: 'int' object is not iterable", id="kinds"),
    ],
)
def test_a_wrong_declaration_fails_the_attempt(attribute: str, wrong: object, problem: str) -> None:
    plugin = Slow(False)
    setattr(plugin, attribute, wrong)
    world = a_world(plugin)
    told = world.pod("web").condition("PodScheduled")
    assert told is not None and f'plugin "Slow" failed at {attribute}: {problem}' in told.message
    assert not world.bindings


def test_a_plugin_is_asked_after_its_actions_are_answered() -> None:
    plugin = Slow(True, begins=[PATCH])
    world = World(nodes=["a"], profiles=profiles(preBind=[plugin]))
    world.answers = lambda action: None if isinstance(action, Patch) else Result(action.id)
    world.submit(a_pod("web"))
    world.run()
    assert times_asked(plugin) == 0
    world.deliver_result(Result(next(each.id for each in world.actions if isinstance(each, Patch))))
    world.run()
    assert times_asked(plugin) == 1 and world.bindings == {"web": "a"}


@pytest.mark.parametrize(
    ("answer", "helps", "other"),
    [
        pytest.param(False, a_namespace("new"), a_service("web"), id="any object of the kinds it awaits"),
        pytest.param(NOT_YET, a_service("web"), a_namespace("new"), id="one of the objects it named"),
        pytest.param(NOT_YET, a_service("web"), a_service("other"), id="no other object of that kind"),
    ],
)
def test_a_plugin_is_asked_again_when_an_object_that_it_waits_for_changes(answer: Any, helps: Any, other: Any) -> None:
    plugin = Slow(answer, True)
    world = a_world(plugin)
    assert world.scheduler.assumed_pods[UID].step is BindStep.PRE_BINDING and world.pod("web").nominated_node == "a"
    world.submit(other)
    world.run()
    assert plugin.asked == 1
    world.submit(helps, helps)
    world.run()
    assert plugin.asked == 2 and world.bindings == {"web": "a"}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(RejectPod(("no", "never")), 'running PreBind plugin "Slow": no, never', id="refused"),
        pytest.param(KeyError("oops"), "plugin \"Slow\" failed at pre_bound: KeyError: 'oops'", id="it raises"),
        pytest.param(None, "answered None; a bool, NotYet or RejectPod was due", id="it forgets to answer"),
    ],
)
def test_a_wait_that_fails(answer: Any, told: str) -> None:
    world = a_world(Slow(False, answer))
    world.submit(a_namespace("new"))
    world.run()
    assert told in world.event_notes("web", "FailedScheduling")[0]
    assert world.scheduler.queue.units[UID].stage is QueueStage.BACKOFF and not world.scheduler.state.pods


@pytest.mark.parametrize(("timeout", "seconds"), [(None, 600), (7.0, 7), (0, 0)])
def test_a_wait_that_times_out(timeout: float | None, seconds: float) -> None:
    world = a_world(Slow(False, timeout=timeout))
    if seconds:
        world.advance(seconds - 0.5)
        assert not world.event_notes("web")
        world.advance(0.5)
    assert world.event_notes("web")[0] == 'running PreBind plugin "Slow": context deadline exceeded'


def test_each_plugin_has_its_own_timeout_and_all_must_agree() -> None:
    world = a_world(Slow(False, True, name="one", timeout=5), Slow(False, False, True, name="two", timeout=60))
    world.submit(a_namespace("new"))
    world.advance(10)
    assert world.scheduler.assumed_pods[UID].step is BindStep.PRE_BINDING, (
        "the first one's time is of no interest any more"
    )
    world.submit(a_namespace("newer"))
    world.run()
    assert world.bindings == {"web": "a"}


@pytest.mark.parametrize(("quick", "said"), [(False, "a"), (True, "")])
def test_a_node_is_nominated_unless_the_pre_binding_is_quick(quick: bool, said: str) -> None:
    plugin = Slow(True, begins=[PATCH])
    plugin.quick_pre_bind = quick  # type: ignore[attr-defined]
    world = World(nodes=["a"], profiles=profiles(preBind=[plugin]))
    world.answers = lambda action: None if isinstance(action, Patch) else Result(action.id)
    world.submit(a_pod("web"))
    world.run()
    assert world.scheduler.assumed_pods[UID].step is BindStep.PRE_BINDING and world.pod("web").nominated_node == said
