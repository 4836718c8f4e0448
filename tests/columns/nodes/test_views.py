"""Views: the same columns for any rows, and read-only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import count
from operator import eq
from typing import Any

import numpy as np
import pytest

from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.tally import Tally
from stowplan.objects.affinity import AffinityTerm, PodQuery
from stowplan.objects.changes import Gone, Put
from stowplan.objects.selectors import LabelRequirement, NodeTerm, from_labels
from stowplan.objects.shape import REQUIRED_ANTI
from stowplan.testing.builders import HOSTNAME, REQUIRED, a_cluster, a_namespace, a_node, a_pod, a_service, a_state

X = PodQuery(None, from_labels({"app": "x"}))
NEAR_X = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
NODES = [
    a_node("a", cpu=1, labels={"zone": "east", "rank": "5"}, taints=["k=v:NoSchedule"], images={"web:latest": 600}),
    a_node("b", cpu=2, labels={"zone": "west", "rank": "x"}, unschedulable=True),
    a_node("c", cpu=3, labels={"zone": "east", "rank": "-7"}, features=["F"], images={"web:latest": 600}),
    a_node("d", cpu=4),
]
PODS = [a_pod("p", node="c", cpu=1, labels={"app": "x"}, ports=[80]), a_pod("q", node="c"), a_pod("r", node="d")]


def used(nodes: Nodes, use: tuple[Any, ...]) -> Tally:
    found = nodes.used(use)
    assert found is not None
    return found


def views(**cluster: Any) -> list[Any]:
    """The same cluster seen in one piece, with a gap in its rows, and a part of it."""
    return [
        pytest.param(a_cluster(**cluster).nodes, id="all rows"),
        pytest.param(
            a_cluster(**cluster | {"pods": [*cluster["pods"], a_pod("s", node="gone")]}).nodes, id="with a gap"
        ),
        pytest.param(a_cluster(**cluster).nodes.where(np.array([False, False, True, True])), id="a part"),
    ]


QUESTIONS: dict[str, tuple[Callable[[Nodes], Any], list[Any]]] = {
    "names": (lambda nodes: nodes.names, ["a", "b", "c", "d"]),
    "allocatable": (lambda nodes: nodes.allocatable["cpu"], [1000, 2000, 3000, 4000]),
    "requested": (lambda nodes: nodes.requested["cpu"], [0, 0, 1000, 0]),
    "pods": (lambda nodes: nodes.requested["pods"], [0, 0, 2, 1]),
    "presumed": (lambda nodes: nodes.presumed["cpu"], [0, 0, 1100, 100]),
    "free": (lambda nodes: nodes.free["cpu"], [1000, 2000, 2000, 4000]),
    "unschedulable": (lambda nodes: nodes.unschedulable, [False, True, False, False]),
    "tainted": (lambda nodes: nodes.taints.where(bool), [True, False, False, False]),
    "number of taints": (lambda nodes: nodes.taints.number(len), [1, 0, 0, 0]),
    "features": (lambda nodes: nodes.features.where(lambda declared: "F" in declared), [False, False, True, False]),
    "label": (lambda nodes: nodes.label("zone").values, ["east", "west", "east", None]),
    "label equals": (lambda nodes: nodes.label("zone") == "east", [True, False, True, False]),
    "label differs": (lambda nodes: nodes.label("zone") != "east", [False, True, False, True]),
    "label is unknown": (lambda nodes: nodes.label("zone") == "north", [False] * 4),
    "label present": (lambda nodes: nodes.label("zone").present, [True, True, True, False]),
    "name equals": (lambda nodes: nodes.name == "c", [False, False, True, False]),
    "name differs": (lambda nodes: nodes.name != "c", [True, True, False, True]),
    "count": (lambda nodes: nodes.count(X), [0, 0, 1, 0]),
    "port": (lambda nodes: nodes.counts_of(used(nodes, ("port", "TCP", 80, "*"))), [0, 0, 1, 0]),
    "image": (lambda nodes: nodes.image("web:latest"), [300, 0, 300, 0]),
    "no such image": (lambda nodes: nodes.image("db:latest"), [0, 0, 0, 0]),
    "one by one": (lambda nodes: [node.free("cpu") for node in nodes], [1000, 2000, 2000, 4000]),
    "positions": (lambda nodes: [nodes.position(nodes.names[at]) == at for at in range(len(nodes))], [True] * 4),
    "many positions": (lambda nodes: list(map(eq, nodes.positions(nodes.names).values(), count())), [True] * 4),
}  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("nodes", views(nodes=NODES, pods=PODS))
def test_a_view_answers_for_its_rows(nodes: Nodes, question: str) -> None:
    ask, expected = QUESTIONS[question]
    answer = ask(nodes)
    assert (answer.tolist() if isinstance(answer, np.ndarray) else answer) == expected[-len(nodes) :]


@pytest.mark.parametrize("nodes", views(nodes=NODES, pods=PODS))
def test_positions_of_nodes_that_are_not_in_the_view(nodes: Nodes) -> None:
    assert nodes.positions(["x", "gone", nodes.names[1], ""]) == {nodes.names[1]: 1}
    nobody = nodes.where(np.zeros(len(nodes), np.bool_))
    assert nobody.positions(["a", "d"]) == {} == nodes.positions([])


def test_the_token_is_the_same_until_the_nodes_change() -> None:
    state = a_state(nodes=["a", "b"])
    before = Cluster(state).nodes.token
    state.apply(Put(a_pod("p", node="a", cpu=1)))
    state.apply(Put(a_node("b", cpu=8)))
    assert Cluster(state).nodes.token is before
    assert Cluster(state).nodes.where(np.array([True, True])).token is not before
    state.apply(Gone(a_node("a")))
    state.apply(Gone(a_pod("p", node="a", cpu=1)))
    state.apply(Put(a_node("c")))
    assert Cluster(state).nodes.token is not before and Cluster(state).nodes.names == ["c", "b"]


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        pytest.param(LabelRequirement("zone", "In", ("east", "north")), "ac", id="In"),
        pytest.param(LabelRequirement("zone", "NotIn", ("east",)), "bd", id="NotIn, missing labels included"),
        pytest.param(LabelRequirement("zone", "Exists"), "abc", id="Exists"),
        pytest.param(LabelRequirement("zone", "DoesNotExist"), "d", id="DoesNotExist"),
        pytest.param(LabelRequirement("rank", "Gt", ("-8",)), "ac", id="Gt, numbers only"),
        pytest.param(LabelRequirement("rank", "Lt", ("5",)), "c", id="Lt"),
    ],
)
def test_conditions_on_labels(requirement: LabelRequirement, expected: str) -> None:
    nodes = a_cluster(nodes=NODES).nodes
    met = nodes.matching((requirement,))
    assert "".join(np.array(nodes.names)[met]) == expected
    assert met.tolist() == [requirement.matches(node.labels) for node in nodes]


def test_terms_are_alternatives_and_may_name_nodes() -> None:
    nodes = a_cluster(nodes=NODES).nodes
    east = NodeTerm(from_labels({"zone": "east"}), (LabelRequirement("metadata.name", "NotIn", ("c",)),))
    named = NodeTerm((), (LabelRequirement("metadata.name", "In", ("d",)),))
    assert nodes.matching_any([east, named]).tolist() == [True, False, False, True]
    assert nodes.matching_any([]).tolist() == [False] * 4


# -- nothing to write to

ARRAYS: list[Any] = [
    pytest.param(lambda nodes: nodes.allocatable["cpu"], id="allocatable"),
    pytest.param(lambda nodes: nodes.requested["cpu"], id="requested"),
    pytest.param(lambda nodes: nodes.presumed["cpu"], id="presumed"),
    pytest.param(lambda nodes: nodes.unschedulable, id="unschedulable"),
    pytest.param(lambda nodes: nodes.label("zone").codes, id="codes of a label"),
    pytest.param(lambda nodes: nodes.taints.where(bool), id="an answer about taints"),
    pytest.param(lambda nodes: nodes.rows, id="rows"),
    pytest.param(lambda nodes: nodes.image("web:latest"), id="an image"),
    pytest.param(lambda nodes: nodes.cluster.by_domain(nodes.cluster.count(X), "zone"), id="a count by domain"),
    pytest.param(
        lambda nodes: nodes.count(X),
        id="a count",
    ),
    pytest.param(
        lambda nodes: nodes.label("zone").all_codes,
        id="all codes of a label",
    ),
]


@pytest.mark.parametrize("array", ARRAYS)
def test_no_plugin_can_change_the_cluster_through_a_view(array: Callable[[Nodes], Any]) -> None:
    """An array is a copy, or cannot be written to. With 100 nodes and pods, counts are arrays too."""
    nodes = [a_node(f"n{n}", labels={"zone": "east"}, images={"web:latest": 5}) for n in range(100)]
    state = a_state(nodes=nodes, pods=[a_pod(f"p{n}", node=f"n{n}", cpu=1, labels={"app": "x"}) for n in range(100)])
    before = array(Cluster(state).nodes).tolist()
    shown = array(Cluster(state).nodes)
    with contextlib.suppress(ValueError, TypeError):
        shown += 1
    assert array(Cluster(state).nodes).tolist() == before


# -- the cluster around


def test_a_domain_counts_all_its_nodes_in_any_view() -> None:
    state = a_state(
        nodes=NODES, pods=[a_pod(f"p{at}", node=name, labels={"app": "x"}) for at, name in enumerate("aacd")]
    )
    cluster = Cluster(state)
    label = cluster.nodes.label("zone")
    counts = cluster.by_domain(cluster.count(X), "zone")
    assert counts[label.codes].tolist() == [3, 0, 3, 0]
    with_bare = cluster.by_domain(cluster.count(X), "zone", unlabelled=True)
    assert with_bare[label.codes].tolist() == [3, 0, 3, 1]
    only_c = cluster.nodes.over_all_rows(cluster.nodes.name == "c")
    assert cluster.by_domain(cluster.count(X), "zone", only_c)[label.codes].tolist() == [1, 0, 1, 0]


def test_affinity_terms_of_other_pods_that_match_a_pod() -> None:
    carrier = a_pod("carrier", node="a", affinity={"podAntiAffinity": {REQUIRED: [NEAR_X]}})
    cluster = a_cluster(nodes=NODES, pods=[carrier], others=[a_namespace()])
    found = list(cluster.terms_matching(REQUIRED_ANTI, a_pod(labels={"app": "x"})))
    keys = [term.topology_key for term, _ in found if isinstance(term, AffinityTerm)]
    assert (keys, [cluster.node_names_of(tally) for _, tally in found]) == (["zone"], [["a"]])
    assert list(cluster.terms_matching(REQUIRED_ANTI, a_pod(labels={"app": "y"}))) == []
    assert list(cluster.terms_matching(REQUIRED_ANTI, a_pod(labels={"app": "x"}, namespace="other"))) == []


def test_objects_and_pods_can_be_looked_up() -> None:
    service, other = a_service("s", app="x"), a_service("t", app="y")
    cluster = a_cluster(nodes=NODES, pods=PODS, others=[service, other, a_namespace(team="red"), a_service("empty")])
    assert cluster.services_of(PODS[0]) == [service]
    assert cluster.namespace_labels("default") == {"team": "red"} and cluster.namespace_labels("unknown") == {}
    assert [pod.name for pod in cluster.pods_on("c")] == ["p", "q"] and cluster.pods_on("unknown") == []
    assert cluster.pod(PODS[0].uid) is not None and cluster.pod("unknown") is None


def test_one_node_shows_its_objects() -> None:
    node = a_cluster(nodes=NODES, pods=PODS).nodes[2]
    assert (node.name, node.labels["zone"], node.taints, node.unschedulable) == ("c", "east", (), False)
    assert (node.allocatable("cpu"), node.requested("cpu"), node.presumed("cpu")) == (3000, 1000, 1100)
    assert node.allocatable("example.com/unheard-of") == 0
    assert [pod.name for pod in node.pods] == ["p", "q"]


def test_a_label_that_no_node_has() -> None:
    label = a_cluster(nodes=NODES).nodes.label(HOSTNAME)
    assert not label.present.any() and label.values == [None] * 4


def test_a_label_is_anywhere_whichever_rows_a_view_covers() -> None:
    nodes = a_cluster(nodes=NODES).nodes
    assert nodes.where(np.array([False, False, False, True])).label("zone").anywhere
    assert not nodes.label(HOSTNAME).anywhere


def test_the_values_of_a_label_are_those_of_pods_on_nodes() -> None:
    labels = ({"tier": "front"}, {"tier": "back", "app": "x"}, {"tier": "front", "app": "y"}, {"app": "x"})
    pods = [a_pod(f"p{number}", node="a", labels=each) for number, each in enumerate(labels)]
    cluster = a_cluster(nodes=NODES, pods=[*pods, a_pod("waits", labels={"tier": "middle"})])
    assert cluster.pod_label_values("tier") == {"front", "back"}
    assert cluster.pod_label_values("never") == set()


@pytest.mark.parametrize(
    ("key", "everywhere", "distinct", "variety"),
    [
        pytest.param("zone", False, False, 2, id="shared by two, missing on one"),
        pytest.param("rank", False, True, 3, id="different on each that has it"),
        pytest.param("never", False, True, 0, id="nowhere"),
        pytest.param("os", True, False, 1, id="the same everywhere"),
    ],
)
def test_the_values_of_a_label_in_the_cluster(key: str, everywhere: bool, distinct: bool, variety: int) -> None:
    nodes = a_cluster(nodes=[a_node(node.name, labels={**node.labels, "os": "linux"}) for node in NODES]).nodes
    for view in (nodes, nodes.where(np.array([1, 3]))):
        label = view.label(key)
        assert (label.everywhere, label.distinct, label.value_count) == (everywhere, distinct, variety)


def test_fewer_nodes_by_a_mask_or_by_positions() -> None:
    nodes = a_cluster(nodes=NODES).nodes
    assert nodes.where(np.array([True, False, False, True])).names == nodes.where(np.array([0, 3])).names == ["a", "d"]


def test_nominations_are_counted() -> None:
    assert a_cluster(nodes=NODES).nomination_count == 0
    assert a_cluster(nodes=NODES, pods=[a_pod("p", nominated="a"), a_pod("q", nominated="a")]).nomination_count == 2


def test_a_label_that_has_one_of_some_values() -> None:
    nodes = [
        a_node("a", labels={"zone": "x"}),
        a_node("b", labels={"zone": "y"}),
        a_node("c", labels={"zone": "z"}),
        a_node("d"),
    ]
    zone = Cluster(a_state(nodes=nodes)).nodes.label("zone")
    assert zone.isin(["x", "z", "nowhere"]).tolist() == [True, False, True, False]
    assert zone.isin([]).tolist() == zone.isin({None}).tolist() == [False] * 4  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"isin\('x'\) is one text; give a list: isin\(\['x'\]\)"):
        zone.isin("x")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        pytest.param("labels", '; write nodes.label("disk") for the values of one label', id="labels"),
        pytest.param("pods", "; write nodes.count(pods_with({…})) for the number of pods on each node", id="pods"),
        pytest.param("anything", "", id="what no node has"),
    ],
)
def test_what_one_node_has_and_many_do_not(name: str, hint: str) -> None:
    nodes = Cluster(a_state(nodes=NODES)).nodes
    with pytest.raises(AttributeError) as caught:
        getattr(nodes, name)
    assert str(caught.value) == f"'Nodes' object has no attribute {name!r}{hint}"
    assert not hasattr(nodes, name)
