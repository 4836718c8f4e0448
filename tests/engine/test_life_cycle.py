"""The life cycle of a pod beyond single edges (`test_…_cycle_edges.py`): messages, backoff, preemption, restarts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import SKIP, Skip
from stowplan.objects.actions import Action, Bind, Evict, SetCondition
from stowplan.objects.changes import Result
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.small_plugins import Notes, profiles

FULL = "0/1 nodes are available: 1 Insufficient cpu."


def stage(world: World, name: str) -> QueueStage:
    return world.scheduler.queue.units[world.pod(name).uid].stage


def no_answer(kind: type[Action]) -> Callable[[Action], Result | None]:
    return lambda action: None if isinstance(action, kind) else Result(action.id)


def refused(kind: type[Action], status: int) -> Callable[[Action], Result | None]:
    return lambda action: Result(action.id, status, "no") if isinstance(action, kind) else Result(action.id)


def of(world: World, kind: type[Action]) -> list[Any]:
    return [action for action in world.actions if isinstance(action, kind)]


def test_the_condition_is_written_only_when_it_changes() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("web", cpu=2))
    world.advance(3 * 300 + 60)
    assert len(of(world, SetCondition)) == 1
    assert len(world.event_notes("web", "FailedScheduling")) > 1


@pytest.mark.parametrize("status", [pytest.param(404, id="not found"), pytest.param(410, id="gone")])
def test_a_pod_that_is_deleted_while_it_is_bound_is_dropped(status: int) -> None:
    world = World(nodes=["a"])
    pod = a_pod("web")
    world.answers = refused(Bind, status)
    world.submit(pod)
    world.objects.pop(("Pod", pod.key))
    world.run()
    assert not world.scheduler.queue.units and not world.scheduler.assumed_pods and not world.scheduler.state.pods


def test_errors_in_a_row_back_off_longer_and_longer() -> None:
    world = World(nodes=["a"])
    world.answers = refused(Bind, 500)
    world.submit(a_pod("web"))
    world.advance(60)
    moments = [action.deadline - 30 for action in of(world, Bind)]
    gaps = [round(later - sooner) for sooner, later in itertools.pairwise(moments)]
    assert gaps[:6] == [1, 2, 4, 8, 10, 10]


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


def test_a_pod_preempts_a_lower_priority_and_takes_its_room() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("small", cpu=1, priority=1))
    world.run()
    world.submit(a_pod("big", cpu=1, priority=9))
    world.advance(2)
    assert world.bindings == {"big": "a"}
    assert [each.pod.name for each in of(world, Evict)] == ["small"]
    assert any(note.startswith("Preempted by pod ") for note in world.event_notes("small", "Preempted"))


def test_a_restart_forgets_nothing_that_matters() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("one", cpu=1), a_pod("two", cpu=1))
    world.run()
    world.restart()
    world.run()
    assert len(world.bindings) == 1
    world.check()


def test_every_point_in_order() -> None:
    log: list[str] = []
    noted = [Notes("one", log), Notes("two", log)]
    points = ("reserve", "permit", "preBind", "postBind")
    world = World(nodes=["a"], profiles=profiles(**dict.fromkeys(points, noted)))
    world.submit(a_pod("web", cpu=1))
    world.run()
    assert world.bindings == {"web": "a"}
    methods = ("reserve", "permit", "pre_bind", "post_bind")
    assert log == [f"{name} {method}" for method in methods for name in ("one", "two")]


class Skipping:
    """Skips every pod."""

    def __init__(self, log: list[str], *, final: bool) -> None:
        self._log, self.skip_is_final = log, final

    def pre_filter(self, *_: Any) -> Skip:
        return SKIP

    def reserve(self, *_: Any) -> None:
        self._log.append("reserve")

    def pre_bind(self, *_: Any) -> tuple[()]:
        self._log.append("pre_bind")
        return ()

    def pre_bound(self, *_: Any) -> bool:
        self._log.append("pre_bound")
        return True


@pytest.mark.parametrize(("final", "asked"), [(True, []), (False, ["reserve", "pre_bind", "pre_bound"])])
def test_a_plugin_that_always_skips_is_not_called_again(final: bool, asked: list[str]) -> None:
    log: list[str] = []
    skipping = [Skipping(log, final=final)]
    world = World(nodes=["a"], profiles=profiles(preFilter=skipping, reserve=skipping, preBind=skipping))
    world.submit(a_pod("web", cpu=1))
    world.run()
    assert world.bindings == {"web": "a"}
    assert log == asked


def test_plugins_can_look_up_deleted_pods() -> None:
    world = World(nodes=["a"])
    world.submit(a_pod("web"), a_pod("big", cpu=99))
    world.run()
    cluster = Cluster(world.scheduler.state)
    nodes = {name: found.node_name for name in ("web", "big") if (found := cluster.known_pod(f"uid-of-default-{name}"))}
    assert nodes == {"web": "a", "big": ""}
    world.delete(world.pod("big"))
    world.submit(a_pod("web", node="a", phase="Succeeded"))
    assert cluster.known_pod("uid-of-default-big") is None and cluster.known_pod("uid-of-default-web") is None
    assert [cluster.last_node(f"uid-of-default-{name}") for name in ("web", "big", "other")] == ["a", "", None]


def test_only_the_latest_deleted_pods_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stowplan.columns.state.MOST_LAST_NODES", 2)
    world = World(nodes=["a"])
    for name in ("one", "two", "three"):
        world.submit(a_pod(name, node="a"))
        world.delete(world.pod(name))
    assert list(world.scheduler.state.last_nodes) == ["uid-of-default-two", "uid-of-default-three"]
