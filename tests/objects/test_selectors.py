"""Label selectors and node-selector terms: every operator, and invalid ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.objects import selectors
from stowplan.objects.selectors import LabelRequirement, LabelSelector, NodeSelector

LABELS = {"app": "x", "rank": "7", "empty": ""}


def selector(**parts: Any) -> LabelSelector:
    return msgspec.convert(parts, LabelSelector)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("condition", "matches"),
    [
        pytest.param(("app", "In", "x", "y"), True, id="In: one of them"),
        pytest.param(("app", "In", "y"), False, id="In: another"),
        pytest.param(("missing", "In", ""), False, id="In: a missing label is not the empty one"),
        pytest.param(("empty", "In", ""), True, id="In: an empty value"),
        pytest.param(("app", "NotIn", "y"), True, id="NotIn: another"),
        pytest.param(("app", "NotIn", "x"), False, id="NotIn: one of them"),
        pytest.param(("missing", "NotIn", "x"), True, id="NotIn: a missing label is none of them"),
        pytest.param(("empty", "Exists"), True, id="Exists: even empty"),
        pytest.param(("missing", "Exists"), False, id="Exists: missing"),
        pytest.param(("missing", "DoesNotExist"), True, id="DoesNotExist: missing"),
        pytest.param(("app", "DoesNotExist"), False, id="DoesNotExist: there"),
        pytest.param(("rank", "Gt", "6"), True, id="Gt: more"),
        pytest.param(("rank", "Gt", "7"), False, id="Gt: equal"),
        pytest.param(("rank", "Lt", "10"), True, id="Lt: numbers, not text"),
        pytest.param(("rank", "Lt", "-1"), False, id="Lt: less than that"),
        pytest.param(("app", "Gt", "1"), False, id="Gt: a label that is no number"),
        pytest.param(("missing", "Lt", "1"), False, id="Lt: a missing label"),
    ],
)
def test_conditions(condition: tuple[str, ...], matches: bool) -> None:
    key, operator, *values = condition
    assert LabelRequirement(key, operator, tuple(values)).matches(LABELS) == matches


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("7", 7, id="digits"),
        pytest.param("-7", -7, id="a minus"),
        pytest.param("+7", 7, id="a plus"),
        pytest.param("9223372036854775807", 2**63 - 1, id="the largest"),
        pytest.param("9223372036854775808", None, id="one more"),
        pytest.param("-9223372036854775809", None, id="one less than the least"),
        pytest.param("7.0", None, id="a fraction"),
        pytest.param("1_000", None, id="an underscore"),
        pytest.param("٣", None, id="digits of other scripts"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_numbers_are_those_that_go_parses(text: str, number: int | None) -> None:
    assert selectors.integer(text) == number


@pytest.mark.parametrize(
    ("made", "matches"),
    [
        pytest.param(None, False, id="an absent selector matches nothing"),
        pytest.param(selector(), True, id="an empty one matches everything"),
        pytest.param(selector(matchLabels={"app": "x"}), True, id="equal labels"),
        pytest.param(selector(matchLabels={"app": "x", "rank": "8"}), False, id="one of two is not"),
        pytest.param(
            selector(matchExpressions=[expression("rank", "Exists")], matchLabels={"app": "x"}), True, id="both kinds"
        ),
        pytest.param(selector(matchExpressions=[expression("app", "In")]), False, id="In without values"),
        pytest.param(selector(matchExpressions=[expression("none", "DoesNotExist", "x")]), False, id="values too many"),
        pytest.param(selector(matchExpressions=[expression("none", "IsNot", "x")]), False, id="an unknown operator"),
        pytest.param(selector(matchExpressions=[expression("rank", "Gt", "1")]), False, id="Gt is for nodes only"),
        pytest.param(selector(matchExpressions=[expression("not a key", "DoesNotExist")]), False, id="a broken key"),
        pytest.param(
            selector(matchExpressions=[expression("app", "NotIn", "not a value")]), False, id="a broken value"
        ),
    ],
)
def test_label_selectors(made: LabelSelector | None, matches: bool) -> None:
    assert selectors.matches(selectors.compile_selector(made), LABELS) == matches


def test_equal_selectors_are_equal_keys() -> None:
    one = selector(matchLabels={"a": "1", "b": "2"}, matchExpressions=[expression("c", "In", "y", "x", "y")])
    other = selector(
        matchExpressions=[expression("c", "In", "x", "y"), expression("b", "In", "2"), expression("a", "In", "1")]
    )
    assert selectors.compile_selector(one) == selectors.compile_selector(other)


@pytest.mark.parametrize(
    ("key", "fine"),
    [
        pytest.param("app", True, id="a name"),
        pytest.param("example.com/app", True, id="with a prefix"),
        pytest.param("App_1.x-Y", True, id="all that a name may have"),
        pytest.param("a" * 63, True, id="63 letters"),
        pytest.param("a" * 64, False, id="64 letters"),
        pytest.param("", False, id="nothing"),
        pytest.param("-app", False, id="a dash at the start"),
        pytest.param("/app", False, id="an empty prefix"),
        pytest.param("Example.com/app", False, id="a prefix with capitals"),
        pytest.param("a/b/c", False, id="two slashes"),
        pytest.param("example.com/", False, id="a prefix alone"),
    ],
)
def test_label_keys(key: str, fine: bool) -> None:
    assert selectors.is_label_key(key) == fine


# -- node selectors


def labels(*conditions: tuple[str, ...]) -> dict[str, Any]:
    return {"matchExpressions": [expression(*each) for each in conditions]}


def fields(*conditions: tuple[str, ...]) -> dict[str, Any]:
    return {"matchFields": [expression(*each) for each in conditions]}


IS_X, IS_Y, NAME = ("app", "In", "x"), ("app", "In", "y"), "metadata.name"


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        pytest.param([], False, id="no terms"),
        pytest.param([{}], False, id="an empty term"),
        pytest.param([labels(IS_X)], True, id="a label"),
        pytest.param([labels(("rank", "Gt", "5"), ("rank", "Lt", "9"))], True, id="all conditions of a term"),
        pytest.param([labels(IS_X, IS_Y)], False, id="one condition that is not met"),
        pytest.param([labels(IS_Y), labels(IS_X)], True, id="one of the terms"),
        pytest.param([labels(("app", "Never")), labels(IS_X)], True, id="a term that cannot be parsed is passed over"),
        pytest.param([labels(("rank", "Gt", "x"))], False, id="Gt of no number"),
        pytest.param([labels(("rank", "Gt", "1", "2"))], False, id="Gt of two numbers"),
        pytest.param([fields((NAME, "In", "node-1"))], True, id="its name"),
        pytest.param([fields((NAME, "NotIn", "node-1"))], False, id="not its name"),
        pytest.param([fields((NAME, "In", "node-1", "node-2"))], False, id="two names"),
        pytest.param([fields((NAME, "Exists"))], False, id="a field that must exist"),
        pytest.param([fields(("metadata.uid", "NotIn", "u"))], True, id="another field reads as empty"),
        pytest.param([labels(IS_Y) | fields((NAME, "In", "node-1"))], False, id="name and labels must both match"),
    ],
)
def test_node_selector_terms(terms: list[dict[str, Any]], matches: bool) -> None:
    compiled = selectors.compile_node_selector(msgspec.convert({"nodeSelectorTerms": terms}, NodeSelector))
    assert any(term.matches(LABELS, "node-1") for term in compiled) == matches
