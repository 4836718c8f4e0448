"""ResourceReservations: valid slots, problems, and the pods they are for."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects import kinds
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ResourceReservation, object_name, reservation_of, vacated

GPU = "nvidia.com/gpu"
GI = 1 << 30


def a_document(owners: Any = (), **reservations: Any) -> ResourceReservation:
    metadata = {"name": "app", "namespace": "jobs", "ownerReferences": list(owners)}
    return kinds.convert(ResourceReservation, {"metadata": metadata, "spec": {"reservations": reservations}})


@pytest.mark.parametrize(
    ("reserved", "amounts"),
    [
        pytest.param({"resources": {"cpu": "2", "memory": "1Gi"}}, {"cpu": 2000, "memory": GI}, id="resources"),
        pytest.param({"resources": {"cpu": 2}}, {"cpu": 2000}, id="a bare number"),
        pytest.param({"cpu": "1", "memory": "750M"}, {"cpu": 1000, "memory": 750_000_000}, id="the seed's spelling"),
        pytest.param({"cpu": "1", "gpu": 2}, {"cpu": 1000, GPU: 2}, id="its GPUs"),
        pytest.param({"cpu": "1", "resources": {"cpu": "3"}}, {"cpu": 3000}, id="resources win"),
        pytest.param({}, {}, id="room for a pod that asks for nothing"),
        pytest.param({"resources": {"pods": "3", "cpu": "1"}}, {"cpu": 1000}, id="one pod per place"),
    ],
)
def test_valid_slots(reserved: dict[str, Any], amounts: dict[str, int]) -> None:
    found = a_document(one={"node": "a", **reserved})
    assert found.problems == ()
    assert found.slots["one"].node == "a"
    assert found.slots["one"].amounts == {"pods": 1, **amounts}


@pytest.mark.parametrize(
    ("reserved", "problem"),
    [
        pytest.param({"cpu": "1"}, "spec.reservations.one.node is empty: it must name a node", id="no node"),
        pytest.param(
            {"node": "a", "resources": {"cpu": "much"}},
            "spec.reservations.one.resources.cpu: expected a quantity such as 500m or 1Gi, found 'much'",
            id="no quantity",
        ),
        pytest.param(
            {"node": "a", "memory": "-1Gi"},
            "spec.reservations.one.resources.memory is -1Gi: it must not be negative",
            id="less than nothing",
        ),
    ],
)
def test_problems_of_a_reservation(reserved: dict[str, Any], problem: str) -> None:
    found = a_document(one=reserved, two={"node": "b"})
    assert found.problems == (problem,)
    assert list(found.slots) == ["two"], "the rest is held all the same"


def test_slots_are_in_natural_order() -> None:
    names = ["driver", *(f"executor-{number}" for number in (1, 2, 10, 11))]
    assert list(a_document(**{name: {"node": "a"} for name in reversed(names)}).slots) == names


def a_pod(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> Pod:
    metadata = {"name": "pod", "namespace": "jobs", "labels": labels or {}, "annotations": annotations or {}}
    return kinds.convert(Pod, {"metadata": metadata})


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        pytest.param({}, {}, "", id="nobody's"),
        pytest.param({"app": "web"}, {"note": "x"}, "", id="labels and annotations of others"),
        pytest.param({"scheduling.kubenexus.io/app-id": "etl"}, {}, "jobs/etl", id="KubeNexus' application"),
        pytest.param({"spark-app-selector": "s-1", "spark-role": "executor"}, {}, "jobs/s-1", id="Spark's"),
        pytest.param({"spark-app-id": "s-2"}, {}, "jobs/s-2", id="the operator's"),
        pytest.param({"spark-role": "driver"}, {}, "jobs/pod", id="a driver without an application"),
        pytest.param({"scheduling.x-k8s.io/pod-group": "gang"}, {}, "jobs/gang", id="its group's"),
        pytest.param(
            {"scheduling.kubenexus.io/app-id": "etl"},
            {"scheduling.kubenexus.io/reservation": "mine"},
            "jobs/mine",
            id="the one it names itself",
        ),
    ],
)
def test_the_reservation_of_a_pod(labels: dict[str, str], annotations: dict[str, str], expected: str) -> None:
    assert reservation_of(a_pod(labels, annotations)) == expected


@pytest.mark.parametrize(
    ("application", "proper"),
    [
        pytest.param("spark-1.2", True, id="a name that objects may have"),
        pytest.param("App_1", False, id="letters that they may not have"),
        pytest.param("-app", False, id="a hyphen in front"),
        pytest.param("a..b", False, id="two dots"),
        pytest.param("ü", False, id="nothing that could stay"),
        pytest.param("a" * 300, False, id="too long"),
    ],
)
def test_names_of_objects(application: str, proper: bool) -> None:
    name = object_name(application)
    assert (name == application) is proper
    assert len(name) <= 253 and object_name(name) == name
    assert object_name(f"{application}x") != name


def test_only_a_pod_owns_a_reservation() -> None:
    owner = {"kind": "Pod", "name": "driver", "uid": "u1", "apiVersion": "v1"}
    assert a_document([{**owner, "kind": "Job"}]).owner == ""
    assert a_document([{**owner, "kind": "Job", "uid": "u0"}, owner]).owner == "u1"


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        pytest.param({"one": "a"}, {"one": "a"}, [], id="nothing"),
        pytest.param({"one": "a", "two": "b"}, {"one": "a"}, ["b"], id="a place that is gone"),
        pytest.param({"one": "a"}, {"one": "b"}, ["a"], id="a place that moved"),
        pytest.param({"one": "a", "two": "a", "three": "b"}, None, ["a", "b"], id="all of it, once for each sort"),
        pytest.param(None, {"one": "a"}, [], id="a new one"),
    ],
)
def test_released_slots(old: dict[str, str] | None, new: dict[str, str] | None, left: list[str]) -> None:
    before, after = (
        None if each is None else a_document(**{name: {"node": node, "cpu": 1} for name, node in each.items()})
        for each in (old, new)
    )
    found = list(vacated(before, after))
    assert [pod.node_name for pod in found] == left
    assert all(pod.request == {"cpu": 1000} and not pod.labels and not pod.uid for pod in found)
