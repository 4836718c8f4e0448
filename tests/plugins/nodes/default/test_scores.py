"""The built-in scores, one by one, computed by hand. The golden records say the rest."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.plugins import BUILT_IN
from stowplan.plugins.nodes.default import inter_pod_affinity
from stowplan.testing.builders import PREFERRED, REQUIRED, a_namespace, a_node, a_pod, a_service, a_state
from stowplan.testing.plugin_questions import scored

MI = 2**20
ZONES = [a_node("a", labels={"zone": "1"}), a_node("b", labels={"zone": "2"}), a_node("c", labels={"zone": "2"})]
X = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
SOFT = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **X}
HALF = [a_node("a", cpu=4, memory="4Gi"), a_node("b", cpu=8, memory="8Gi")]


def likes(weight: int, zone: str) -> dict[str, Any]:
    return {"weight": weight, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}}


@pytest.mark.parametrize(
    ("plugin", "args", "pod", "cluster", "expected"),
    [
        pytest.param(
            "TaintToleration", {}, {}, {"nodes": ["a", "b"]}, {"a": 100, "b": 100}, id="TaintToleration: no taints"
        ),
        pytest.param(
            "TaintToleration",
            {},
            {},
            {
                "nodes": [
                    "a",
                    a_node("b", taints=["k=v:PreferNoSchedule"]),
                    a_node("c", taints=["k=v:PreferNoSchedule", "l=v:PreferNoSchedule", "m=v:NoSchedule"]),
                ]
            },
            {"a": 100, "b": 50, "c": 0},
            id="TaintToleration: fewer soft taints",
        ),
        pytest.param(
            "TaintToleration",
            {},
            {"tolerations": ["k:PreferNoSchedule"]},
            {"nodes": [a_node("a", taints=["k=v:PreferNoSchedule"])]},
            {"a": 100},
            id="TaintToleration: a tolerated one",
        ),
        pytest.param("NodeAffinity", {}, {}, {"nodes": ZONES}, None, id="NodeAffinity: no wishes"),
        pytest.param(
            "NodeAffinity",
            {},
            {"affinity": {"nodeAffinity": {PREFERRED: [likes(30, "1"), likes(10, "2")]}}},
            {"nodes": ZONES},
            {"a": 100, "b": 33, "c": 33},
            id="NodeAffinity: of the most liked",
        ),
        pytest.param(
            "NodeResourcesFit",
            {},
            {"cpu": 2, "memory": "2Gi"},
            {"nodes": HALF},
            {"a": 50, "b": 75},
            id="NodeResourcesFit: the least allocated",
        ),
        pytest.param(
            "NodeResourcesFit",
            {},
            {},
            {"nodes": [a_node("a", cpu=1, memory="400Mi")]},
            {"a": 70},
            id="NodeResourcesFit: something is presumed of a pod that asks for nothing",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoring_strategy": {"type": "MostAllocated"}},
            {"cpu": 2, "memory": "2Gi"},
            {"nodes": HALF},
            {"a": 50, "b": 25},
            id="NodeResourcesFit: the most allocated",
        ),
        pytest.param(
            "NodeResourcesFit",
            {
                "scoring_strategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}],
                }
            },
            {"cpu": 4, "memory": "0"},
            {"nodes": [a_node("a", cpu=4)]},
            {"a": 75},
            id="NodeResourcesFit: weights",
        ),
        pytest.param(
            "NodeResourcesFit",
            {
                "scoring_strategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {
                        "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                    },
                }
            },
            {"cpu": 1, "memory": "2Gi"},
            {"nodes": HALF[:1]},
            {"a": 38},
            id="NodeResourcesFit: a shape, rounded to the nearest",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {},
            {},
            {"nodes": ["a"]},
            None,
            id="NodeResourcesBalancedAllocation: nothing asked for",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {},
            {"cpu": 2, "memory": "2Gi"},
            {"nodes": HALF[:1]},
            {"a": 75},
            id="NodeResourcesBalancedAllocation: no change",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {},
            {"cpu": 4, "memory": "0"},
            {"nodes": HALF[:1]},
            {"a": 50},
            id="NodeResourcesBalancedAllocation: as bad as can be",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {},
            {"cpu": 4, "memory": "0"},
            {"nodes": HALF[:1], "pods": [a_pod("p", node="a", memory="4Gi")]},
            {"a": 100},
            id="NodeResourcesBalancedAllocation: as good as can be",
        ),
        pytest.param(
            "ImageLocality",
            {},
            {"image": "web"},
            {"nodes": [a_node("a", images={"web:latest": 1000 * MI}), "b"]},
            {"a": 48, "b": 0},
            id="ImageLocality: an image that half of the nodes hold",
        ),
        pytest.param(
            "ImageLocality",
            {},
            {"image": "web"},
            {"nodes": [a_node("a", images={"web:latest": 2000 * MI})]},
            {"a": 100},
            id="ImageLocality: a large image everywhere",
        ),
        pytest.param(
            "PodTopologySpread", {}, {}, {"nodes": ZONES}, None, id="PodTopologySpread: no constraints, no service"
        ),
        pytest.param(
            "PodTopologySpread",
            {},
            {"labels": {"app": "x"}, "topologySpreadConstraints": [SOFT]},
            {"nodes": ZONES, "pods": [a_pod("p", node="b", labels={"app": "x"})]},
            {"a": 100, "b": 0, "c": 0},
            id="PodTopologySpread: the emptier zone",
        ),
        pytest.param(
            "PodTopologySpread",
            {
                "default_constraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
                "defaulting_type": "List",
            },
            {"labels": {"app": "x"}},
            {"nodes": ZONES, "pods": [a_pod("p", node="b", labels={"app": "x"})], "others": [a_service(app="x")]},
            {"a": 100, "b": 0, "c": 0},
            id="PodTopologySpread: the pods of its service, by default",
        ),
        pytest.param("InterPodAffinity", {}, {}, {"nodes": ZONES}, None, id="InterPodAffinity: nobody wishes anything"),
        pytest.param(
            "InterPodAffinity",
            {},
            {"affinity": {"podAffinity": {PREFERRED: [{"weight": 10, "podAffinityTerm": X}]}}},
            {"nodes": ZONES, "pods": [a_pod("p", node="b", labels={"app": "x"})]},
            {"a": 0, "b": 100, "c": 100},
            id="InterPodAffinity: its own wish",
        ),
        pytest.param(
            "InterPodAffinity",
            {},
            {"labels": {"app": "x"}},
            {
                "nodes": ZONES,
                "pods": [a_pod("p", node="a", affinity={"podAffinity": {REQUIRED: [X]}})],
                "others": [a_namespace()],
            },
            {"a": 100, "b": 0, "c": 0},
            id="InterPodAffinity: what another requires counts as its wish",
        ),
        pytest.param(
            "InterPodAffinity",
            {"hard_pod_affinity_weight": 0},
            {"labels": {"app": "x"}},
            {
                "nodes": ZONES,
                "pods": [a_pod("p", node="a", affinity={"podAffinity": {REQUIRED: [X]}})],
                "others": [a_namespace()],
            },
            None,
            id="InterPodAffinity: unless that weighs nothing",
        ),
        pytest.param("DynamicResources", {}, {}, {"nodes": ["a"]}, {"a": 0}, id="DynamicResources: always 0"),
    ],
)
def test_scores(plugin: str, args: dict[str, Any], pod: dict[str, Any], cluster: dict[str, Any], expected: Any) -> None:
    assert scored(BUILT_IN[plugin](**args), a_pod("incoming", **pod), a_state(**cluster)) == expected


def test_many_preferred_terms_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of terms are counted as one sum for each topology key, and say what they said one by one."""
    terms = [
        {"weight": number % 7 + 1, "podAffinityTerm": {
            "topologyKey": ("zone", "host")[number % 2],
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [f"x{number}"]}]}}}
        for number in range(inter_pod_affinity.FEW_TERMS + 4)
    ]  # fmt: skip
    pod = a_pod("incoming", affinity={"podAntiAffinity": {PREFERRED: terms[::3]}, "podAffinity": {PREFERRED: terms}})
    nodes = [a_node(name, labels={"zone": zone, "host": name}) for name, zone in (("a", "1"), ("b", "2"), ("c", "2"))]
    pods = [a_pod(f"p{n}", node="abc"[n * n % 3], labels={"app": f"x{n}"}) for n in range(8)]
    state = a_state(nodes=nodes, pods=pods)
    found = scored(BUILT_IN["InterPodAffinity"](), pod, state)
    assert (len(state.match_counts), len(state.match_counts.sums)) == (0, 2)
    monkeypatch.setattr(inter_pod_affinity, "FEW_TERMS", 1000)
    assert found == scored(BUILT_IN["InterPodAffinity"](), pod, state)
    assert found is not None and sorted(found.values())[0] == 0 and len({*found.values()}) == 3
