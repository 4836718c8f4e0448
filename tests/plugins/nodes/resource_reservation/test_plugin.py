"""ResourceReservation, one decision at a time: which nodes a driver may have, where its executors' places are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Decision
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.plugin_checks import check_plugin
from stowplan.objects.errors import ConfigError
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.resource_reservation.plugin import ResourceReservationPlugin
from stowplan.testing.builders import a_node, a_pod, a_state, rejections
from tests.plugins.nodes.resource_reservation.reservations import (
    a_driver,
    a_reservation,
    a_world,
    an_executor,
    needs,
    places,
    profiles,
    reservation,
    told,
)

DOES_NOT_FIT = "application does not fit to the cluster"
GPU = "nvidia.com/gpu"


def decided(pod: Pod, state: ClusterState, **arguments: Any) -> Decision:
    (profile,) = profiles(**arguments).values()
    profile.attach(state)
    return schedule_one(pod, state, profile, preempt=False)


def feasible(decision: Decision) -> set[str]:
    return {name for name, verdict in decision.trail.rejections() if verdict is None}


# -- drivers


@pytest.mark.parametrize(
    ("cpus", "executors", "expected"),
    [
        pytest.param({"a": 3, "b": 3}, 4, {"a", "b"}, id="room for all, wherever the driver goes"),
        pytest.param({"a": 3, "b": 2}, 4, {"a", "b"}, id="just enough"),
        pytest.param({"a": 2, "b": 2}, 4, set(), id="room for the executors, or for the driver"),
        pytest.param({"a": "4500m", "b": "1500m"}, 4, {"a", "b"}, id="what is left over of the nodes does not count"),
        pytest.param({"a": "4", "b": "1500m"}, 4, {"b"}, id="the driver must not take the room of two"),
        pytest.param({"a": 1}, 0, {"a"}, id="no executors"),
    ],
)
def test_nodes_where_a_driver_leaves_room(cpus: dict[str, Any], executors: int, expected: set[str]) -> None:
    state = a_state(nodes=[a_node(name, cpu=cpu) for name, cpu in cpus.items()])
    cpu = "1500m" if cpus.get("b") == "1500m" and cpus["a"] == "4" else 1
    decision = decided(a_driver(annotations=needs(executors), cpu=cpu), state)
    assert feasible(decision) == expected
    refused = {name for name in cpus if name not in expected}
    if refused:
        assert all(rejections(decision)[name][2] == (DOES_NOT_FIT,) for name in refused)


@pytest.mark.parametrize(
    ("nodes", "driver"),
    [
        pytest.param([a_node("a"), a_node("b", unschedulable=True)], {}, id="a node that is closed"),
        pytest.param([a_node("a"), a_node("b", taints=["own:NoSchedule"])], {}, id="a taint that it does not tolerate"),
        pytest.param(
            [a_node("a", labels={"sort": "x"}), a_node("b")], {"node_selector": {"sort": "x"}}, id="its node selector"
        ),
        pytest.param([a_node("a"), a_node("b", pods=0)], {}, id="a node that takes no pods"),
        pytest.param([a_node("a"), a_node("b", memory="512Mi")], {}, id="too little memory"),
    ],
)
def test_executors_go_where_the_filters_let_them(nodes: list[Node], driver: dict[str, Any]) -> None:
    """Four cores on each of two nodes, but only one of them counts: the driver and three, not four."""
    assert feasible(decided(a_driver(annotations=needs(3), **driver), a_state(nodes=nodes))) == {"a"}
    assert feasible(decided(a_driver(annotations=needs(4), **driver), a_state(nodes=nodes))) == set()


def test_what_others_have_counts() -> None:
    rival = a_pod("rival", cpu=1, node="a")
    kept = a_reservation(one=("b", {"cpu": 1}))
    state = a_state(nodes=[a_node("a"), a_node("b")], pods=[rival], others=[kept])
    assert feasible(decided(a_driver(annotations=needs(5)), state)) == {"a", "b"}
    assert feasible(decided(a_driver(annotations=needs(6)), state)) == set()


@pytest.mark.parametrize(
    ("driver", "message"),
    [
        pytest.param(
            a_driver(annotations=needs(9)),
            "0/2 nodes are available: 2 application does not fit to the cluster.",
            id="too many executors",
        ),
        pytest.param(
            a_driver(annotations={"spark_executor_cpu": 1}),
            "0/2 nodes are available: the driver's annotation spark-executor-mem is missing.",
            id="annotations that say too little",
        ),
        pytest.param(
            a_driver("kept"),
            "0/2 nodes are available: ResourceReservation kept is there and belongs to a user.",
            id="a reservation of the same name that somebody wrote",
        ),
    ],
)
def test_what_a_driver_is_told(driver: Pod, message: str) -> None:
    state = a_state(nodes=[a_node("a"), a_node("b")], others=[a_reservation(one=("b", {"cpu": 1}))])
    assert decided(driver, state).message == message


def test_the_event_says_how_much_is_missing() -> None:
    world = a_world("a", "b")
    world.submit(a_driver(annotations=needs(9)))
    world.run()
    expected = "The driver and 7 of 9 executors (cpu 1, memory 1Gi each) have room beside other pods"
    assert expected in told(world, "app-driver")


# -- where the places are


@pytest.mark.parametrize(
    ("packing", "expected"),
    [
        pytest.param("evenly", {"a": 2, "b": 2}, id="evenly"),
        pytest.param("distribute-evenly", {"a": 2, "b": 2}, id="evenly, in Palantir's words"),
        pytest.param("tightly", {"a": 3, "b": 1}, id="tightly: what is nearly full first"),
        pytest.param("tightly-pack", {"a": 3, "b": 1}, id="tightly, in Palantir's words"),
        pytest.param("minimalFragmentation", {"b": 4}, id="few nodes"),
        pytest.param("minimal-fragmentation", {"b": 4}, id="few nodes, in Palantir's words"),
    ],
)
def test_packings(packing: str, expected: dict[str, int]) -> None:
    """Only one node is large enough for the driver, and has room for nobody else."""
    nodes = (a_node("large", cpu=1, memory="64Gi"), a_node("a", cpu=3, memory="7Gi"), a_node("b", cpu=4))
    world = a_world(*nodes, args={"packing": packing})
    world.submit(a_driver(memory="32Gi"))
    world.run()
    assert world.bindings == {"app-driver": "large"}
    assert places(world) == {"large": 1, **expected}


def test_the_references_two_nodes() -> None:
    """5 and 4 cores, 10 and 5 of memory, 3 GPUs each; one executor goes to each."""
    gpus = {GPU: 3}
    annotations = {**needs(2, cpu=2, memory="5Gi"), f"spark_executor_{GPU}": 1}
    world = a_world(
        a_node("n1", cpu=5, memory="10Gi", resources=gpus), a_node("n2", cpu=4, memory="5Gi", resources=gpus)
    )
    world.submit(a_driver(annotations=annotations, cpu=1, memory="3Gi", requests={GPU: 1}))
    world.run()
    assert world.bindings == {"app-driver": "n1"}
    assert places(world) == {"n1": 2, "n2": 1}


def test_forty_executors() -> None:
    world = a_world(*(a_node(name, cpu=cpu, memory="99Gi") for name, cpu in (("a", 13), ("b", 12), ("c", 16))))
    world.submit(a_driver(annotations=needs(40)))
    world.run()
    assert sorted(places(world).values()) == [12, 13, 16]
    world.submit(a_pod("rival", cpu="1m"))
    world.run()
    assert told(world, "rival").startswith("0/3 nodes are available: 3 Insufficient cpu.")


@pytest.mark.parametrize(
    ("executors", "on_gpus"),
    [
        pytest.param(3, 0, id="the others do"),
        pytest.param(5, 2, id="they do not"),
    ],
)
def test_nodes_with_gpus_are_for_those_who_need_them(executors: int, on_gpus: int) -> None:
    world = a_world(a_node("gpu", cpu=8, resources={GPU: 4}), a_node("a", cpu=4))
    world.submit(a_driver(annotations=needs(executors)))
    world.run()
    assert world.bindings == {"app-driver": "a"}
    assert places(world)["gpu"] == on_gpus
    world.submit(*(an_executor(number) for number in range(executors)))
    world.run()
    assert Counter(world.bindings.values())["gpu"] == on_gpus


def zoned(**zones: int) -> list[Node]:
    return [
        a_node(name, cpu=cpu, labels={"topology.kubernetes.io/zone": name[0]}) for name, cpu in sorted(zones.items())
    ]


@pytest.mark.parametrize("args", [{"singleZone": True}, {"packing": "single-az-tightly-pack"}], ids=str)
def test_one_zone_for_all(args: dict[str, Any]) -> None:
    world = a_world(*zoned(x1=2, x2=2, y1=3, y2=3, z1=4), args=args)
    world.submit(a_driver(annotations=needs(5)))
    world.run()
    assert {node[0] for node in places(world)} == {"y"}
    assert world.bindings["app-driver"][0] == "y"


def test_extra_executors_stay_in_the_zone() -> None:
    world = a_world(*zoned(x1=2, y1=1), args={"singleZone": True})
    world.submit(a_driver(annotations=needs(least=1, most=3)))
    world.run()
    world.submit(an_executor(1), an_executor(2))
    world.run()
    assert world.bindings == {"app-driver": "x1", "app-1": "x1"}
    other = "node(s) were in another zone than the driver of the application"
    assert f"1 {other}" in told(world, "app-2")


# -- first come, first served


def waiting(world: Any) -> set[str]:
    return {pod.name for pod in world.pods() if not pod.node_name}


def early(app: str, hour: int, executors: int) -> Pod:
    return a_driver(app, f"2026-01-01T{hour:02}:00:00Z", annotations=needs(executors))


def test_a_later_driver_waits_for_one_that_does_not_fit() -> None:
    world = a_world("a", args={"fifo": True})
    world.submit(early("large", 1, 9), early("small", 2, 1))
    world.run()
    assert waiting(world) == {"large-driver", "small-driver"}
    message = "0/1 nodes are available: earlier drivers do not fit to the cluster."
    assert told(world, "small-driver").startswith(message)
    world.delete(world.pod("large-driver"))
    world.advance(15)
    assert waiting(world) == set()


def test_without_fifo_it_does_not() -> None:
    world = a_world("a")
    world.submit(early("large", 1, 9), early("small", 2, 1))
    world.run()
    assert waiting(world) == {"large-driver"}


def test_a_young_driver_holds_nobody_up() -> None:
    world = a_world("a", args={"fifo": True, "enforceAfterPodAgeSeconds": 60})
    world.submit(early("large", 1, 9), early("small", 2, 0))
    world.run()
    assert waiting(world) == {"large-driver"}
    world.advance(61)
    world.submit(early("late", 3, 0))
    world.run()
    assert waiting(world) == {"large-driver", "late-driver"}


def test_earlier_drivers_that_fit_have_their_room_first() -> None:
    """The first is gated by nobody, only not tried yet: whoever came later must leave its room alone."""
    state = a_state(nodes=["a"])
    first, second = early("first", 1, 2), early("second", 2, 1)
    for each in (first, second):
        state.pending_pods.update(each, False)
    assert decided(second, state).node == "a"
    assert decided(second, state, fifo=True).message == f"0/1 nodes are available: {DOES_NOT_FIT}."
    assert decided(first, state, fifo=True).node == "a"


# -- others


def test_pods_without_any_of_it_are_none_of_its_business() -> None:
    world = a_world("a")
    world.submit(a_pod("web", cpu=1), a_driver(annotations={}), an_executor(1))
    world.run()
    assert set(world.bindings) == {"web", "app-driver", "app-1"}
    assert reservation(world) is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param({"packing": "loosely"}, 'packing: found "loosely", expected one of evenly, tightly', id="packing"),
        pytest.param({"single_zone": "yes"}, 'singleZone: found "yes"', id="singleZone"),
        pytest.param({"single_zone": True, "zone_label": 3}, "zoneLabel: found 3, expected the key", id="zoneLabel"),
        pytest.param({"gpu_resources": "gpu"}, 'gpuResources: found "gpu", expected a list', id="gpuResources"),
        pytest.param({"fifo": 1}, "fifo: found 1", id="fifo"),
        pytest.param(
            {"fifo": True, "enforce_after_pod_age_seconds": -1},
            "enforceAfterPodAgeSeconds: found -1, expected a number of seconds, 0 or more",
            id="enforceAfterPodAgeSeconds",
        ),
    ],
)
def test_arguments_that_make_no_sense(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        ResourceReservationPlugin(**arguments)


def test_it_keeps_the_contract_of_plugins() -> None:
    check_plugin(ResourceReservationPlugin())
