"""Nodes to be had only if there is no other."""

from __future__ import annotations

import pytest

from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.decision import Avoid
from stowplan.framework.evaluation import passing, schedule_one
from stowplan.framework.search import NodeSearch
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_pod, a_profile_of, a_state, rejections
from tests.framework.fakes import a_plugin, decide, refusing

U = "Unschedulable"


@pytest.mark.parametrize(
    ("avoided", "others", "refused", "node"),
    [
        pytest.param("a", "", "a", "b", id="one is left out"),
        pytest.param("ab", "", "ab", "c", id="two are"),
        pytest.param("abc", "", "", "a", id="not the last one"),
        pytest.param("a", "bc", "", "a", id="nor the only one that filters leave"),
        pytest.param("ab", "c", "", "a", id="nor all that filters leave"),
        pytest.param("b", "b", "", "a", id="one that is refused anyway"),
        pytest.param("x", "", "", "a", id="one that is not there"),
    ],
)
def test_nodes_that_are_avoided(avoided: str, others: str, refused: str, node: str) -> None:
    plugin = a_plugin(avoid=Avoid(frozenset(avoided), "rather not"), score=0)
    decision = decide(a_plugin("Other", filter=refusing(*others)), plugin)
    by_us = [name for name, said in rejections(decision).items() if said == ("Fake", U, ("rather not",))]
    assert (decision.node, "".join(by_us)) == (node, refused)


@pytest.mark.parametrize(
    ("wanted", "others", "refused", "node"),
    [
        pytest.param("b", "", "ac", "b", id="one is wanted"),
        pytest.param("bc", "", "a", "b", id="two are"),
        pytest.param("b", "b", "", "a", id="one that filters refuse"),
        pytest.param("x", "", "", "a", id="one that is not there"),
        pytest.param("abc", "", "", "a", id="all of them"),
    ],
)
def test_all_nodes_but_these_are_avoided(wanted: str, others: str, refused: str, node: str) -> None:
    plugin = a_plugin(avoid=Avoid(frozenset(wanted), "rather not", others=True), score=0)
    decision = decide(a_plugin("Other", filter=refusing(*others)), plugin)
    by_us = [name for name, said in rejections(decision).items() if said == ("Fake", U, ("rather not",))]
    assert (decision.node, "".join(by_us)) == (node, refused)


def test_what_one_plugin_leaves_is_what_the_next_may_avoid() -> None:
    first, second = (
        a_plugin(name, avoid=Avoid(frozenset(names), name), score=0) for name, names in (("F", "a"), ("S", "bc"))
    )
    assert rejections(decide(first, second)) == {"a": ("F", U, ("F",)), "b": None, "c": None}


def test_a_plugin_may_ask_where_another_pod_would_pass() -> None:
    """By the filters of the same profile; without a decision, nobody says no."""
    found: list[list[bool]] = []

    class Asking:
        def filter(self, pod: Pod, nodes: Nodes) -> tuple[()]:
            if pod.name != "other":
                found.append(passing(a_pod("other"), nodes.cluster).tolist())
            return ()

    decide(a_plugin("Other", filter=refusing("b")), Asking())
    assert found == [[True, False, True]]
    assert passing(a_pod("other"), Cluster(a_state(nodes=["a", "b"]))).tolist() == [True, True]


def test_a_node_that_was_promised_is_taken_though_it_is_avoided() -> None:
    profile, state = a_profile_of(a_plugin(avoid=Avoid(frozenset("a"), "no"), score=0)), a_state(nodes=["a", "b"])
    assert schedule_one(a_pod(nominated="a"), state, profile, search=NodeSearch()).node == "a"
