"""Operators, fields, optionals, comprehensions and errors; what an evaluation costs."""

from __future__ import annotations

import pytest

from stowplan.cel.evaluation import CelEvaluation
from stowplan.cel.values import CelError, CostError
from tests.cel.expressions import ENVIRONMENT, cost, evaluate


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("object.metadata.labels['version'] == '1.14.3'", True, id="a field and a key"),
        pytest.param("object.metadata.labels[?'gpu'].orValue('no') == 'no'", True, id="an optional key"),
        pytest.param("object.status.?version.?kubernetes.hasValue()", True, id="optional fields"),
        pytest.param("has(object.status.version)", True, id="has"),
        pytest.param("has(object.status.conditions)", False, id="has not"),
        pytest.param("'a' in object.metadata.labels || 'zone' in object.metadata.labels", True, id="in"),
        pytest.param("'x'.matches('a') ? false : size(object.metadata.labels) == 2", True, id="if and else"),
        pytest.param("false && object.nope == 1", False, id="false, and an error"),
        pytest.param("object.nope == 1 || true", True, id="an error, or true"),
        pytest.param("[1, 0].exists(x, 1 / x == 1)", True, id="one is enough, although another fails"),
        pytest.param("[1, 2, 3].map(x, x * 2).filter(x, x > 2) == [4, 6]", True, id="map and filter"),
        pytest.param("[1, 2, 3].exists_one(x, x > 2) && {'a': 1}.all(k, k == 'a')", True, id="exactly one"),
        pytest.param("optional.of(2).optMap(x, x + 1).orValue(0) == 3", True, id="map of an optional"),
        pytest.param("int('12') == 12 && double('1.5') > 1.0 && 7 / 2 == 3 && -7 % 3 == -1", True, id="numbers"),
        pytest.param("dyn(1) == 1.0 && dyn(1) != '1' && 2u > 1u", True, id="numbers of different types"),
        pytest.param("type(1) == int && type('a') != int", True, id="types"),
        pytest.param("timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-02T00:00:00Z')", True, id="timestamps"),
        pytest.param(
            "timestamp('2026-01-02T00:00:00Z') - duration('24h') == timestamp('2026-01-01T00:00:00Z')",
            True,
            id="a day before",
        ),
    ],
)
def test_language(expression: str, expected: bool) -> None:
    assert evaluate(expression) is expected


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("object.metadata.nope == 1", id="a key that is missing"),
        pytest.param("[1][5] == 1", id="an index beyond the list"),
        pytest.param("1 / 0 == 1", id="division by zero"),
        pytest.param("9223372036854775807 + 1 > 0", id="an overflow"),
        pytest.param("object.metadata.name > 1", id="values that cannot be compared"),
        pytest.param("object.metadata.labels.all(l, l.nope == 1)", id="a field of a string"),
        pytest.param("{dyn([1]): 2}.size() == 1", id="a list as a key"),
        pytest.param("{'a': 1}[?dyn([1])].hasValue()", id="a list as an optional key"),
        pytest.param("[1][dyn(double('Infinity'))] == 1", id="an index that is not finite"),
        pytest.param("dyn([[1], [2]]).sum() == 3", id="a sum of lists"),
        pytest.param("dyn([1]).lastIndexOf(dyn(1), dyn('a')) == 1", id="too many arguments"),
        pytest.param("dyn(1u).lowerAscii() == ''", id="a number as a string"),
        pytest.param("semver('1.2.3-' + '9'.replace('9', '99999999999999999999999')).major() == 1", id="a long number"),
    ],
)
def test_errors(expression: str) -> None:
    with pytest.raises(CelError):
        evaluate(expression)


# -- cost


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("object.metadata.labels['version'] == '1.14.3'", 5, id="fields and an equality"),
        pytest.param("semver(object.metadata.labels['version']).isLessThan(semver('1.30.0'))", 7, id="functions"),
        pytest.param("[1, 2].all(x, x > 0)", 10 + 2 * (2 + 1 + 2) + 1, id="a list and a loop"),
    ],
)
def test_cost(expression: str, expected: int) -> None:
    assert cost(expression) == expected


SIXTY = str(list(range(60)))
ENDLESS = f"{SIXTY}.all(a, {SIXTY}.all(b, {SIXTY}.all(c, {SIXTY}.all(d, a + b + c + d >= 0))))"


def test_an_evaluation_ends_when_it_exceeds_its_limit() -> None:
    evaluation = CelEvaluation(10_000)
    with pytest.raises(CostError):
        ENVIRONMENT.compile(ENDLESS).run({}, evaluation)
    assert 10_000 < evaluation.cost < 10_100


def test_no_operator_hides_that_an_evaluation_exceeds_its_limit() -> None:
    with pytest.raises(CostError):
        ENVIRONMENT.compile(f"{ENDLESS} || true").run({}, CelEvaluation(1000))
