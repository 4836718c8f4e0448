"""Pre-bind plugins that make a pod wait for what their actions began (`prebind_waits.py`), one edge each."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.framework.verdict import NotYet, Refuse
from stowplan.objects.actions import Patch
from stowplan.objects.changes import Result
from tests.builders import a_namespace, a_pod, a_service
from tests.engine.small_plugins import profiles
from tests.world import World

UID = "uid-of-default-web"
PATCH = Patch(kind="ConfigMap", key="default/x", body={})
NOT_YET = NotYet(frozenset({("Service", "default/web")}))


class Slow:
    """Begins something, and says of it what a test wants."""

    awaits = ("Namespace",)

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


def test_what_is_there_at_once_is_not_waited_for() -> None:
    assert a_world(Slow(True)).bindings == {"web": "a"}


def test_it_is_asked_once_its_actions_are_answered() -> None:
    plugin = Slow(True, begins=[PATCH])
    world = World(nodes=["a"], profiles=profiles(preBind=[plugin]))
    world.answers = lambda action: None if isinstance(action, Patch) else Result(action.id)
    world.submit(a_pod("web"))
    world.run()
    assert not plugin.asked
    world.answer(Result(next(each.id for each in world.actions if isinstance(each, Patch))))
    world.run()
    assert plugin.asked == 1 and world.bindings == {"web": "a"}


@pytest.mark.parametrize(
    ("answer", "helps", "other"),
    [
        pytest.param(False, a_namespace("new"), a_service("web"), id="any object of the kinds it awaits"),
        pytest.param(NOT_YET, a_service("web"), a_namespace("new"), id="one of the objects it named"),
        pytest.param(NOT_YET, a_service("web"), a_service("other"), id="no other object of that kind"),
    ],
)
def test_it_is_asked_again_when_what_it_waits_for_changes(answer: Any, helps: Any, other: Any) -> None:
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
        pytest.param(Refuse(("no", "never")), 'running PreBind plugin "Slow": no, never', id="refused"),
        pytest.param(KeyError("oops"), "plugin \"Slow\" failed at pre_bound: KeyError: 'oops'", id="it raises"),
        pytest.param(None, "answered None; a bool, NotYet or Refuse was due", id="it forgets to answer"),
    ],
)
def test_given_up(answer: Any, told: str) -> None:
    world = a_world(Slow(False, answer))
    world.submit(a_namespace("new"))
    world.run()
    assert told in world.said("web", "FailedScheduling")[0]
    assert world.scheduler.queue.units[UID].stage is QueueStage.BACKOFF and not world.scheduler.state.pods


@pytest.mark.parametrize(("timeout", "seconds"), [(None, 600), (7.0, 7), (0, 0)])
def test_too_late(timeout: float | None, seconds: float) -> None:
    world = a_world(Slow(False, timeout=timeout))
    if seconds:
        world.advance(seconds - 0.5)
        assert not world.said("web")
        world.advance(0.5)
    assert world.said("web")[0] == 'running PreBind plugin "Slow": context deadline exceeded'


def test_each_plugin_has_its_own_time_and_all_must_be_content() -> None:
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
def test_where_the_pod_is_to_go_is_said_unless_its_pre_binding_is_quick(quick: bool, said: str) -> None:
    plugin = Slow(True, begins=[PATCH])
    plugin.quick_pre_bind = quick  # type: ignore[attr-defined]
    world = World(nodes=["a"], profiles=profiles(preBind=[plugin]))
    world.answers = lambda action: None if isinstance(action, Patch) else Result(action.id)
    world.submit(a_pod("web"))
    world.run()
    assert world.scheduler.assumed_pods[UID].step is BindStep.PRE_BINDING and world.pod("web").nominated_node == said
