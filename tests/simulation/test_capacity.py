"""Filling a cluster, and how many nodes a workload needs. (kube-scheduler judges the decisions in the file beside.)"""

from __future__ import annotations

import pytest

from stowplan.columns.state import ClusterState
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Put
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.simulation import capacity
from stowplan.simulation.capacity import NodesNeeded, filling, nodes_needed
from stowplan.simulation.pod_series import PodSeries
from stowplan.testing.builders import a_node, a_pod, a_profile


def a_cluster(*nodes: Node) -> tuple[ClusterState, Profile]:
    state, profile = ClusterState(), a_profile()
    for each in nodes:
        state.apply(Put(each))
    profile.attach(state)
    return state, profile


def pods(number: int, cpu: str = "1") -> list[Pod]:
    series = PodSeries(a_pod("web", cpu=cpu))
    return [series[at][0] for at in range(number)]


def more(cpu: str) -> capacity.MakeNodes:
    return lambda number: [a_node(f"new-{at}", cpu=cpu) for at in range(number)]


def test_each_pod_takes_its_room_and_nothing_is_left_afterwards() -> None:
    state, profile = a_cluster(a_node("a", cpu="2"), a_node("b", cpu="3"))
    for _ in range(2):
        with filling(state, profile) as found:
            decisions = [found.come(each) for each in pods(6)]
            assert [each.node is not None for each in decisions] == [True] * 5 + [False]
            assert found.by_node == {"b": 3, "a": 2} and list(found.by_node) == ["b", "a"]
            assert [pod.name for pod, _ in found.placed] == ["web", "web-2", "web-3", "web-4", "web-5"]
            assert decisions[-1].message == "0/2 nodes are available: 2 Insufficient cpu."
        assert state.pods == {}


def test_nodes_that_are_added_are_gone_afterwards() -> None:
    state, profile = a_cluster(a_node("a", cpu="1"))
    with filling(state, profile, more("1")(2)) as found:
        assert sum(found.come(each).node is not None for each in pods(9)) == 3
    assert state.table.live_count == 1


@pytest.mark.parametrize("wanted", range(1, 12))
def test_the_number_is_the_fewest(wanted: int) -> None:
    """A node has one core, the others that are added have two."""
    state, profile = a_cluster(a_node("a", cpu="1"))
    tried: list[int] = []
    found = nodes_needed(state, profile, pods(wanted), more("2"), tried.append)
    assert found.number == wanted // 2 and found.placed == wanted
    assert len(tried) == len(set(tried)) <= 7
    assert state.pods == {} and state.table.live_count == 1


def test_no_number_is_enough_for_a_pod_that_is_too_large() -> None:
    state, profile = a_cluster(a_node("a", cpu="4"))
    found = nodes_needed(state, profile, pods(3, "2"), more("1"))
    assert found.number is None and found.placed == 2
    assert found.failed is not None and "Insufficient cpu" in found.failed.message


def test_it_ends_at_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "MOST_NODES", 4)
    state, profile = a_cluster()
    found: NodesNeeded = nodes_needed(state, profile, pods(9), more("1"))
    assert (found.number, found.placed) == (None, 4)
