"""TaintTolerationComparisonOperators: off, Gt and Lt tolerate nothing; on, they do, wherever tolerations count."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from stowplan.apps import profile_loader
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.objects.pods import Pod
from stowplan.objects.taints import Toleration
from stowplan.testing.builders import HOSTNAME, a_node, a_pod, a_state
from stowplan.testing.plugin_questions import scored
from stowplan.testing.world import World
from tests.engine.situations.recorders import attempts

ON = FeatureGates(taint_toleration_comparison_operators=True)
SLA = Toleration("sla", "Gt", "950", "NoSchedule")
SOFT = Toleration("sla", "Lt", "950", "PreferNoSchedule")
TAINTED = "sla=990:NoSchedule"


def tolerant(toleration: Toleration, **spec: Any) -> Pod:
    pod = a_pod("pod", **spec)
    return replace(pod, spec=replace(pod.spec, tolerations=(toleration,)))


def world(gates: FeatureGates, *nodes: Any) -> World:
    return World(nodes=nodes, profiles=profile_loader.defaults(gates)[1])


@pytest.mark.parametrize(
    ("gates", "bindings"),
    [
        pytest.param(DEFAULT_GATES, {}, id="off"),
        pytest.param(ON, {"pod": "node"}, id="on"),
    ],
)
def test_a_node_with_a_greater_number(gates: FeatureGates, bindings: dict[str, str]) -> None:
    found = world(gates, a_node("node", taints=[TAINTED]), a_node("worse", taints=["sla=900:NoSchedule"]))
    found.submit(tolerant(SLA))
    found.run()
    assert found.bindings == bindings
    if not bindings:
        assert "2 node(s) had untolerated taint(s)" in found.explain("pod").message


@pytest.mark.parametrize(
    ("gates", "scores"),
    [pytest.param(DEFAULT_GATES, {"a": 0, "b": 0}, id="off"), pytest.param(ON, {"a": 100, "b": 0}, id="on")],
)
def test_soft_taints_that_are_tolerated_cost_no_points(gates: FeatureGates, scores: dict[str, int]) -> None:
    nodes = [a_node(name, taints=[f"sla={number}:PreferNoSchedule"]) for name, number in {"a": 900, "b": 990}.items()]
    plugin = profile_loader.registry(gates=gates).make("TaintToleration", {})
    assert scored(plugin, tolerant(SOFT), a_state(nodes=nodes)) == scores


@pytest.mark.parametrize(("gates", "tries"), [pytest.param(DEFAULT_GATES, 1, id="off"), pytest.param(ON, 2, id="on")])
def test_a_node_that_becomes_better_wakes_the_pod(gates: FeatureGates, tries: int) -> None:
    found = world(gates, a_node("node", cpu=1, taints=["sla=900:NoSchedule"]))
    found.submit(tolerant(SLA, cpu=8))
    found.run()
    found.submit(a_node("node", cpu=1, taints=[TAINTED]))
    found.advance(30)
    assert attempts(found, "pod") == tries


@pytest.mark.parametrize(
    ("gates", "bound"), [pytest.param(DEFAULT_GATES, True, id="off"), pytest.param(ON, False, id="on")]
)
def test_spreading_counts_nodes_whose_taints_are_tolerated(gates: FeatureGates, bound: bool) -> None:
    """A node in an empty domain counts if the pod tolerates its taint, and then the other domain has too many."""
    spread = {
        "topologyKey": HOSTNAME, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }  # fmt: skip
    empty = a_node("empty", cpu=1, taints=[TAINTED], labels={HOSTNAME: "empty"})
    found = world(gates, a_node("full", cpu=64, labels={HOSTNAME: "full"}), empty)
    found.submit(a_pod("there", node="full", labels={"app": "x"}))
    found.submit(tolerant(SLA, cpu=8, labels={"app": "x"}, topologySpreadConstraints=[spread]))
    found.run()
    assert ("pod" in found.bindings) == bound
