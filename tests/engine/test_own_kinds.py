"""A kind that a plugin brings: its changes wake pods and reach `reconcile`, and only declared writes are sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from stowplan.engine.reports import PluginMisbehaved
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.plugin import (
    ApiValue,
    Cluster,
    Create,
    CustomResource,
    Delete,
    Object,
    Patch,
    Pod,
    RejectPod,
    Wake,
    status_patch,
)
from stowplan.testing import World, a_pod, a_profile, from_yaml
from stowplan.testing.journal import replayed


class Spec(ApiValue, frozen=True):
    pods: int = 0


class Status(ApiValue, frozen=True):
    used: int = 0


class TeamBudget(Object, frozen=True):
    spec: Spec = Spec()
    status: Status = Status()


RESOURCE = CustomResource(TeamBudget, group="example.com", version="v1", plural="teambudgets", writes=("status",))


def a_budget(name: str = "blue", pods: int = 0) -> TeamBudget:
    return from_yaml(TeamBudget, f"{{metadata: {{name: {name}, namespace: default, uid: u}}, spec: {{pods: {pods}}}}}")


class Budgets:
    """Rejects every pod unless the budget `blue` has room for one."""

    reads = (RESOURCE,)

    def __init__(self, *actions: str) -> None:
        self.asked: list[tuple[int | None, int | None]] = []
        self.actions = actions

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | None:
        budget = cluster.get(TeamBudget, f"{pod.namespace}/blue")
        return None if budget is not None and budget.spec.pods > 0 else RejectPod("no budget")

    def wakes_on(self) -> Iterator[Wake]:
        yield Wake("TeamBudget", self.actions, hint="note")

    def note(self, pod: Pod, old: TeamBudget | None, new: TeamBudget | None) -> bool:
        assert pod.name == "web"
        self.asked.append((None if old is None else old.spec.pods, None if new is None else new.spec.pods))
        return new is not None and new.spec.pods > 0


def a_world(plugin: Any, *points: str, **options: Any) -> World:
    default = a_profile()
    more = {point: (*default.points[point], EnabledPlugin("Budgets", plugin)) for point in points}
    profile = Profile("default-scheduler", {**default.points, **more}, default.percentage_of_nodes_to_score)
    return World(nodes=["a"], profiles={"default-scheduler": profile}, **options)


@pytest.mark.parametrize(
    ("actions", "asked", "bound"),
    [
        pytest.param(("Add", "Update", "Delete"), [(None, 0), (0, 0), (0, None), (None, 2)], True, id="all actions"),
        pytest.param(("Add",), [(None, 0), (None, 2)], True, id="new ones"),
        pytest.param(("Update",), [(0, 0)], False, id="updates"),
        pytest.param(("Delete",), [(0, None)], False, id="deletions"),
    ],
)
def test_its_changes_wake_pods(actions: tuple[str, ...], asked: list[Any], bound: bool) -> None:
    plugin = Budgets(*actions)
    world = a_world(plugin, "preFilter")
    world.submit(a_pod("web"))
    world.run()
    assert world.explain("web").message.endswith("no budget.")
    for change in (a_budget(), a_budget()):
        world.submit(change)
        world.advance(20)
    world.delete(a_budget())
    world.advance(20)
    assert world.bindings == {}
    world.submit(a_budget(pods=2))
    world.advance(20)
    assert plugin.asked == asked
    assert world.bindings == ({"web": "a"} if bound else {})


class Bookkeeper:
    """Writes the number of pods with a node to every budget."""

    reads = (RESOURCE,)
    reconciles = ("TeamBudget", "Pod")

    def __init__(self) -> None:
        self.told: list[list[str] | None] = []

    def post_bind(self, *_: Any) -> tuple[()]:
        return ()

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        self.told.append(None if changed is None else [type(each).__name__ for each in changed])
        used = len(cluster.pods_on("a"))
        for budget in cluster.every(TeamBudget).values():
            if budget.status.used != used:
                yield status_patch(budget, {"used": used})


def test_its_status_is_written() -> None:
    plugin = Bookkeeper()
    world = a_world(plugin, "postBind")
    world.submit(a_budget(), a_pod("web"))
    world.advance(5)
    found = world.objects["TeamBudget", "default/blue"]
    assert isinstance(found, TeamBudget) and found.status.used == 1
    assert plugin.told[0] is None and "TeamBudget" in {kind for told in plugin.told[1:] for kind in told or ()}
    assert replayed(world.journal, world.profiles) == world.actions


class Writes:
    """Writes once what a test says, at one of the points where plugins write."""

    reads = (RESOURCE,)
    reconciles = ("TeamBudget",)

    def __init__(self, point: str, *actions: Any) -> None:
        self.point, self.actions = point, actions

    def pre_bind(self, *_: Any) -> tuple[Any, ...]:
        return self.actions if self.point == "pre_bind" else ()

    def post_bind(self, *_: Any) -> tuple[Any, ...]:
        return self.actions if self.point == "post_bind" else ()

    def reconcile(self, *_: Any) -> tuple[Any, ...]:
        return self.actions if self.point == "reconcile" else ()


UNDECLARED = [
    pytest.param(Patch(kind="TeamBudget", key="default/blue", body={"spec": {"pods": 1}}), "patch", id="a patch"),
    pytest.param(Create(kind="TeamBudget", key="default/red", body={}), "create", id="a new object"),
    pytest.param(
        Delete(kind="TeamBudget", key="default/blue", uid="u", resource_version=""), "delete", id="a deletion"
    ),
    pytest.param(Patch(kind="Deployment", key="default/web", body={"status": {}}), "status", id="a known kind"),
]


@pytest.mark.parametrize(("action", "word"), UNDECLARED)
@pytest.mark.parametrize("point", ["pre_bind", "post_bind", "reconcile"])
def test_a_write_that_is_not_declared_is_refused(point: str, action: Any, word: str) -> None:
    reports: list[Any] = []
    world = a_world(Writes(point, action), "preBind", "postBind", report=reports.append)
    world.submit(a_budget(), a_pod("web"))
    world.advance(5)
    assert not [each for each in world.actions if isinstance(each, type(action))]
    said = [each.problem for each in reports if isinstance(each, PluginMisbehaved)]
    if point == "pre_bind":
        assert world.bindings == {}
        said = world.event_notes("web", "FailedScheduling")
        assert 'plugin "Budgets" failed at pre_bind' in said[0]
    else:
        assert world.bindings == {"web": "a"}, "the pod is bound all the same"
        (report,) = {(each.plugin, each.point) for each in reports if isinstance(each, PluginMisbehaved)}
        assert report == ("Budgets", point)
    assert f"{action.kind} {action.key}" in said[0] and f'add "{word}" to' in said[0]


def test_what_a_plugin_creates_is_of_its_type() -> None:
    class Maker(Writes):
        reads = (CustomResource(TeamBudget, group="example.com", version="v1", plural="t", writes=("create",)),)

    body = {"metadata": {"name": "red", "namespace": "default"}, "spec": {"pods": 3}}
    world = a_world(Maker("post_bind", Create(kind="TeamBudget", key="default/red", body=body)), "postBind")
    world.submit(a_pod("web"))
    world.advance(5)
    made = world.objects["TeamBudget", "default/red"]
    assert isinstance(made, TeamBudget) and made.spec.pods == 3
