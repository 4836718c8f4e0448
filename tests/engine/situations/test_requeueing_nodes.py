"""What requeues a pod that was rejected because of nodes: taints, labels, resources, ports, features."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.changes import Gone
from stowplan.objects.devices import DeviceClass
from stowplan.objects.kinds import convert
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from tests.engine.situations.requeueing import NOT_READY, in_group, queued_again, rejected

GPU, OTHER_GPU = "example.com/gpu", "example.com/othergpu"
FEATURE: dict[str, Any] = {"hostNetwork": True, "hostUsers": False}  # which takes UserNamespacesHostNetworkSupport


def device_class(resource: str | None) -> Object:
    return convert(DeviceClass, {"metadata": {"name": "class"}, "spec": {"extendedResourceName": resource}})


TAINTS = [
    pytest.param(
        "TaintToleration NodeResourcesFit",
        [a_node("n", cpu=2, taints=[NOT_READY])],
        [a_pod("pod1", cpu=4), a_pod("pod2", cpu=4, tolerations=["node.kubernetes.io/not-ready"])],
        [a_node("n", cpu=4, taints=[NOT_READY])],
        {"pod2"},
        id="taints: a node grows, which helps the pod that tolerates its taint only",
    ),
    pytest.param(
        "TaintToleration",
        [a_node("n", taints=["taint-key:NoSchedule"])],
        [a_pod("pod1"), a_pod("pod2")],
        [a_pod("pod1", tolerations=["taint-key"])],
        {"pod1"},
        id="taints: the pod itself tolerates more",
    ),
    pytest.param(
        "TaintToleration",
        [a_node("n", taints=[NOT_READY])],
        [a_pod("pod1", tolerations=["taint-key"]), a_pod("pod2", tolerations=["taint-key2"]), a_pod("pod3")],
        [a_node("n", taints=["taint-key:NoSchedule"])],
        {"pod1"},
        id="taints: a node gets one that a pod tolerates instead of one that it does not",
    ),
    pytest.param(
        "TaintToleration",
        [a_node("n", taints=[NOT_READY])],
        [a_pod("pod1", tolerations=["taint-key"]), a_pod("pod2")],
        [a_node("m", taints=["taint-key:NoSchedule"])],
        {"pod1"},
        id="taints: a node comes with one that a pod tolerates",
    ),
    pytest.param(
        "TaintToleration",
        [a_node("n", taints=[NOT_READY])],
        [a_pod("pod1")],
        [a_pod("pod1", labels={"key": "val"})],
        set(),
        id="taints: the pod itself gets a label",
    ),
    pytest.param(
        "NodeUnschedulable",
        [a_node("n", unschedulable=True)],
        [a_pod("pod1")],
        [a_node("n")],
        {"pod1"},
        id="cordons: a node is uncordoned",
    ),
    pytest.param(
        "NodeUnschedulable",
        [a_node("n", unschedulable=True)],
        [a_pod("pod1")],
        [a_node("m")],
        {"pod1"},
        id="cordons: an open node comes",
    ),
    pytest.param(
        "NodeUnschedulable",
        [a_node("n", unschedulable=True)],
        [a_pod("pod1")],
        [a_node("m", unschedulable=True)],
        set(),
        id="cordons: a cordoned node comes",
    ),
]

LABELS_OF_NODES = [
    pytest.param(
        "NodeAffinity",
        [a_node("n", labels={"group": "a"})],
        [a_pod("pod1", **in_group("b")), a_pod("pod2", **in_group("c"))],
        [a_node("n", labels={"group": "b"})],
        {"pod1"},
        id="node affinity: a node comes to match",
    ),
    pytest.param(
        "NodeAffinity NodeResourcesFit",
        [a_node("n", cpu=2, labels={"group": "a"}), a_node("m", labels={"group": "b"})],
        [a_pod("pod1", cpu=4, **in_group("a"))],
        [a_node("n", cpu=2, labels={"group": "a", "node": "n"})],
        set(),
        id="node affinity: a node that matched before still does",
    ),
    pytest.param(
        "NodeAffinity",
        [a_node("n", labels={"group": "a"})],
        [a_pod("pod1", **in_group("b")), a_pod("pod2", **in_group("c"))],
        [a_node("m", labels={"group": "b"})],
        {"pod1"},
        id="node affinity: a node comes that matches",
    ),
]

RESOURCES = [
    pytest.param(
        "NodeResourcesFit",
        [a_node("n", cpu=2)],
        [a_pod("pod1", cpu=4)],
        [a_pod("pod1", cpu=2)],
        {"pod1"},
        id="resources: the pod itself shrinks",
    ),
    pytest.param(
        "NodeResourcesFit",
        [a_node("n", cpu=2), a_pod("pod1", cpu=2, node="n")],
        [a_pod("pod2", cpu=2)],
        [Gone(a_pod("pod1"))],
        {"pod2"},
        id="resources: a pod on a node is deleted",
    ),
    pytest.param(
        "NodeResourcesFit",
        [a_node("n", cpu=2)],
        [a_pod("pod1", cpu=4), a_pod("pod2", cpu=5)],
        [a_node("m", cpu=4)],
        {"pod1"},
        id="resources: a node comes that is large enough for one",
    ),
    pytest.param(
        "NodeResourcesFit",
        [a_node("n", cpu=2)],
        [a_pod("pod1", cpu=4), a_pod("pod2", cpu=5)],
        [a_node("n", cpu=4)],
        {"pod1"},
        id="resources: a node becomes large enough for one",
    ),
    pytest.param(
        "NodeResourcesFit DynamicResources",
        [a_node("n", cpu=4, memory=0, resources={GPU: 1})],
        [a_pod("pod1", cpu=5, requests={GPU: 1})],
        [a_node("n", cpu=4, memory=4000)],
        set(),
        id="resources: a node gets what the pod does not ask for, and loses what it does",
    ),
    pytest.param(
        "NodeResourcesFit DynamicResources",
        [a_node("n", cpu=4, memory=0)],
        [a_pod("pod1", requests={GPU: 1})],
        [a_node("n", cpu=4, memory=4000)],
        set(),
        id="resources: a node gets what the pod does not ask for, and still lacks what it does",
    ),
    pytest.param(
        "NodeResourcesFit",
        [a_node("n", cpu=4)],
        [a_pod("pod1", cpu=4, requests={GPU: 1}), a_pod("pod2", cpu=4, requests={OTHER_GPU: 1})],
        [device_class(GPU)],
        {"pod1"},
        id="resources: a device class comes that stands for what one pod asks for",
    ),
    pytest.param(
        "NodeResourcesFit",
        [a_node("n", cpu=4), device_class(None)],
        [a_pod("pod1", cpu=4, requests={GPU: 1}), a_pod("pod2", cpu=4, requests={OTHER_GPU: 1})],
        [device_class(GPU)],
        {"pod1"},
        id="resources: a device class comes to stand for what one pod asks for",
    ),
    pytest.param(
        "NodeResourcesFit NodeAffinity",
        [a_node("n", cpu=4, memory=0), a_node("m", cpu=2, labels={"group": "b"})],
        [a_pod("pod1", cpu=4, **in_group("b"))],
        [a_node("n", cpu=4, memory=4000)],
        set(),
        id="resources: a node that is large enough, but was refused for its labels, gets more of something else",
    ),
    pytest.param(
        "NodeResourcesFit NodeAffinity",
        [a_node("n", cpu=4), a_node("m", cpu=2, labels={"group": "b"})],
        [a_pod("pod1", cpu=4, **in_group("b"))],
        [a_node("n", cpu=5)],
        {"pod1"},
        id="resources: such a node gets more of what the pod asks for",
    ),
    pytest.param(
        "NodeResourcesFit NodeAffinity",
        [a_node("n", pods=2), a_node("m", pods=1, labels={"group": "b"}), a_pod("pod1", node="m")],
        [a_pod("pod2", **in_group("b"))],
        [a_node("n", pods=3)],
        {"pod2"},
        id="resources: such a node may hold more pods",
    ),
]

PORTS = [
    pytest.param(
        "NodePorts",
        [a_node("n"), a_pod("pod1", ports=[8080], node="n"), a_pod("pod2", ports=[8081], node="n")],
        [a_pod("pod3", ports=[8080]), a_pod("pod4", ports=[8081])],
        [Gone(a_pod("pod1"))],
        {"pod3"},
        id="ports: a pod gives one back",
    ),
    pytest.param(
        "NodePorts",
        [a_node("n"), a_pod("pod1", ports=[8080], node="n")],
        [a_pod("pod2", ports=[8080])],
        [a_node("m")],
        {"pod2"},
        id="ports: a node comes",
    ),
]

FEATURES = [
    pytest.param(
        "NodeDeclaredFeatures",
        [a_node("n")],
        [a_pod("pod1", **FEATURE)],
        [a_node("n", features=["UserNamespacesHostNetworkSupport"])],
        {"pod1"},
        id="features: a node declares the one that the pod needs",
    ),
    pytest.param(
        "NodeDeclaredFeatures",
        [a_node("n")],
        [a_pod("pod1", **FEATURE)],
        [a_node("n", labels={"foo": "bar"})],
        set(),
        id="features: a node changes otherwise",
    ),
    pytest.param(
        "NodeDeclaredFeatures",
        [a_node("n")],
        [a_pod("pod1", **FEATURE)],
        [a_pod("pod1")],
        {"pod1"},
        id="features: the pod itself no longer needs any",
    ),
    pytest.param(
        "NodeDeclaredFeatures",
        [a_node("n")],
        [a_pod("pod1", **FEATURE)],
        [a_pod("pod1", labels={"foo": "bar"}, **FEATURE)],
        set(),
        id="features: the pod itself changes otherwise",
    ),
]

ROWS = [*TAINTS, *LABELS_OF_NODES, *RESOURCES, *PORTS, *FEATURES]


@pytest.mark.parametrize(("plugins", "there", "pods", "happens", "requeued"), ROWS)
def test_what_requeues_a_pod(
    plugins: str, there: list[Object], pods: list[Pod], happens: list[Object | Gone], requeued: set[str]
) -> None:
    world = rejected(plugins, there, pods)
    assert queued_again(world, pods, happens) == requeued
