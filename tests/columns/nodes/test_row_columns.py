"""Columns that are kept by row: after any change they are those that are computed anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.row_columns import row_columns
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.objects.changes import Gone, Put
from stowplan.testing import a_node, a_pod


def of_nodes(nodes: Nodes) -> Sequence[Any]:
    return [nodes.requested["cpu"] * 1, nodes.allocatable["cpu"] - nodes.requested["cpu"]]


def of_one(node: OneNode) -> Sequence[float]:
    return [node.requested("cpu"), node.free("cpu")]


def kept(nodes: Nodes) -> list[list[int]]:
    return [column.tolist() for column in row_columns(nodes, "cpu", of_nodes, of_one)]


def anew(nodes: Nodes) -> list[list[int]]:
    return [column.tolist() for column in of_nodes(nodes)]


def twelve_nodes() -> ClusterState:
    state = ClusterState()
    for number in range(12):
        state.apply(Put(a_node(f"node-{number}", cpu="4")))
    return state


def add_pods(state: ClusterState, number: int) -> None:
    for at in range(number):
        state.add_pod(a_pod(f"pod-{at}", cpu="1"), f"node-{at}")


def grow_and_shrink(state: ClusterState) -> None:
    """Pods name nodes that do not exist, so that the table grows; then they go."""
    lost = [a_pod(f"lost-{at}", cpu="1") for at in range(500)]
    for at, pod in enumerate(lost):
        state.add_pod(pod, f"gone-{at}")
    kept(Cluster(state).nodes)
    for pod in lost:
        state.remove_pod(pod.uid)


def nothing(_: ClusterState) -> None:
    """Nothing changes."""


CHANGES = [
    pytest.param(nothing, id="nothing changes"),
    pytest.param(lambda state: add_pods(state, 1), id="a pod comes"),
    pytest.param(lambda state: add_pods(state, 12), id="pods come to more nodes than are asked about one by one"),
    pytest.param(lambda state: state.apply(Put(a_node("node-3", cpu="8"))), id="a node becomes larger"),
    pytest.param(lambda state: state.apply(Gone(a_node("node-3"))), id="a node goes, and leaves a gap"),
    pytest.param(lambda state: state.apply(Put(a_node("node-12", cpu="2"))), id="a node comes"),
    pytest.param(
        lambda state: [state.apply(Put(a_node(f"more-{at}", cpu="2"))) for at in range(500)],
        id="so many nodes come that the table grows",
    ),
    pytest.param(grow_and_shrink, id="pods of nodes that do not exist make the table grow, and go"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_kept_columns_are_those_computed_anew(change: Callable[[ClusterState], object]) -> None:
    state = twelve_nodes()
    kept(Cluster(state).nodes)
    change(state)
    nodes = Cluster(state).nodes
    assert kept(nodes) == anew(nodes)
    add_pods(state, 3)
    later = Cluster(state).nodes
    assert kept(later) == anew(later)


@pytest.mark.parametrize("change", CHANGES)
def test_a_part_of_the_nodes_sees_its_own_rows(change: Callable[[ClusterState], object]) -> None:
    state = twelve_nodes()
    kept(Cluster(state).nodes)
    change(state)
    part = Cluster(state).nodes.where(Cluster(state).nodes.positions_of_all()[2:7])
    assert kept(part) == anew(part)
    nodes = Cluster(state).nodes
    assert kept(nodes) == anew(nodes)


def test_no_plugin_can_change_a_kept_column() -> None:
    column, *_ = row_columns(Cluster(twelve_nodes()).nodes, "cpu", of_nodes, of_one)
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1
