"""HTTP extenders: what they decide, the form of their answers, and what happens to the pod if they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from stowplan.apps import profile_loader
from stowplan.engine.unit import QueueStage
from stowplan.framework.config.settings import Extender, ManagedResource
from stowplan.objects.actions import Ask, Bind, Evict
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.situations.recorders import HIGH, LOW, MEDIUM, Held, of, reason, rejectors, where

MANAGED = "foo.com/bar"
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
MACHINES = [f"machine{number}" for number in range(1, 6)]


def asked(world: World, verb: str = "") -> list[Ask]:
    return [ask for ask in of(world, Ask) if verb in ("", ask.verb)]


def as_nodes(names: Iterable[str]) -> dict[str, Any]:
    return {"Nodes": {"items": [{"metadata": {"name": name}} for name in names]}}


# -- as kube-scheduler's own test has it


class Service:
    """One of kube-scheduler's test extenders: keeps some machines and prefers one of them."""

    def __init__(self, keeps: Iterable[str], likes: str, weight: int = 1) -> None:
        self._keeps, self._likes, self._weight = frozenset(keeps), likes, weight

    def __call__(self, ask: Ask, cached: bool) -> Any:
        if ask.verb == "bind":
            return {}
        if ask.verb == "prioritize":
            return [{"Host": name, "Score": (10 if name == self._likes else 1) * self._weight} for name in ask.nodes]
        kept = [name for name in ask.nodes if name in self._keeps]
        failed = {name: "extender failed" for name in ask.nodes if name not in kept}
        return {**({"NodeNames": kept} if cached else as_nodes(kept)), "FailedNodes": failed}


def test_three_extenders_decide_where_a_pod_goes_and_one_binds_it() -> None:
    managed = [{"name": MANAGED, "ignoredByScheduler": True}]
    both = {"filterVerb": "filter", "prioritizeVerb": "prioritize"}
    listed = [
        {"urlPrefix": "http://one", "weight": 3, **both},
        {"urlPrefix": "http://two", "weight": 4, "bindVerb": "bind", "managedResources": managed, **both},
        {"urlPrefix": "http://three", "weight": 10, "nodeCacheCapable": True, **both},
    ]
    configuration, profiles = profile_loader.configured({**HEAD, "extenders": listed})
    services = [
        Service(["machine1", "machine2", "machine3"], likes="machine2"),
        Service(["machine2", "machine3", "machine5"], likes="machine3"),
        Service(["machine1", "machine2", "machine3"], likes="machine2", weight=5),
    ]
    world = World(nodes=MACHINES, profiles=profiles, extenders=configuration.extenders)
    world.overcommitted.update(MACHINES)  # they do not even offer the resource, which is the extender's affair
    world.extender = lambda ask: Result(ask.id, body=services[ask.extender](ask, ask.extender == 2))
    world.submit(a_pod("web", requests={MANAGED: 1}))
    world.run()
    assert [(ask.extender, len(ask.nodes)) for ask in asked(world, "filter")] == [(0, 5), (1, 3), (2, 2)]
    assert {(ask.extender, len(ask.nodes)) for ask in asked(world, "prioritize")} == {(0, 2), (1, 2), (2, 2)}
    assert world.bindings == {"web": "machine2"}
    assert [(ask.extender, ask.nodes) for ask in asked(world, "bind")] == [(1, ("machine2",))] and not of(world, Bind)


# -- one extender, one verb


def one(answer: Callable[[Ask], Any], nodes: Iterable[Any] = ("a", "b"), status: int = 200, **settings: Any) -> World:
    """Return a world with an extender that gives this answer."""
    extender = Extender(url_prefix="http://one", **{"node_cache_capable": True, **settings})
    world = World(nodes=nodes, extenders=(extender,), initial_backoff=0.5, max_backoff=0.5)
    world.extender = lambda ask: Result(ask.id, status, body=answer(ask))
    return world


@pytest.mark.parametrize(
    ("status", "body", "settings", "outcome"),
    [
        pytest.param(200, {"NodeNames": ["b"]}, {}, "b", id="it keeps one node"),
        pytest.param(200, {"nodenames": ["b"], "failednodes": {"a": "no"}}, {}, "b", id="in lower case"),
        pytest.param(200, as_nodes(["b"]), {}, "b", id="it answers with nodes though it was asked by name"),
        pytest.param(200, as_nodes(["b"]), {"node_cache_capable": False}, "b", id="it answers with nodes"),
        pytest.param(
            200, {"nodes": {"Items": [{"metadata": {"name": "b"}}]}}, {"node_cache_capable": False}, "b", id="likewise"
        ),
        pytest.param(
            200,
            {"NodeNames": [], "FailedNodes": {"a": "no", "b": "no"}},
            {},
            "0/2 nodes are available: 2 no.",
            id="it keeps none",
        ),
        pytest.param(200, {}, {}, "0/2 nodes are available:", id="its answer is empty, which means no node"),
        pytest.param(
            500, None, {}, "failed filter with extender at URL http://one/filter, code 500", id="its answer is an error"
        ),
        pytest.param(200, {"Error": "broken"}, {}, "broken", id="its answer says that something went wrong"),
        pytest.param(200, {"NodeNames": ["c"]}, {}, 'claims a filtered node "c"', id="it names another node"),
        pytest.param(500, None, {"ignorable": True}, "a b", id="its error may be ignored"),
        pytest.param(200, {"Error": "broken"}, {"ignorable": True}, "a b", id="what went wrong may be ignored"),
    ],
)
def test_filter(status: int, body: Any, settings: dict[str, Any], outcome: str) -> None:
    world = one(lambda _: body, status=status, filter_verb="filter", **settings)
    world.submit(a_pod("web"))
    world.run()
    assert asked(world, "filter")[0].nodes == ("a", "b")
    if world.bindings:
        assert where(world, "web") in outcome.split()
        return
    error = not outcome.startswith("0/2")
    assert where(world, "web") is (QueueStage.BACKOFF if error else QueueStage.UNSCHEDULABLE)
    assert reason(world, "web") == ("SchedulerError" if error else "Unschedulable")
    assert outcome in world.event_notes("web", "FailedScheduling")[0]
    assert rejectors(world, "web") == (set() if error else {"Extender"})


@pytest.mark.parametrize(
    ("ignorable", "bound"),
    [pytest.param(False, False, id="the attempt fails"), pytest.param(True, True, id="it goes on without it")],
)
def test_a_filter_that_does_not_answer(ignorable: bool, bound: bool) -> None:
    world = one(lambda _: None, filter_verb="filter", http_timeout=5.0, ignorable=ignorable)
    Held(world, Ask)
    world.submit(a_pod("web"))
    world.advance(4.9)
    assert where(world, "web") is QueueStage.IN_FLIGHT and len(asked(world)) == 1
    world.advance(0.2)
    assert bool(world.bindings) is bound
    assert reason(world, "web") == ("" if bound else "SchedulerError")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        # kube-scheduler ends such a dry run with an error of its own ("expected at least one victim pod").
        pytest.param("FailedNodes", "1 Preemption is not helpful for scheduling.", id="eviction may help, it says"),
        pytest.param(
            "FailedAndUnresolvableNodes", "1 Preemption is not helpful for scheduling.", id="eviction cannot help"
        ),
    ],
)
def test_no_pod_is_evicted_for_a_refusal_by_an_extender(key: str, told: str) -> None:
    """The dry run calls plugins only, and no plugin rejects the node, so evictions cannot help."""

    def filters(ask: Ask) -> Any:
        return {key: dict.fromkeys(ask.nodes, "no")} if ask.pod.name == "high" else {"NodeNames": list(ask.nodes)}

    world = one(filters, ["a"], filter_verb="filter")
    world.submit(a_pod("low", priority=LOW))
    world.run()
    assert world.bindings == {"low": "a"}
    world.submit(a_pod("high", priority=HIGH))
    world.run()
    assert where(world, "high") is QueueStage.UNSCHEDULABLE and not of(world, Evict)
    assert world.event_notes("high", "FailedScheduling")[0].startswith("0/1 nodes are available: 1 no. ")
    assert world.event_notes("high", "FailedScheduling")[0].endswith(told)


def test_a_pod_that_an_extender_refused_is_requeued_by_any_event() -> None:
    refusing = [True]
    world = one(lambda ask: {"NodeNames": [] if refusing else list(ask.nodes)}, filter_verb="filter")
    world.submit(a_pod("web"))
    world.run()
    assert where(world, "web") is QueueStage.UNSCHEDULABLE
    refusing.clear()
    world.submit(a_node("a", labels={"any": "thing"}))
    world.run()
    assert where(world, "web") in ("a", "b")


def test_an_extender_is_asked_about_the_nominated_node_first() -> None:
    world = one(lambda ask: {"NodeNames": [name for name in ask.nodes if name != "a"]}, filter_verb="filter")
    world.submit(a_pod("web", nominated="a"))
    world.run()
    assert asked(world, "filter")[0].nodes == ("a",)
    assert world.bindings == {"web": "b"}


# -- scores


def likes(name: str) -> Callable[[Ask], Any]:
    return lambda ask: [{"Host": each, "Score": int(each == name)} for each in ask.nodes]


UNEVEN = [a_node("large", cpu=64, memory="64Gi"), a_node("small", cpu=2, memory="2Gi")]


@pytest.mark.parametrize(
    ("status", "answer", "weight", "winner"),
    [
        pytest.param(200, likes("large"), 10, "large", id="it likes what the plugins like"),
        pytest.param(200, likes("small"), 10, "small", id="it likes another node, and has weight"),
        pytest.param(200, likes("small"), 1, "large", id="it likes another node, and has little weight"),
        pytest.param(
            200, lambda _: [{"host": "small", "score": 1}], 10, "small", id="in lower case, and about one node only"
        ),
        pytest.param(500, likes("small"), 10, "large", id="its answer is an error, and it has no say"),
    ],
)
def test_prioritize(status: int, answer: Callable[[Ask], Any], weight: int, winner: str) -> None:
    world = one(answer, UNEVEN, status, prioritize_verb="prioritize", weight=weight)
    world.submit(a_pod("web", cpu=1, memory="1Gi"))
    world.run()
    assert set(asked(world, "prioritize")[0].nodes) == {"large", "small"}
    assert world.bindings == {"web": winner}


def test_no_extender_is_asked_to_prioritize_a_single_node() -> None:
    world = one(likes("a"), ["a"], prioritize_verb="prioritize", weight=1)
    world.submit(a_pod("web"))
    world.run()
    assert not asked(world) and world.bindings == {"web": "a"}


# -- whom it cares about


@pytest.mark.parametrize(
    ("pod", "cares"),
    [
        pytest.param(a_pod("web", requests={MANAGED: 1}), True, id="a pod that requests its resource"),
        pytest.param(
            a_pod("web", containers=[{"name": "main", "resources": {"limits": {MANAGED: 1}}}]),
            True,
            id="a pod that limits its resource",
        ),
        pytest.param(
            a_pod("web", initContainers=[{"name": "init", "resources": {"requests": {MANAGED: 1}}}]),
            True,
            id="a pod that needs it while it starts",
        ),
        pytest.param(a_pod("web", requests={"foo.com/other": 1}), False, id="a pod that requests another resource"),
        pytest.param(a_pod("web"), False, id="a pod that requests nothing"),
    ],
)
def test_managed_resources(pod: Pod, cares: bool) -> None:
    offers = {MANAGED: 10, "foo.com/other": 10}
    managed = (ManagedResource(name=MANAGED),)
    world = one(
        lambda ask: {"NodeNames": list(ask.nodes)},
        [a_node("a", resources=offers), a_node("b", resources=offers)],
        filter_verb="filter",
        managed_resources=managed,
    )
    world.submit(pod)
    world.run()
    assert list(world.bindings) == ["web"] and bool(asked(world)) is cares


# -- binding


@pytest.mark.parametrize(
    ("status", "ignorable", "by_plugin", "told"),
    [
        pytest.param(200, False, 0, "", id="it binds"),
        pytest.param(500, False, 0, "SchedulerError", id="it fails"),
        pytest.param(500, True, 1, "", id="it fails, which may be ignored: the plugins bind"),
        pytest.param(0, False, 0, "SchedulerError", id="it does not answer"),
        pytest.param(0, True, 1, "", id="it does not answer, which may be ignored: the plugins bind"),
    ],
)
def test_bind(status: int, ignorable: bool, by_plugin: int, told: str) -> None:
    world = one(lambda _: {}, ["a"], status or 200, bind_verb="bind", ignorable=ignorable, http_timeout=5.0)
    if not status:
        Held(world, Ask)
    world.submit(a_pod("web"))
    world.run()
    world.advance(0.0 if status else 5.0)
    assert asked(world, "bind")[0].nodes == ("a",) and len(of(world, Bind)) == by_plugin
    assert reason(world, "web") == told
    assert where(world, "web") == (QueueStage.BACKOFF if told else "a")


# -- preemption


def crowded(answer: Callable[[Ask], Any], status: int = 200, **settings: Any) -> World:
    """Return a world with two full nodes; kube-scheduler's own choice would be `a`, which has the pod of a lower
    priority.
    """
    world = one(answer, [a_node("a", cpu=2), a_node("b", cpu=2)], status, preempt_verb="preempt", **settings)
    world.submit(a_pod("low-1", cpu=1, priority=LOW, node="a"), a_pod("low-2", cpu=1, priority=LOW, node="a"))
    world.submit(a_pod("mid-1", cpu=1, priority=MEDIUM, node="b"), a_pod("mid-2", cpu=1, priority=MEDIUM, node="b"))
    world.submit(a_pod("high", cpu=2, priority=HIGH))
    return world


def victims(**pods: list[str]) -> dict[str, Any]:
    found = {
        node: {"Pods": [{"UID": f"uid-of-default-{name}"} for name in names]} for node, names in pods.items()
    }  # fmt: skip
    return {"NodeNameToMetaVictims": found}


@pytest.mark.parametrize(
    ("status", "body", "ignorable", "evicted"),
    [
        pytest.param(
            200,
            victims(a=["low-1", "low-2"], b=["mid-1", "mid-2"]),
            False,
            ["low-1", "low-2"],
            id="it leaves both nodes, and the better one is taken",
        ),
        pytest.param(200, victims(b=["mid-1", "mid-2"]), False, ["mid-1", "mid-2"], id="it leaves one node"),
        pytest.param(200, victims(a=["low-1"]), False, ["low-1"], id="it leaves some of the victims"),
        pytest.param(
            200,
            {"nodenametometavictims": {"b": {"pods": [{"uid": "uid-of-default-mid-1"}]}}},
            False,
            ["mid-1"],
            id="in lower case",
        ),
        pytest.param(200, victims(), False, [], id="it leaves no node"),
        pytest.param(200, victims(a=[]), False, [], id="it leaves a node without victims, which is an error"),
        pytest.param(
            200, victims(a=[], b=["mid-1"]), True, ["mid-1"], id="a node without victims, which may be ignored"
        ),
        pytest.param(200, victims(a=["ghost"]), False, [], id="it names a pod that is not there, which is an error"),
        pytest.param(500, None, False, [], id="its answer is an error"),
        pytest.param(500, None, True, ["low-1", "low-2"], id="its error may be ignored"),
    ],
)
def test_preempt(status: int, body: Any, ignorable: bool, evicted: list[str]) -> None:
    world = crowded(lambda _: body, status, ignorable=ignorable)
    held = Held(world, Evict)
    world.run()
    offered = asked(world, "preempt")[0].victims
    assert {node: len(each.pods) for node, each in offered.items()} == {"a": 2, "b": 2}
    assert held.names() == evicted
    assert where(world, "high") is QueueStage.UNSCHEDULABLE and reason(world, "high") == "Unschedulable"
    assert rejectors(world, "high") == {"NodeResourcesFit"}
    node = "" if not evicted else "b" if evicted[0].startswith("mid") else "a"
    assert world.pod("high").nominated_node == node
