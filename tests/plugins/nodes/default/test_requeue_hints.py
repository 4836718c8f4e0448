"""What wakes a rejected pod: the events each plugin names, and whether one of them helps this very pod."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.plugins import BUILT_IN
from stowplan.testing.builders import REQUIRED, a_node, a_pod

X = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
AWAY = a_pod("mine", affinity={"podAntiAffinity": {REQUIRED: [X]}})
SPREAD_OUT = a_pod("mine", topologySpreadConstraints=[SPREAD])
IN_ZONE_1 = a_pod("mine", node_selector={"zone": "1"})
BIG, TOLERANT = a_pod("mine", cpu=4), a_pod("mine", tolerations=["k=v:NoSchedule"])
WITH_PORT, GATED = a_pod("mine", ports=[80]), a_pod("mine", schedulingGates=[{"name": "g"}])
PLAIN = a_pod("mine")


@pytest.mark.parametrize(
    ("plugin", "events"),
    [
        pytest.param("SchedulingGates", {"Pod": "UpdatePodSchedulingGatesEliminated"}, id="SchedulingGates"),
        pytest.param("NodeUnschedulable", {"Node": "Add UpdateNodeTaint", "Pod": "UpdatePodToleration"}, id="cordons"),
        pytest.param("NodeName", {"Node": "Add"}, id="NodeName"),
        pytest.param("TaintToleration", {"Node": "Add UpdateNodeTaint", "Pod": "UpdatePodToleration"}, id="taints"),
        pytest.param("NodeAffinity", {"Node": "Add UpdateNodeLabel"}, id="NodeAffinity"),
        pytest.param("NodePorts", {"Pod": "Delete", "Node": "Add"}, id="NodePorts"),
        pytest.param(
            "NodeResourcesFit",
            {"Pod": "Delete UpdatePodScaleDown", "Node": "Add UpdateNodeAllocatable", "DeviceClass": "Add Update"},
            id="fit",
        ),
        pytest.param(
            "PodTopologySpread",
            {
                "Pod": "Add UpdatePodLabel Delete UpdatePodToleration",
                "Node": "Add Delete UpdateNodeLabel UpdateNodeTaint",
            },
            id="spread",
        ),
        pytest.param(
            "InterPodAffinity", {"Pod": "Add UpdatePodLabel Delete", "Node": "Add UpdateNodeLabel"}, id="affinity"
        ),
        pytest.param("NodeDeclaredFeatures", {"Node": "Add UpdateNodeDeclaredFeature", "Pod": "Update"}, id="features"),
    ],
)
def test_events(plugin: str, events: dict[str, str]) -> None:
    named = {wake.resource: " ".join(wake.actions) for wake in BUILT_IN[plugin]().wakes_on()}
    assert named == events


def helps(plugin: str, resource: str, pod: Any, old: Any, new: Any) -> bool:
    made = BUILT_IN[plugin]()
    (wake,) = [each for each in made.wakes_on() if each.resource == resource]
    return bool(wake.helps(made, pod, old, new))


@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "expected"),
    [
        pytest.param("NodeUnschedulable", PLAIN, None, a_node(), True, id="an open node comes"),
        pytest.param("NodeUnschedulable", PLAIN, None, a_node(unschedulable=True), False, id="a cordoned node comes"),
        pytest.param("NodeUnschedulable", PLAIN, a_node(unschedulable=True), a_node(), True, id="a node is uncordoned"),
        pytest.param("NodeUnschedulable", PLAIN, a_node(), a_node(cpu=8), False, id="an open node changes otherwise"),
        pytest.param(
            "TaintToleration", TOLERANT, None, a_node(taints=["k=v:NoSchedule"]), True, id="a tolerated node comes"
        ),
        pytest.param(
            "TaintToleration", PLAIN, None, a_node(taints=["k=v:NoSchedule"]), False, id="a tainted node comes"
        ),
        pytest.param("TaintToleration", PLAIN, a_node(taints=["k=v:NoSchedule"]), a_node(), True, id="a taint goes"),
        pytest.param("TaintToleration", PLAIN, a_node(), a_node(cpu=8), False, id="it was tolerated before"),
        pytest.param("NodeAffinity", IN_ZONE_1, None, a_node(labels={"zone": "1"}), True, id="a fitting node comes"),
        pytest.param(
            "NodeAffinity", IN_ZONE_1, a_node(), a_node(labels={"zone": "2"}), False, id="a label that does not fit"
        ),
        pytest.param("NodeAffinity", IN_ZONE_1, a_node(), a_node(labels={"zone": "1"}), True, id="a label that fits"),
        pytest.param("NodeAffinity", IN_ZONE_1, *[a_node(labels={"zone": "1"})] * 2, False, id="it fitted before"),
        pytest.param("NodeResourcesFit", BIG, None, a_node(cpu=4), True, id="a node with room comes"),
        pytest.param("NodeResourcesFit", BIG, None, a_node(cpu=2), False, id="a node without room comes"),
        pytest.param("NodeResourcesFit", BIG, a_node(cpu=4), a_node(cpu=8), True, id="a node grows"),
        pytest.param(
            "NodeResourcesFit", BIG, a_node(cpu=8), a_node(cpu=8, memory="9Gi"), False, id="it grows in something else"
        ),
        pytest.param(
            "PodTopologySpread", SPREAD_OUT, None, a_node(labels={"zone": "1"}), True, id="a node of a zone comes"
        ),
        pytest.param("PodTopologySpread", SPREAD_OUT, None, a_node(), False, id="a node without a zone comes"),
        pytest.param(
            "PodTopologySpread", SPREAD_OUT, a_node(labels={"zone": "1"}), None, True, id="a node of a zone goes"
        ),
        pytest.param("PodTopologySpread", SPREAD_OUT, *[a_node(labels={"zone": "1"})] * 2, False, id="its zone stays"),
        pytest.param("InterPodAffinity", AWAY, a_node(), a_node(labels={"zone": "1"}), False, id="a node gets a zone"),
        pytest.param("InterPodAffinity", AWAY, *[a_node(labels={"zone": "1"})] * 2, False, id="a node keeps its zone"),
        pytest.param("NodeName", PLAIN, None, a_node(), True, id="any node comes"),
    ],
)
def test_nodes_that_come_and_change(plugin: str, pod: Any, old: Any, new: Any, expected: bool) -> None:
    assert helps(plugin, "Node", pod, old, new) == expected


@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "expected"),
    [
        pytest.param("SchedulingGates", GATED, GATED, PLAIN, True, id="its own gates go"),
        pytest.param("SchedulingGates", GATED, GATED, a_pod("other"), False, id="another's gates go"),
        pytest.param("TaintToleration", PLAIN, PLAIN, TOLERANT, True, id="it tolerates more"),
        pytest.param("TaintToleration", PLAIN, PLAIN, a_pod("other"), False, id="another tolerates more"),
        pytest.param(
            "NodePorts", WITH_PORT, a_pod("other", node="a", ports=[80]), None, True, id="its port is given back"
        ),
        pytest.param("NodePorts", WITH_PORT, a_pod("other", node="a", ports=[81]), None, False, id="another port is"),
        pytest.param("NodePorts", WITH_PORT, a_pod("other", ports=[80]), None, False, id="by a pod that had no node"),
        pytest.param("NodeResourcesFit", BIG, a_pod("other", node="a"), None, True, id="a pod leaves its node"),
        pytest.param("NodeResourcesFit", BIG, a_pod("other"), None, False, id="a pod without a node goes"),
        pytest.param(
            "NodeResourcesFit", BIG, a_pod("o", node="a", cpu=3), a_pod("o", node="a", cpu=1), True, id="one shrinks"
        ),
        pytest.param(
            "NodeResourcesFit", BIG, a_pod("o", node="a", cpu=1), a_pod("o", node="a", cpu=3), False, id="one grows"
        ),
        pytest.param(
            "PodTopologySpread",
            SPREAD_OUT,
            a_pod("o", labels={"app": "x"}, node="a"),
            None,
            True,
            id="one like it goes",
        ),
        pytest.param(
            "PodTopologySpread", SPREAD_OUT, a_pod("o", labels={"app": "y"}, node="a"), None, False, id="another goes"
        ),
        pytest.param(
            "InterPodAffinity", AWAY, a_pod("o", labels={"app": "x"}, node="a"), None, True, id="one it avoids goes"
        ),
        pytest.param(
            "InterPodAffinity", AWAY, a_pod("o", labels={"app": "y"}, node="a"), None, False, id="one it does not mind"
        ),
    ],
)
def test_pods_that_go_and_change(plugin: str, pod: Any, old: Any, new: Any, expected: bool) -> None:
    assert helps(plugin, "Pod", pod, old, new) == expected
