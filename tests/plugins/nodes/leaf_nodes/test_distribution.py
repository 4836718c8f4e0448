"""LeafNodeDistribution: which policy selects a pod, and which nodes it leaves."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.decision import SKIP
from stowplan.objects import kinds
from stowplan.objects.distribution_policies import ClusterDistributionPolicy, DistributionPolicy
from stowplan.plugins.nodes.leaf_nodes.distribution import LeafNodeDistribution
from stowplan.testing import check_plugin
from stowplan.testing.builders import a_cluster, a_node, a_pod, a_profile_of, a_state
from stowplan.testing.plugin_questions import refused
from stowplan.testing.world import World

LEAF = {"kosmos.io/node": "true"}
NODES = [
    a_node("host-a", labels={"disk": "ssd"}),
    a_node("host-b", taints=["team=a:NoSchedule"]),
    a_node("leaf-a", labels={**LEAF, "disk": "ssd"}),
    a_node("leaf-b", labels=LEAF),
]
X = {"labelSelector": {"matchLabels": {"app": "x"}}}


def a_policy(
    *chosen: dict[str, Any], node_type: str = "leaf", name: str = "policy", namespace: str = "default", **term: Any
) -> Any:
    """Of these selectors, all for one term. Without a namespace: of the whole cluster."""
    spec = {
        "resourceSelectors": [{"policyName": "term", **each} for each in chosen],
        "policyTerms": [{"name": "other", "nodeType": "host"}, {"name": "term", "nodeType": node_type, **term}],
    }
    kind = DistributionPolicy if namespace else ClusterDistributionPolicy
    return kinds.convert(kind, {"metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": spec})


def left(*policies: Any, **pod: Any) -> str:
    """The nodes that are not rejected for a pod, in one word."""
    found = refused(
        LeafNodeDistribution(), a_pod("web-1", **{"labels": {"app": "x"}, **pod}), a_state(nodes=NODES, others=policies)
    )
    return " ".join(node.name for node in NODES if node.name not in found)


HOSTS, LEAVES, ALL = "host-a host-b", "leaf-a leaf-b", "host-a host-b leaf-a leaf-b"


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param({"node_type": "host"}, HOSTS, id="host"),
        pytest.param({"node_type": "leaf"}, LEAVES, id="leaf"),
        pytest.param({"node_type": "mix"}, ALL, id="mix"),
        pytest.param({"node_type": ""}, ALL, id="nothing is mix"),
        pytest.param({"node_type": "moon"}, "", id="no type at all"),
        pytest.param({"node_type": "adv"}, "", id="advanced, without a condition"),
        pytest.param({"node_type": "adv", "advancedTerm": {"nodeName": "leaf-b"}}, "leaf-b", id="the name of a node"),
        pytest.param(
            {"node_type": "adv", "advancedTerm": {"nodeSelector": {"disk": "ssd"}}}, "host-a leaf-a", id="labels"
        ),
        pytest.param(
            {"node_type": "adv", "advancedTerm": {"nodeSelector": {"disk": "ssd", **LEAF}}}, "leaf-a", id="all labels"
        ),
        pytest.param(
            {"node_type": "adv", "advancedTerm": {
                "nodeName": "leaf-b", "tolerations": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
            }},
            "host-b leaf-b", id="a name or a taint",
        ),
    ],
)  # fmt: skip
def test_terms(term: dict[str, Any], expected: str) -> None:
    assert left(a_policy(X, **term)) == expected
    assert left(a_policy(X, namespace="", **term)) == expected


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        pytest.param([], ALL, id="no policy"),
        pytest.param([a_policy({"name": "web-1"})], LEAVES, id="by name"),
        pytest.param([a_policy({"namePrefix": "web"})], LEAVES, id="by the beginning of the name"),
        pytest.param([a_policy({"name": "web"}, {"namePrefix": "db"})], ALL, id="of another name"),
        pytest.param([a_policy(X, namespace="other")], ALL, id="of another namespace"),
        pytest.param([a_policy({"labelSelector": {}})], ALL, id="an empty selector selects nothing"),
        pytest.param(
            [a_policy({"labelSelector": {"matchLabels": {"app": "x", "tier": "db"}}})], ALL, id="with one of two labels"
        ),
        pytest.param(
            [a_policy({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}})], LEAVES,
            id="an expression",
        ),
        pytest.param([a_policy({**X, "policyName": "missing"})], ALL, id="a term that is not there"),
        pytest.param([a_policy({**X, "policyName": "other"}, {"name": "web-1"})], LEAVES, id="a name before labels"),
        pytest.param(
            [a_policy({"namePrefix": "web"}, {**X, "policyName": "other"})], LEAVES, id="a beginning before labels"
        ),
        pytest.param([a_policy(X, {**X, "policyName": "other"})], HOSTS, id="of equals the last"),
        pytest.param(
            [a_policy(X, node_type="host", name="b"), a_policy(X, node_type="leaf", name="a")], LEAVES,
            id="of equal policies the first by name",
        ),
        pytest.param(
            [a_policy({"name": "web-1"}, namespace="", node_type="host"), a_policy(X)], LEAVES,
            id="the namespace's before the cluster's",
        ),
        pytest.param(
            [a_policy({"name": "db"}), a_policy(X, namespace="", node_type="host")], HOSTS, id="else the cluster's"
        ),
        pytest.param([a_policy(X, name="a"), a_policy({"name": "no"}, name="z")], LEAVES, id="one that says nothing"),
    ],
)  # fmt: skip
def test_which_policy_selects_a_pod(policies: list[Any], expected: str) -> None:
    assert left(*policies) == expected


def test_pods_of_daemon_sets_have_none() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    assert left(a_policy(X), owner=owner) == ALL


def test_what_is_said() -> None:
    found = refused(LeafNodeDistribution(), a_pod(labels={"app": "x"}), a_state(nodes=NODES, others=[a_policy(X)]))
    assert found["host-a"] == ("node(s) were host nodes, and DistributionPolicy policy wants leaf nodes",)
    found = refused(
        LeafNodeDistribution(), a_pod(labels={"app": "x"}),
        a_state(nodes=NODES, others=[a_policy(X, namespace="", node_type="host")]),
    )  # fmt: skip
    assert found["leaf-a"] == ("node(s) were leaf nodes, and ClusterDistributionPolicy policy wants host nodes",)


def test_a_pod_without_a_policy_costs_no_filter() -> None:
    assert LeafNodeDistribution().pre_filter(a_pod(), a_cluster(nodes=NODES, others=[a_policy(X)])) is SKIP
    assert LeafNodeDistribution().pre_filter(a_pod(labels={"app": "x"}), a_cluster(others=[a_policy(X)])) is None


@pytest.mark.parametrize("namespace", ["default", ""])
def test_a_pod_is_woken_by_its_policy(namespace: str) -> None:
    world = World(nodes=NODES[:1], profiles={"default-scheduler": a_profile_of(LeafNodeDistribution())})
    policy = a_policy(X, namespace=namespace)
    world.submit(policy, a_pod("p", labels={"app": "x"}))
    world.run()
    assert not world.bindings
    world.submit(a_policy(X, namespace=namespace, node_type="host"))
    world.advance(11)
    assert world.bindings == {"p": "host-a"}


def test_it_is_a_sound_plugin() -> None:
    check_plugin(LeafNodeDistribution(), pods=[a_pod("p", labels={"app": "x"})], objects=[a_policy(X)])


def test_the_arguments_of_the_original() -> None:
    assert not LeafNodeDistribution().config_notes
    (note,) = LeafNodeDistribution(kube_config_path="/etc/kubernetes/kubeconfig").config_notes
    assert note.startswith("kubeConfigPath is not used")
