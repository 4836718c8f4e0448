"""A run may give a node order: the first of equally good nodes is taken, on every path of a decision."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.arrays import Ints
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.node_order import NodeOrder
from stowplan.objects.changes import Gone, Put
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default.node_resources_fit import NodeResourcesFit
from stowplan.testing.builders import a_node, a_pod, a_profile_of, a_state


class Preferred:
    """Nodes with this label are better."""

    def __init__(self, *, by_row: bool) -> None:
        self.scores_by_row = by_row

    def score(self, pod: Pod, nodes: Nodes) -> Ints:
        return 10 * nodes.label("good").present.astype(int)


def nodes(names: str, good: str = "") -> list[Any]:
    return [a_node(name, cpu=1, labels={"good": "yes"} if name in good else {}) for name in names]


@pytest.mark.parametrize("by_row", [pytest.param(True, id="kept scores"), pytest.param(False, id="other scores")])
@pytest.mark.parametrize(
    ("order", "taken"),
    [
        pytest.param("dcba", "dcba", id="the best ones in their order, then the others in theirs"),
        pytest.param("c", "cdab", id="nodes outside the order come last, by name"),
        pytest.param("", "cdab", id="no order at all: by name"),
    ],
)
def test_the_first_of_the_order_is_taken(order: str, taken: str, by_row: bool) -> None:
    state = a_state(nodes=nodes("badc", good="cd"))
    profile = a_profile_of(
        NodeResourcesFit(scoring_strategy={"resources": [{"name": "x.y/z"}]}), Preferred(by_row=by_row)
    )
    found, generator = "", NodeOrder(order)
    for number in range(4):
        pod = a_pod(f"p{number}", cpu=1, memory=1)
        decision = schedule_one(pod, state, profile, generator)
        assert decision.node is not None
        state.add_pod(pod, decision.node)
        found += decision.node
    assert found == taken


def test_nodes_that_come_later_have_their_place_too() -> None:
    state, order = a_state(nodes=nodes("ba")), NodeOrder("cab")
    profile = a_profile_of(NodeResourcesFit())
    pod = a_pod("p", cpu="100m", memory=1)
    assert schedule_one(pod, state, profile, order).node == "a"
    state.apply(Gone(a_node("a")))
    assert schedule_one(pod, state, profile, order).node == "b"
    state.apply(Put(a_node("c", cpu=1)))
    assert schedule_one(pod, state, profile, order).node == "c"
