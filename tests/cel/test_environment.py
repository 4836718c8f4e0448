"""What an environment declares, and how it reports errors."""

from __future__ import annotations

import pytest

from stowplan.cel import costs
from stowplan.cel.environment import Environment
from stowplan.cel.functions import Function
from stowplan.cel.syntax import CelSyntaxError
from tests.cel.expressions import ENVIRONMENT, cost, evaluate

STRING_TO_STRING = (("string", (), "string"),)
SHOUT = Environment({}, {"shout": Function(STRING_TO_STRING, str.upper, costs.by_length)})
ANSWER = Environment({}, {"answer": Function((("", ("int",), "int"),))})


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("nonsense(", "compilation failed", id="what does not parse"),
        pytest.param("other.name == 'x'", "undeclared reference to 'other.name'", id="a variable that is not declared"),
        pytest.param("object.name.matchessss('x')", "undeclared reference to 'matchessss'", id="an unknown function"),
        pytest.param("'a' + 1 == 'a1'", "no matching overload", id="types that do not go together"),
        pytest.param(
            "quantity('1').isLessThan('2')", r"'isLessThan' applied to '\(Quantity, string\)'", id="Kubernetes' types"
        ),
        pytest.param("quantity('1').sign() == 1", "undeclared reference to 'sign'", id="no method"),
        pytest.param("1" * 20_000, "too long", id="too many characters"),
    ],
)
def test_an_error_says_what_is_wrong(expression: str, problem: str) -> None:
    with pytest.raises(CelSyntaxError, match=problem):
        ENVIRONMENT.compile(expression)


def test_an_environment_may_add_a_function() -> None:
    assert evaluate("'abc'.shout()", SHOUT) == "ABC"
    assert cost("'0123456789012345'.shout()", SHOUT) == 2


def test_a_function_may_be_bound_for_each_evaluation() -> None:
    assert evaluate("answer(2)", ANSWER, answer=lambda number: number + 40) == 42
    assert evaluate("answer(2)", ANSWER, answer=lambda number: number + 1) == 3


def test_a_function_of_one_environment_is_unknown_to_another() -> None:
    with pytest.raises(CelSyntaxError, match="undeclared reference to 'shout'"):
        ENVIRONMENT.compile("'abc'.shout()")


def test_the_tree_can_be_searched() -> None:
    tree = ENVIRONMENT.compile("[1].all(x, object.size() > x)").tree
    assert {node.name for node in tree.walk() if node.kind == "ident"} >= {"object", "x"}
