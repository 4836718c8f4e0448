"""Plugins that reconcile objects: what they get, how often they are called, and what happens after failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.engine.reconcilers import AFTER_ERROR, MOST_WRITES
from stowplan.engine.reports import PluginMisbehaved, Report
from stowplan.objects import kinds
from stowplan.objects.actions import Patch, PodRef, Record, RequestEviction
from stowplan.objects.changes import Result
from stowplan.objects.meta import Object
from stowplan.objects.workloads import ReplicaSet
from stowplan.testing.builders import a_node, a_pod, a_replica_set
from stowplan.testing.world import World
from tests.engine.small_plugins import profiles


class Census:
    """Writes the number of bound pods to an annotation of a ReplicaSet."""

    reconciles = ("Pod", "ReplicaSet")
    writes: ClassVar = {"ReplicaSet": ("patch",)}

    def __init__(self) -> None:
        self.told: list[list[str] | None] = []
        self.fails = False

    def post_bind(self, *_: Any) -> tuple[()]:
        return ()

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        if self.fails:
            raise KeyError("oops")
        self.told.append(None if changed is None else [f"{type(each).__name__} {each.name}" for each in changed])
        found = cluster.get(ReplicaSet, "default/web")
        number = str(sum(len(list(node.pods)) for node in cluster.nodes))
        if found is not None and found.annotations.get("census") != number:
            yield Patch(kind="ReplicaSet", key=found.key, body={"metadata": {"annotations": {"census": number}}})


class Many:
    """Writes to a hundred objects at once."""

    reconciles = ("Node",)
    writes: ClassVar = {"ReplicaSet": ("patch",)}

    def post_bind(self, *_: Any) -> tuple[()]:
        return ()

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        for number in range(100) if changed is None else ():
            yield Patch(kind="ReplicaSet", key=f"default/{number}", body={})


@pytest.fixture
def census() -> Census:
    return Census()


@pytest.fixture
def world(census: Census) -> World:
    world = World(nodes=["a"], profiles=profiles(postBind=[census]))
    world.submit(a_replica_set("web"))
    world.run()
    return world


def counted(world: World) -> str | None:
    return world.objects["ReplicaSet", "default/web"].annotations.get("census")


def test_a_plugin_may_ask_to_be_called_again(world: World, census: Census) -> None:
    """By the time that it names, though nothing changed."""
    census.reconcile_at = 30.0  # type: ignore[attr-defined]
    world.advance(29)
    before = len(census.told)
    world.advance(1)
    assert census.told[before:] == [[]]
    census.reconcile_at = None  # type: ignore[attr-defined]
    world.advance(60)
    assert len(census.told) == before + 1


def test_a_time_that_is_none_is_reported(census: Census) -> None:
    """The plugin is asked again when something changes."""
    said: list[Report] = []
    world = World(nodes=["a"], profiles=profiles(postBind=[census]), report=said.append)
    world.submit(a_replica_set("web"))
    world.run()
    census.reconcile_at = "soon"  # type: ignore[attr-defined]
    world.advance(60)
    problem = PluginMisbehaved("Census", "reconcile_at", "is 'soon'; a number of seconds is right")
    assert [each for each in said if isinstance(each, PluginMisbehaved)] == [problem]
    before = len(census.told)
    world.submit(a_pod("p"))
    world.advance(2)
    assert len(census.told) > before and counted(world) == "1"


def test_the_first_call_has_everything_and_the_next_ones_what_changed(world: World, census: Census) -> None:
    assert census.told[0] is None and counted(world) == "0"
    world.submit(a_pod("p"))
    world.run()
    assert counted(world) == "0", "it was asked a moment ago"
    world.advance(2)
    assert counted(world) == "1"
    seen = {each for told in census.told[1:] for each in told or ()}
    assert seen == {"Pod p", "ReplicaSet web"}


def test_a_reconciler_is_not_called_while_nothing_changes(world: World, census: Census) -> None:
    world.advance(5)  # its own patch is news, once
    asked = len(census.told)
    world.advance(600)
    assert len(census.told) == asked


def test_a_reconciler_is_not_called_before_its_patches_are_answered(world: World, census: Census) -> None:
    world.advance(5)
    world.answers = lambda action: None if isinstance(action, Patch) else Result(action.id)
    world.submit(a_pod("p"))
    world.advance(3)
    asked = len(census.told)
    world.submit(a_pod("q"))
    world.advance(3)
    assert len(census.told) == asked
    world.answers = lambda action: Result(action.id)
    world.advance(60)  # the patch counts as lost
    assert None in census.told[asked:] and counted(world) == "2"


@pytest.mark.parametrize(("status", "again"), [(409, True), (500, True), (404, False)])
def test_after_a_refused_write_a_reconciler_gets_everything(
    world: World, census: Census, status: int, again: bool
) -> None:
    world.advance(5)
    world.answers = lambda action: Result(action.id, status if isinstance(action, Patch) else 200)
    world.submit(a_pod("p"))
    world.advance(3)
    asked = len(census.told)
    world.answers = lambda action: Result(action.id)
    world.advance(3)
    assert (None in census.told[asked:]) is again
    assert (counted(world) == "1") is again


def test_a_reconciler_that_raises_is_called_again_later_and_pods_are_scheduled(world: World, census: Census) -> None:
    world.advance(5)
    census.fails = True
    world.submit(a_pod("p"))
    world.advance(3)
    assert world.bindings == {"p": "a"} and counted(world) == "0"
    census.fails, asked = False, len(census.told)
    world.advance(5)
    assert len(census.told) == asked, "not at once"
    world.advance(6)
    assert census.told[asked] is None and counted(world) == "1"


def test_each_error_is_reported() -> None:
    said: list[Report] = []
    census = Census()
    census.fails = True
    world = World(nodes=["a"], profiles=profiles(postBind=[census]), report=said.append)
    world.advance(AFTER_ERROR * 2)
    assert len(said) == 3 and len(set(said)) == 1
    (problem,) = {each for each in said if isinstance(each, PluginMisbehaved)}
    assert (problem.plugin, problem.point) == ("Census", "reconcile")
    assert problem.problem.startswith("KeyError: 'oops' (test_reconcilers.py:")
    census.reconcile = lambda *_: ["nothing"]  # type: ignore[method-assign,assignment]
    world.advance(AFTER_ERROR)
    assert said[-1] == PluginMisbehaved(
        "Census", "reconcile", "answered 'nothing'; only Patch or Create or Delete or RequestEviction is right"
    )


@pytest.mark.parametrize("status", [200, 403, 404, 0])
def test_the_number_of_pending_writes_is_limited(status: int) -> None:
    world = World(profiles=profiles(postBind=[Many()]), checks=False)
    world.answers = lambda _: None
    world.submit(a_node("a"))
    world.run()
    assert len(world.actions) == MOST_WRITES and all(map(world.scheduler.is_upkeep, world.actions))
    for sent in range(MOST_WRITES + 1, 101):
        world.deliver_result(Result(world.actions[sent - MOST_WRITES - 1].id, status))
        assert len(world.actions) == sent
    first = [action.key for action in world.actions if isinstance(action, Patch)][:100]
    assert first == [f"default/{number}" for number in range(100)]
    assert not world.scheduler.is_upkeep(world.actions[0]) and world.scheduler.is_upkeep(world.actions[-1])


def test_a_plugin_of_two_profiles_reconciles_once(census: Census) -> None:
    one = profiles(postBind=[census])["default-scheduler"]
    world = World(nodes=["a"], profiles={"default-scheduler": one, "other": one})
    world.submit(a_replica_set("web"))
    world.run()
    assert len([action for action in world.actions if isinstance(action, Patch)]) == 1


def test_a_json_patch_may_test_what_it_is_based_on(world: World) -> None:
    def patch(old: str, new: str) -> Result:
        path = "/metadata/annotations/census"
        body = [{"op": "test", "path": path, "value": old}, {"op": "replace", "path": path, "value": new}]
        return world.perform(Patch(kind="ReplicaSet", key="default/web", body=body))

    assert patch("7", "8").status == 409 and counted(world) == "0"
    assert patch("0", "8").succeeded and counted(world) == "8"


def test_a_write_that_is_always_refused_backs_off(world: World, census: Census) -> None:
    world.advance(5)
    world.answers = lambda action: Result(action.id, 403 if isinstance(action, Patch) else 200)
    world.submit(a_pod("p"))
    world.advance(1000)
    refused = sum(isinstance(action, Patch) for action in world.actions)
    assert 5 <= refused <= 14
    world.answers = lambda action: Result(action.id)
    world.advance(301)
    assert counted(world) == "1"


# -- one object that is refused


class Labels:
    """Writes the number of a ReplicaSet's changes to it; says what it was told."""

    reconciles = ("ReplicaSet",)
    writes: ClassVar = {"ReplicaSet": ("patch",)}

    def __init__(self, *, retries_by_object: bool) -> None:
        self.retries_by_object = retries_by_object
        self.told: list[set[str] | None] = []

    def post_bind(self, *_: Any) -> tuple[()]:
        return ()

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        self.told.append(None if changed is None else {each.name for each in changed})
        every = cluster.every(ReplicaSet)
        for key in every if changed is None else dict.fromkeys(each.key for each in changed):
            if key in every and "wanted" in every[key].labels:
                label = every[key].labels["wanted"]
                if every[key].annotations.get("label") != label:
                    yield Patch(kind="ReplicaSet", key=key, body={"metadata": {"annotations": {"label": label}}})


def labelled(name: str, wanted: str) -> ReplicaSet:
    return kinds.convert(ReplicaSet, {"metadata": {"name": name, "namespace": "default", "labels": {"wanted": wanted}}})


def refusing(world: World, name: str, status: int = 403) -> None:
    world.answers = lambda action: Result(
        action.id, status if isinstance(action, Patch) and action.key.endswith(f"/{name}") else 200
    )


def writes_to(world: World, name: str) -> int:
    return sum(isinstance(each, Patch) and each.key == f"default/{name}" for each in world.actions)


@pytest.mark.parametrize("status", [403, 409, 500])
def test_an_object_that_is_refused_for_good_delays_no_other(status: int) -> None:
    """And the plugin is asked about that object alone, ever less often, however many other writes succeed."""
    plugin = Labels(retries_by_object=True)
    world = World(nodes=["a"], profiles=profiles(postBind=[plugin]))
    refusing(world, "bad", status)
    world.submit(labelled("bad", "1"), labelled("good", "0"))
    world.run()
    for second in range(1, 200):
        world.submit(labelled("good", str(second)))
        world.advance(1)
    assert writes_to(world, "good") > 150
    assert plugin.told[0] is None and None not in plugin.told[1:]
    assert 5 <= writes_to(world, "bad") <= 10
    world.answers = lambda action: Result(action.id)
    world.advance(301)
    assert world.objects["ReplicaSet", "default/bad"].annotations["label"] == "1"
    told = len(plugin.told)
    world.advance(1000)
    assert len(plugin.told) <= told + 1, "nothing is left to do"


def test_an_object_that_pauses_is_not_written_though_it_changes() -> None:
    plugin = Labels(retries_by_object=True)
    world = World(nodes=["a"], profiles=profiles(postBind=[plugin]))
    refusing(world, "bad")
    for second in range(200):
        world.submit(labelled("bad", str(second)))
        world.advance(1)
    assert 5 <= writes_to(world, "bad") <= 10


def test_a_plugin_that_does_not_say_so_is_asked_about_everything() -> None:
    plugin = Labels(retries_by_object=False)
    world = World(nodes=["a"], profiles=profiles(postBind=[plugin]))
    refusing(world, "bad")
    world.submit(labelled("bad", "1"), labelled("good", "1"))
    for second in range(200):
        world.submit(labelled("good", str(second)))
        world.advance(1)
    assert 5 <= sum(told is None for told in plugin.told) <= 10


def test_a_refused_object_that_is_deleted_is_forgotten() -> None:
    plugin = Labels(retries_by_object=True)
    world = World(nodes=["a"], profiles=profiles(postBind=[plugin]))
    refusing(world, "bad")
    world.submit(labelled("bad", "1"))
    world.advance(10)
    world.delete(labelled("bad", "1"))
    world.advance(300)
    told = len(plugin.told)
    world.advance(1000)
    assert len(plugin.told) == told


# -- evictions


class Mover:
    """Evicts the pod `p` again and again, and notes where it would go."""

    reconciles = ("Node",)
    writes: ClassVar = {"Pod": ("evict",)}

    def __init__(self) -> None:
        self.told: list[bool] = []
        self.would_go: list[str | None] = []
        self.reconcile_at = 5.0

    def post_bind(self, *_: Any) -> tuple[()]:
        return ()

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[RequestEviction]:
        self.told.append(changed is None)
        self.reconcile_at = cluster.now + 5
        pod = next((pod for pod in cluster.known_pods() if pod.name == "p" and pod.node_name), None)
        if pod is not None:
            self.would_go.append(cluster.node_for(pod))
            yield RequestEviction(pod=PodRef(pod.namespace, pod.name, pod.uid), message="to test it")


@pytest.mark.parametrize(
    ("status", "events", "everything"),
    [
        pytest.param(200, ["to test it"], False, id="evicted: the pod is told"),
        pytest.param(429, [], False, id="a budget says no, which is no failure"),
        pytest.param(403, [], True, id="without the right, which is one"),
    ],
)
def test_evictions(status: int, events: list[str], everything: bool) -> None:
    mover = Mover()
    world = World(nodes=["a", a_node("b", unschedulable=True)], profiles=profiles(postBind=[mover]))
    world.submit(a_pod("p"))
    world.run()
    world.answers = lambda action: Result(action.id, status if isinstance(action, RequestEviction) else 200)
    before = len(mover.told)
    world.advance(6)
    assert mover.would_go[0] == "a", "where it is: as if it were not there"
    assert [each.note for each in world.actions if isinstance(each, Record) and each.action == "Evicting"] == events
    assert any(mover.told[before:]) == everything


def test_only_a_reconciler_may_ask_where_a_pod_would_go() -> None:
    pod = a_pod("p", node="a")
    world = World(nodes=["a"])
    world.submit(pod)
    with pytest.raises(LookupError, match="only `reconcile` may ask"):
        Cluster(world.scheduler.state).node_for(pod)
