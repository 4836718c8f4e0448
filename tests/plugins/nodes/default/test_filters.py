"""The built-in filters, one by one: the basics. The golden records say the rest."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.decision import SKIP, Only, RejectPod
from stowplan.plugins import BUILT_IN
from stowplan.testing.builders import HOSTNAME, REQUIRED, a_cluster, a_namespace, a_node, a_pod, a_state
from stowplan.testing.plugin_questions import filtered, refused

U, UU = "Unschedulable", "UnschedulableAndUnresolvable"
ZONES = [a_node("a", labels={"zone": "1"}), a_node("b", labels={"zone": "2"}), a_node("c")]
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
X = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
NEAR, AWAY = {"podAffinity": {REQUIRED: [X]}}, {"podAntiAffinity": {REQUIRED: [X]}}
MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"


def named(*names: str) -> dict[str, Any]:
    field = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [each]} for each in field]}}}


@pytest.mark.parametrize(
    ("plugin", "pod", "cluster", "expected"),
    [
        pytest.param(
            "NodeName",
            {"node": "a"},
            {"nodes": ["a", "b"]},
            {"b": (UU, ("node(s) didn't match the requested node name",))},
            id="NodeName: another node",
        ),
        pytest.param(
            "NodeName",
            {"node": "z"},
            {"nodes": ["a"]},
            {"a": (UU, ("node(s) didn't match the requested node name",))},
            id="NodeName: a node that is not there",
        ),
        pytest.param(
            "NodeUnschedulable",
            {},
            {"nodes": ["a", a_node("b", unschedulable=True)]},
            {"b": (UU, ("node(s) were unschedulable",))},
            id="NodeUnschedulable: cordoned",
        ),
        pytest.param(
            "NodeUnschedulable",
            {"tolerations": ["node.kubernetes.io/unschedulable:NoSchedule"]},
            {"nodes": [a_node("b", unschedulable=True)]},
            {},
            id="NodeUnschedulable: tolerated",
        ),
        pytest.param(
            "TaintToleration",
            {"tolerations": ["k=v:NoSchedule"]},
            {
                "nodes": [
                    a_node("a", taints=["k=v:NoSchedule"]),
                    a_node("b", taints=["k=w:NoExecute"]),
                    a_node("c", taints=["k=w:PreferNoSchedule"]),
                ]
            },
            {"b": (UU, ("node(s) had untolerated taint(s)",))},
            id="TaintToleration: another value",
        ),
        pytest.param(
            "NodeAffinity",
            {"node_selector": {"zone": "1"}},
            {"nodes": ZONES},
            {
                "b": (UU, ("node(s) didn't match Pod's node affinity/selector",)),
                "c": (UU, ("node(s) didn't match Pod's node affinity/selector",)),
            },
            id="NodeAffinity: a node selector",
        ),
        pytest.param(
            "NodePorts",
            {"ports": [80]},
            {"nodes": ["a", "b"], "pods": [a_pod("p", node="a", ports=["10.0.0.1:80"])]},
            {"a": (U, ("node(s) didn't have free ports for the requested pod ports",))},
            id="NodePorts: any address meets each",
        ),
        pytest.param(
            "NodePorts",
            {"ports": ["10.0.0.2:80"]},
            {"nodes": ["a"], "pods": [a_pod("p", node="a", ports=["10.0.0.1:80", "80/UDP"])]},
            {},
            id="NodePorts: another address, another protocol",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"cpu": 2, "memory": "1Gi"},
            {"nodes": [a_node("a", cpu=2), a_node("b", cpu=1, pods=0)], "pods": [a_pod("p", node="a", cpu="1m")]},
            {"a": (U, ("Insufficient cpu",)), "b": (UU, ("Too many pods", "Insufficient cpu"))},
            id="NodeResourcesFit: taken, and never there",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"requests": {"example.com/gpu": 1}},
            {"nodes": ["a"]},
            {"a": (UU, ("Insufficient example.com/gpu",))},
            id="NodeResourcesFit: a resource that nobody offers",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"cpu": 0},
            {"nodes": [a_node("a", cpu=1)], "pods": [a_pod("p", node="a", cpu=5)]},
            {},
            id="NodeResourcesFit: nothing asked for fits an overfull node",
        ),
        pytest.param(
            "NodeDeclaredFeatures",
            {"hostNetwork": True, "hostUsers": False},
            {"nodes": ["a", a_node("b", features=["UserNamespacesHostNetworkSupport"])]},
            {"a": (UU, ("node(s) didn't match Pod's required features",))},
            id="NodeDeclaredFeatures: not declared",
        ),
        pytest.param(
            "PodTopologySpread",
            {"labels": {"app": "x"}, "topologySpreadConstraints": [SPREAD]},
            {"nodes": ZONES, "pods": [a_pod("p", node="a", labels={"app": "x"})]},
            {"a": (U, ("node(s) didn't match pod topology spread constraints",)), "c": (UU, (MISSING,))},
            id="PodTopologySpread: a crowded zone, and no zone",
        ),
        pytest.param(
            "PodTopologySpread",
            {"labels": {"app": "x"}, "topologySpreadConstraints": [SPREAD]},
            {"nodes": ZONES[:2], "pods": [a_pod("p", node="a", labels={"app": "x"}, terminating=True)]},
            {},
            id="PodTopologySpread: pods on their way out do not count",
        ),
        pytest.param(
            "InterPodAffinity",
            {"affinity": NEAR},
            {"nodes": ZONES, "pods": [a_pod("p", node="a", labels={"app": "x"})]},
            {
                "b": (UU, ("node(s) didn't match pod affinity rules",)),
                "c": (UU, ("node(s) didn't match pod affinity rules",)),
            },
            id="InterPodAffinity: not near",
        ),
        pytest.param(
            "InterPodAffinity",
            {"affinity": NEAR, "labels": {"app": "x"}},
            {"nodes": ZONES},
            {"c": (UU, ("node(s) didn't match pod affinity rules",))},
            id="InterPodAffinity: the first of a group goes where the key is",
        ),
        pytest.param(
            "InterPodAffinity",
            {"affinity": AWAY},
            {"nodes": ZONES, "pods": [a_pod("p", node="a", labels={"app": "x"})]},
            {"a": (U, ("node(s) didn't match pod anti-affinity rules",))},
            id="InterPodAffinity: too near",
        ),
        pytest.param(
            "InterPodAffinity",
            {"labels": {"app": "x"}},
            {"nodes": ZONES, "pods": [a_pod("p", node="a", affinity=AWAY)], "others": [a_namespace()]},
            {"a": (U, ("node(s) didn't satisfy existing pods anti-affinity rules",))},
            id="InterPodAffinity: a pod there wants it away",
        ),
    ],
)
def test_what_is_refused(plugin: str, pod: dict[str, Any], cluster: dict[str, Any], expected: dict[str, Any]) -> None:
    said = filtered(BUILT_IN[plugin](), a_pod("incoming", **pod), a_state(**cluster))
    assert {name: verdict for name, verdict in said.items() if verdict is not None} == expected


@pytest.mark.parametrize(
    ("args", "pod", "expected"),
    [
        pytest.param(
            {"ignored_resources": ["example.com/gpu"]}, {"requests": {"example.com/gpu": 1}}, {}, id="one of them"
        ),
        pytest.param(
            {"ignored_resource_groups": ["example.com"]}, {"requests": {"example.com/gpu": 1}}, {}, id="a group"
        ),
        pytest.param({"ignored_resources": ["cpu"]}, {"cpu": 9}, {"a": ("Insufficient cpu",)}, id="not the fixed ones"),
    ],
)
def test_resources_that_fit_is_told_to_ignore(args: dict[str, Any], pod: dict[str, Any], expected: Any) -> None:
    assert refused(BUILT_IN["NodeResourcesFit"](**args), a_pod(**pod), a_state(nodes=["a"])) == expected


def test_affinity_that_the_configuration_adds() -> None:
    added = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}
    plugin = BUILT_IN["NodeAffinity"](added_affinity=added)
    pod = a_pod(node_selector={"zone": "1"})
    assert refused(plugin, pod, a_state(nodes=ZONES)) == {
        "b": ("node(s) didn't match Pod's node affinity/selector",),
        "c": ("node(s) didn't match scheduler-enforced node affinity",),
    }


@pytest.mark.parametrize(
    ("plugin", "pod", "answer"),
    [
        pytest.param("NodeAffinity", {}, SKIP, id="NodeAffinity: nothing asked for"),
        pytest.param("NodeAffinity", {"node_selector": {"a": "b"}}, None, id="NodeAffinity: a node selector"),
        pytest.param(
            "NodeAffinity", {"affinity": named("a", "b")}, Only(frozenset("ab")), id="NodeAffinity: two names"
        ),
        pytest.param(
            "NodeAffinity",
            {
                "affinity": {
                    "nodeAffinity": {
                        REQUIRED: {
                            "nodeSelectorTerms": [
                                {
                                    "matchFields": [
                                        {"key": "metadata.name", "operator": "In", "values": [name]} for name in "ab"
                                    ]
                                }
                            ]
                        }
                    }
                }
            },
            RejectPod(("pod affinity terms conflict",), resolvable=False),
            id="NodeAffinity: names that contradict each other",
        ),
        pytest.param("NodePorts", {}, SKIP, id="NodePorts: no ports"),
        pytest.param("NodePorts", {"ports": [80]}, None, id="NodePorts: a port"),
        pytest.param("InterPodAffinity", {}, SKIP, id="InterPodAffinity: nothing to do"),
        pytest.param("PodTopologySpread", {}, SKIP, id="PodTopologySpread: nothing to do"),
        pytest.param("NodeDeclaredFeatures", {}, SKIP, id="NodeDeclaredFeatures: none needed"),
        pytest.param(
            "DynamicResources",
            {"resourceClaims": [{"name": "gpu"}]},
            RejectPod(('pod "default/pod": ResourceClaim not created yet',), resolvable=False),
            id="DynamicResources: a claim",
        ),
    ],
)
def test_what_pre_filters_say(plugin: str, pod: dict[str, Any], answer: Any) -> None:
    assert BUILT_IN[plugin]().pre_filter(a_pod(**pod), a_cluster(nodes=ZONES)) == answer


def test_hosts_are_domains_too() -> None:
    nodes = [a_node(name, labels={HOSTNAME: name}) for name in "ab"]
    pod = a_pod("new", labels={"app": "x"}, topologySpreadConstraints=[SPREAD | {"topologyKey": HOSTNAME}])
    state = a_state(nodes=nodes, pods=[a_pod("p", node="a", labels={"app": "x"})])
    assert set(refused(BUILT_IN["PodTopologySpread"](), pod, state)) == {"a"}
