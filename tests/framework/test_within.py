"""Decisions that are limited to some rows: the other nodes might as well not be there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.columns.arrays import Rows
from stowplan.columns.nodes.views import Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework.config.settings import Extender
from stowplan.framework.decision import UNSEEN, Avoid, Reject, RejectPod
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.extenders import Consultation
from stowplan.framework.profile import Profile
from stowplan.framework.search import NodeSearch
from stowplan.objects.changes import Gone
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default.default_preemption import DefaultPreemption
from stowplan.testing.builders import REQUIRED, a_node, a_pod, a_profile, a_profile_of, a_state, rejections, scores
from stowplan.testing.comparison import decision_contents
from tests import strategies
from tests.framework.fakes import a_plugin, refusing

DEFAULT = a_profile()
# What these say about a node depends on counts over the whole cluster, so on nodes outside, too.
CLUSTER_WIDE = ("PodTopologySpread", "InterPodAffinity", "ImageLocality")
BY_NODE = a_profile(
    {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": name} for name in CLUSTER_WIDE]}}}]}
)


def rows(state: ClusterState, *names: str) -> Rows:
    return np.array([state.table.row_of[name] for name in names], np.int64)


TAINTED = ["k=v:PreferNoSchedule"]
CLAIM = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
ON_A = {
    "nodeAffinity": {
        REQUIRED: {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
        }
    }
}


@pytest.mark.parametrize(
    ("within", "pod", "node", "message"),
    [
        pytest.param("b", {}, "b", "", id="the only node"),
        pytest.param("bc", {}, "b", "", id="the best node is outside"),
        pytest.param("cb", {}, "b", "", id="in any order"),
        pytest.param("bb", {}, "b", "", id="named twice"),
        pytest.param("", {}, None, "no nodes available to schedule pods", id="no node at all"),
        pytest.param(
            "bc",
            {"cpu": 8},
            None,
            "0/2 nodes are available: 2 Insufficient cpu.",
            id="only nodes within are counted, though the pod would fit outside",
        ),
        pytest.param(
            "b",
            {"volumes": CLAIM},
            None,
            '0/1 nodes are available: persistentvolumeclaim "data" not found.',
            id="a pod that is refused as a whole",
        ),
        pytest.param(
            "bc",
            {"affinity": ON_A},
            None,
            "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="the node that the pod names is outside",
        ),
        pytest.param("ab", {"affinity": ON_A}, "a", "", id="the node that the pod names is within"),
        pytest.param("bc", {"nominated": "a"}, "b", "", id="the nominated node is outside"),
        pytest.param("bc", {"nominated": "c"}, "c", "", id="the nominated node is within"),
    ],
)
def test_a_decision_within_some_rows(within: str, pod: dict[str, Any], node: str | None, message: str) -> None:
    state = a_state(nodes=[a_node("a", cpu=64), a_node("b"), a_node("c", taints=TAINTED)])
    decision = schedule_one(a_pod(**pod), state, DEFAULT, search=NodeSearch(), within=rows(state, *within))
    assert (decision.node, decision.message) == (node, message)


def test_nodes_outside_are_unseen() -> None:
    state = a_state(nodes=["a", "b", "c", "d"])
    decision = schedule_one(
        a_pod(), state, a_profile_of(a_plugin(filter=refusing("a", "b"))), within=rows(state, "b", "c")
    )
    assert rejections(decision) == {"b": ("Fake", "Unschedulable", ("no",)), "c": None}
    assert list(decision.trail.names) == ["a", "b", "c", "d"], "positions are those of all nodes"
    assert (decision.trail.verdict_of == UNSEEN).tolist() == [True, False, False, True]
    assert (decision.node, decision.trail.feasible.tolist(), decision.trail.total) == ("c", [2], 2)


def test_a_row_whose_node_is_gone_is_left_out() -> None:
    state = a_state(nodes=["a", "b", "c"])
    within = rows(state, "a", "b")
    state.apply(Gone(a_node("a")))
    decision = schedule_one(a_pod(cpu=8), state, DEFAULT, within=within)
    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert schedule_one(a_pod(), state, DEFAULT, within=within).node == "b"


def test_plugins_are_asked_about_nodes_within() -> None:
    seen: list[tuple[str, list[str]]] = []

    def saw(point: str, nodes: Nodes, answer: Any) -> Any:
        seen.append((point, nodes.names))
        return answer

    plugin = a_plugin(
        filter=lambda _, nodes: saw("filter", nodes, []),
        score=lambda _, nodes: saw("score", nodes, 0),
    )
    state = a_state(nodes=["a", "b", "c"])
    assert schedule_one(a_pod(), state, a_profile_of(plugin), within=rows(state, "b", "c")).node == "b"
    assert seen == [("filter", ["b", "c"]), ("score", ["b", "c"])]


def test_avoiding_looks_at_nodes_within() -> None:
    plugin = a_plugin(score=0, avoid=Avoid(frozenset("b"), "not if possible"))
    state, profile = a_state(nodes=["a", "b", "c"]), a_profile_of(plugin)
    assert schedule_one(a_pod(), state, profile, within=rows(state, "b", "c")).node == "c"
    assert schedule_one(a_pod(), state, profile, within=rows(state, "b")).node == "b", "the other nodes are outside"


def test_scores_compare_nodes_within() -> None:
    """The most tainted node scores 0; which one that is depends on who is there."""
    nodes = [a_node("a", taints=[*TAINTED, "l=v:PreferNoSchedule"]), a_node("b", taints=TAINTED), a_node("c")]
    state = a_state(nodes=nodes)
    assert scores(schedule_one(a_pod(), state, DEFAULT), "TaintToleration") == {"a": 0, "b": 50, "c": 100}
    decision = schedule_one(a_pod(), state, DEFAULT, within=rows(state, "b", "c"))
    assert scores(decision, "TaintToleration") == {"b": 0, "c": 100}


def test_extenders_are_asked_about_nodes_within() -> None:
    state, pod = a_state(nodes=["a", "b", "c"]), a_pod()
    consultation = Consultation([Extender(url_prefix="http://x", filter_verb="filter")], pod)
    decision = schedule_one(pod, state, DEFAULT, consultation=consultation, within=rows(state, "a", "c"))
    assert [ask.nodes for ask in decision.asks] == [("a", "c")]


def test_enough_nodes_are_a_share_of_those_within() -> None:
    state = a_state(nodes=[f"n{number:03}" for number in range(400)])
    profile = Profile(DEFAULT.scheduler_name, DEFAULT.points, 60)
    within = rows(state, *(f"n{number:03}" for number in range(200)))
    decision = schedule_one(a_pod(), state, profile, search=NodeSearch(), within=within)
    assert len(decision.trail.feasible) == 120
    assert decision.trail.feasible.max() < 200


# -- preemption

FULL = [a_node(name, cpu=1) for name in "abc"]


@pytest.mark.parametrize(
    ("within", "candidate", "words"),
    [
        pytest.param("abc", "a", "", id="everywhere: the lowest priority"),
        pytest.param("bc", "b", "", id="the best victim is outside"),
        pytest.param(
            "c",
            None,
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            id="all victims are outside",
        ),
    ],
)
def test_victims_are_sought_within(within: str, candidate: str | None, words: str) -> None:
    pods = [a_pod(f"on-{name}", node=name, cpu=1, priority=p) for name, p in (("a", 1), ("b", 2), ("c", 9))]
    state = a_state(nodes=FULL, pods=pods)
    decision = schedule_one(a_pod(cpu=1, priority=5), state, DEFAULT, within=rows(state, *within))
    found = decision.post_filter
    assert found is not None and (found.candidate and found.candidate.node) == candidate
    assert words in decision.full_message


def test_victims_are_sought_within_for_a_pod_that_is_refused_as_a_whole() -> None:
    profile = a_profile_of(
        a_plugin("Whole", pre_filter=RejectPod(("no",))),
        a_plugin("Empty", filter=lambda _, nodes: [Reject(nodes.requested["pods"] > 0, "taken")]),
        DefaultPreemption(),
    )
    state = a_state(nodes=FULL, pods=[a_pod("victim", node="a", priority=1)])
    for within, candidate in (("ab", True), ("bc", False)):
        decision = schedule_one(a_pod(priority=5), state, profile, within=rows(state, *within))
        assert decision.message == "0/2 nodes are available: no."
        assert decision.post_filter is not None and (decision.post_filter.candidate is not None) == candidate


# -- a cluster of these nodes alone


@given(strategies.clusters(), strategies.pods("next"), st.integers(0, 2**6 - 1))
def test_a_decision_within_rows_is_that_of_a_cluster_of_these_nodes(
    cluster: dict[str, Any], pod: Pod, chosen: int
) -> None:
    inside = [node for at, node in enumerate(cluster["nodes"]) if chosen >> at & 1]
    names = {node.name for node in inside}
    alone = a_state(**{**cluster, "nodes": inside, "pods": [p for p in cluster["pods"] if p.node_name in names]})
    whole = a_state(**cluster)
    expected = schedule_one(pod, alone, BY_NODE)
    decision = schedule_one(pod, whole, BY_NODE, within=rows(whole, *names))
    assert decision_contents(decision) == decision_contents(expected)
    assert decision.full_message == expected.full_message
    again = schedule_one(pod, whole, BY_NODE)
    assert decision_contents(again) == decision_contents(schedule_one(pod, a_state(**cluster), BY_NODE)), (
        "nothing is left of it"
    )


@given(strategies.clusters(), strategies.pods("next"))
def test_all_rows_are_no_limit(cluster: dict[str, Any], pod: Pod) -> None:
    """This holds for every plugin, those that count over the whole cluster included."""
    state = a_state(**cluster)
    decision = schedule_one(pod, state, DEFAULT, within=state.table.live_rows())
    assert decision_contents(decision) == decision_contents(schedule_one(pod, state, DEFAULT))
