"""Policies written for one node at a time become plugins."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.nodes.one_node import OneNode
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.extension_points import points_of
from stowplan.framework.per_node import per_node
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod, a_profile_of, a_state
from stowplan.testing.plugin_questions import filtered, scored

U, UU = "Unschedulable", "UnschedulableAndUnresolvable"


@per_node
class OnSsd:
    def fits(self, pod: Pod, node: OneNode) -> str | None:
        return None if node.labels.get("disk") == "ssd" else "node(s) had no ssd"

    def rate(self, pod: Pod, node: OneNode) -> int:
        return node.free("cpu") * 100 // node.allocatable("cpu")


def saying(answer: Any) -> Any:
    """A policy whose `fits` answers this for a, and nothing for the others."""

    @per_node
    class Saying:
        def fits(self, pod: Pod, node: OneNode) -> Any:
            return answer if node.name == "a" else None

    return Saying()


def test_fits_becomes_filter_and_rate_becomes_score() -> None:
    nodes = [a_node("a", labels={"disk": "ssd"}), a_node("b", labels={"disk": "ssd"}), a_node("c")]
    state = a_state(nodes=nodes, pods=[a_pod("there", node="a", cpu=1)])
    assert points_of(OnSsd) == {"filter", "score"}
    assert filtered(OnSsd(), a_pod(), state) == {"a": None, "b": None, "c": (U, ("node(s) had no ssd",))}
    assert scored(OnSsd(), a_pod(), state) == {"a": 75, "b": 100, "c": 100}
    assert schedule_one(a_pod(), state, a_profile_of(OnSsd())).node == "b"


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        pytest.param(None, None, id="nothing against it"),
        pytest.param([], None, id="no reasons"),
        pytest.param("no", (U, ("no",)), id="a reason"),
        pytest.param(("no", False), (UU, ("no",)), id="a reason that evictions do not help against"),
        pytest.param(["z", "a"], (U, ("z", "a")), id="reasons in their order"),
        pytest.param(["z", ("a", False)], (UU, ("z", "a")), id="reasons of both kinds"),
        pytest.param(["z", "z"], (U, ("z", "z")), id="the same twice"),
    ],
)
def test_what_fits_may_answer(answer: Any, verdict: Any) -> None:
    assert filtered(saying(answer), a_pod(), a_state(nodes=["a", "b"])) == {"a": verdict, "b": None}


def test_nodes_may_give_the_same_reasons_in_different_order() -> None:
    reasons = {"a": ["x", "y"], "b": ["y", "x"], "c": ["y"]}

    @per_node
    class Mixed:
        def fits(self, pod: Pod, node: OneNode) -> list[str]:
            return reasons[node.name]

    verdicts = filtered(Mixed(), a_pod(), a_state(nodes=["a", "b", "c"]))
    assert verdicts == {name: (U, tuple(each)) for name, each in reasons.items()}


@pytest.mark.parametrize(
    ("fits", "problem"),
    [
        pytest.param(True, "fits answered True for a; None, a reason or (reason, resolvable) was due", id="yes"),
        pytest.param(("no", "way"), "fits answered ('no', 'way') for a", id="not a pair of text and bool"),
        pytest.param(["no", 5], "fits answered 5 for a", id="a number among reasons"),
    ],
)
def test_a_wrong_answer_of_fits_is_named(fits: Any, problem: str) -> None:
    decision = schedule_one(a_pod(), a_state(nodes=["a"]), a_profile_of(saying(fits)))
    assert decision.error.startswith('plugin "Saying" failed at filter: TypeError: ')
    assert problem in decision.error


@pytest.mark.parametrize(
    ("rate", "problem"),
    [
        pytest.param(0.5, "rate answered 0.5 for a; a whole number was due", id="a fraction"),
        pytest.param(None, "rate answered None for a", id="nothing"),
        pytest.param(101, "within 0 and 100; found 101", id="too much"),
    ],
)
def test_a_wrong_answer_of_rate_is_named(rate: Any, problem: str) -> None:
    @per_node
    class Rating:
        def rate(self, pod: Pod, node: OneNode) -> Any:
            return rate

    decision = schedule_one(a_pod(), a_state(nodes=["a"]), a_profile_of(Rating()))
    assert problem in decision.error


def test_a_method_of_the_plugin_itself_is_kept() -> None:
    @per_node
    class Both:
        def fits(self, pod: Pod, node: OneNode) -> str:
            return "no"

        def filter(self, pod: Pod, nodes: Any) -> Any:
            return ()

    assert filtered(Both(), a_pod(), a_state(nodes=["a"])) == {"a": None}


def test_a_class_without_either_is_refused() -> None:
    with pytest.raises(TypeError, match="Neither has neither fits"):
        per_node(type("Neither", (), {}))
