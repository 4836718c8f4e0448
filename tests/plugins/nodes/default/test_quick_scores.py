"""The quick scores of NodeResourcesFit and NodeResourcesBalancedAllocation give what the form for one node gives."""

from __future__ import annotations

import pytest

from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from stowplan.plugins.nodes.default.node_resources_fit import NodeResourcesFit
from stowplan.testing.builders import a_cluster, a_node, a_pod

LARGE_POD = a_pod("there", node="a", cpu="7", memory="1Gi")
PLUGINS = [
    pytest.param(NodeResourcesFit(), id="LeastAllocated"),
    pytest.param(NodeResourcesFit(scoring_strategy={"type": "MostAllocated"}), id="MostAllocated"),
    pytest.param(NodeResourcesBalancedAllocation(), id="balance"),
]
NODES = [
    pytest.param(a_node("a"), [], id="an empty node"),
    pytest.param(a_node("a"), [a_pod("there", node="a", cpu="1", memory="3Gi")], id="a node with room"),
    pytest.param(a_node("a"), [LARGE_POD], id="pods take more than the node has"),
    pytest.param(a_node("a", cpu="7"), [LARGE_POD], id="pods take all that the node has"),
    pytest.param(a_node("a", memory="0"), [LARGE_POD], id="a node that lacks a resource"),
    pytest.param(a_node("a", cpu="-4"), [LARGE_POD], id="a node with less than nothing"),
]


@pytest.mark.parametrize(("node", "pods"), NODES)
@pytest.mark.parametrize("plugin", PLUGINS)
def test_quick_scores(plugin: NodeResourcesFit | NodeResourcesBalancedAllocation, node: Node, pods: list[Pod]) -> None:
    nodes, pod = a_cluster(nodes=[node, a_node("b")], pods=pods).nodes, a_pod("new", cpu="1", memory="1Gi")
    scores = plugin.score(pod, nodes)
    assert scores is not None
    assert scores.tolist() == [plugin.rate(pod, each) for each in nodes]
