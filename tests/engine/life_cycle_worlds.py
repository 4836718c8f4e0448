"""Worlds with one pod, `web`, in each state of the drawing in `engine/scheduler.py`; and pods of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.pods import assumed
from stowplan.engine.unit import QueueStage
from stowplan.framework.config.settings import Extender
from stowplan.objects.actions import Action, Ask, Bind, Patch
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.small_plugins import Notes, Patience, profiles

UID = "uid-of-default-web"
FULL = "0/1 nodes are available: 1 Insufficient cpu."
PATCH = Patch(kind="PersistentVolumeClaim", key="default/data", body={})
EXTENDER = Extender(url_prefix="http://extender", filter_verb="filter", node_cache_capable=True)
GATED: dict[str, Any] = {"schedulingGates": [{"name": "quota"}]}


def stage(world: World) -> QueueStage:
    return world.scheduler.queue.units[UID].stage


def step(world: World) -> BindStep:
    return world.scheduler.assumed_pods[UID].step


def no_answer(*kinds: type[Action]) -> Callable[[Action], Result | None]:
    return lambda action: None if isinstance(action, kinds) else Result(action.id)


def refused(kind: type[Action], status: int) -> Callable[[Action], Result | None]:
    return lambda action: Result(action.id, status, "no") if isinstance(action, kind) else Result(action.id)


def fine(action: Action) -> Result:
    return Result(action.id)


def of(world: World, kind: type[Action]) -> list[Any]:
    return [action for action in world.actions if isinstance(action, kind)]


def reason(world: World) -> str:
    condition = world.pod("web").condition("PodScheduled")
    assert condition is not None
    return condition.reason


def a_world(*plugins: Any, at: Iterable[str] = ("reserve", "permit", "preBind", "postBind"), **options: Any) -> World:
    return World(nodes=[a_node("a", cpu=1)], profiles=profiles(**dict.fromkeys(at, plugins)), **options)


def a_waiting_world(seconds: float = 60.0) -> World:
    world = a_world(Patience(), at=["permit"])
    world.submit(a_pod("web", cpu=1, labels={"patience": str(seconds)}))
    world.run()
    return world


def a_gang(number: int, **wishes: Any) -> list[Pod]:
    return [a_pod(f"g{each}", labels={"gang": "g", "min": "2"}, **wishes) for each in range(number)]


def gated() -> World:
    world = World(nodes=["a", "b"])
    world.submit(a_pod("web", **GATED))
    return world


def active() -> World:
    world = World(nodes=["a", "b"])
    world.submit(a_pod("web", cpu=1))
    return world


def unschedulable() -> World:
    world = World(nodes=[a_node("a", cpu=1), a_node("b", cpu=1)])
    world.submit(a_pod("web", cpu=2))
    world.run()
    return world


def in_backoff() -> World:
    world = unschedulable()
    world.submit(a_node("c", cpu=4))
    return world


def asking() -> World:
    world = World(nodes=["a", "b"], extenders=(EXTENDER,))
    world.answers = no_answer(Ask)
    world.submit(a_pod("web", cpu=1))
    world.run()
    return world


def waiting() -> World:
    world = a_waiting_world()
    world.submit(a_node("b"))
    return world


def pre_binding() -> World:
    world = a_world(Notes("one", [], pre_bind=[PATCH]))
    world.answers = no_answer(Patch)
    world.submit(a_node("b"), a_pod("web", cpu=1))
    world.run()
    return world


def binding() -> World:
    world = World(nodes=["a", "b"])
    world.answers = no_answer(Bind)
    world.submit(a_pod("web", cpu=1))
    world.run()
    return world


def in_error_backoff() -> World:
    world = World(nodes=["a", "b"])
    world.answers = refused(Bind, 500)
    world.submit(a_pod("web", cpu=1))
    world.run()
    return world


EVERYWHERE = [gated, active, unschedulable, in_backoff, in_error_backoff, asking, waiting, pre_binding, binding]


def delete(world: World) -> None:
    world.delete(world.pod("web"))


def finish(world: World) -> None:
    world.submit(a_pod("web", cpu=1, phase="Failed"))


def let_somebody_else_bind(world: World) -> None:
    ours = {placing.node_name for placing in world.scheduler.assumed_pods.values()}
    world.submit(assumed(world.pod("web"), "b" if "a" in ours else "a"))


def recreate(world: World) -> None:
    world.delete(world.pod("web"))
    world.submit(a_pod("web", uid="second", schedulerName="somebody-else"))
