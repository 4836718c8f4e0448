"""How many nodes are looked at: all of them, unless `percentageOfNodesToScore` says otherwise; then by turns."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.framework.search import NodeSearch, by_turns, wanted
from stowplan.testing.builders import a_cluster, a_node, a_pod, a_profile, a_state


@pytest.mark.parametrize(
    ("nodes", "percentage", "enough"),
    [
        pytest.param(5000, None, 5000, id="nothing said: all"),
        pytest.param(5000, 100, 5000, id="all of them"),
        pytest.param(99, 5, 99, id="small clusters are always looked at whole"),
        pytest.param(200, 0, 100, id="kube-scheduler's own choice, at least a hundred"),
        pytest.param(500, 0, 230, id="its choice for 500"),
        pytest.param(1000, 0, 420, id="its choice for 1,000"),
        pytest.param(5000, 0, 500, id="its choice for 5,000"),
        pytest.param(6000, 0, 300, id="never less than five per cent"),
        pytest.param(1000, 30, 300, id="a percentage"),
        pytest.param(1000, 1, 100, id="a percentage below the least"),
    ],
)
def test_how_many_feasible_nodes_are_enough(nodes: int, percentage: int | None, enough: int) -> None:
    assert wanted(nodes, percentage) == enough


def test_zones_are_visited_by_turns() -> None:
    zones = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "c1": "c", "c2": "c"}
    nodes = a_cluster(
        nodes=[a_node(name, labels={"topology.kubernetes.io/zone": z}) for name, z in zones.items()]
    ).nodes
    assert [nodes.names[at] for at in by_turns(nodes)] == ["a1", "b1", "c1", "a2", "c2", "a3"]


def some(percentage: int | None) -> Profile:
    default = a_profile()
    return Profile(default.scheduler_name, default.points, percentage)


def test_all_nodes_have_their_turn() -> None:
    nodes = [a_node(f"n{number}", taints=["t=v:NoSchedule"] if number % 4 == 0 else []) for number in range(400)]
    state, search, seen = a_state(nodes=nodes), NodeSearch(), Counter[str]()
    for number in range(9):
        decision = schedule_one(a_pod(f"p{number}"), state, some(25), search=search)
        feasible = [decision.trail.names[at] for at in decision.trail.feasible.tolist()]
        assert len(feasible) == 100 and decision.node in feasible
        seen.update(feasible)
    assert len(seen) == 300 and set(seen.values()) == {3}


def test_where_none_is_feasible_all_were_looked_at() -> None:
    state = a_state(nodes=[a_node(f"n{number}", cpu=1) for number in range(300)])
    decision = schedule_one(a_pod(cpu=2), state, some(10), search=NodeSearch())
    assert decision.message == "0/300 nodes are available: 300 Insufficient cpu."


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(a_node("b", cpu=4), "b", id="it will do: taken, and no other looked at"),
        pytest.param(a_node("b", cpu=1), "a", id="it will not do: all others are looked at"),
    ],
)
def test_the_nominated_node_comes_first(node: Any, expected: str) -> None:
    """It scores worse than the other, which is not asked."""
    state = a_state(nodes=[a_node("a", cpu=64), node])
    decision = schedule_one(a_pod(cpu=2, nominated="b"), state, a_profile(), search=NodeSearch())
    assert decision.node == expected
    assert len(dict(decision.trail.rejections())) == (1 if expected == "b" else 2)


def test_the_percentage_of_a_profile_wins_over_that_of_all() -> None:
    text = {"percentageOfNodesToScore": 30, "profiles": [{"schedulerName": "one", "percentageOfNodesToScore": 50}]}
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    assert a_profile({**header, **text}).percentage_of_nodes_to_score == 50
    assert a_profile({**header, "percentageOfNodesToScore": 30}).percentage_of_nodes_to_score == 30


def test_without_a_search_every_node_is_looked_at() -> None:
    state = a_state(nodes=[a_node(f"n{number}") for number in range(300)])
    decision = schedule_one(a_pod(nominated="n7"), state, some(10), np.random.default_rng(0))
    assert len(decision.trail.feasible) == 300
