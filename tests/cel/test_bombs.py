"""Small expressions that would make large values, or read them many times: each ends by its cost, without memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from stowplan.cel import functions, library, sizes
from stowplan.cel.declarations import DECLARATIONS
from stowplan.cel.environment import Environment
from stowplan.cel.evaluation import CelEvaluation
from stowplan.cel.syntax import CelSyntaxError
from stowplan.cel.values import CelError, CostError

MB = 1 << 20
MOST = 6 * MB  # of memory, while an expression of the table runs
ENVIRONMENT = Environment({"object": "map<string, dyn>"})
OBJECT = {
    "long": "a" * 250_000,
    "wide": "é" * 100_000,
    "many": ["a" * 50] * 5000,
    "map": {f"k{n}": n for n in range(900)},
}
THOUSAND = f"[{','.join(['1'] * 1000)}]"
LONG, LETTERS = "object.long", "object.long.split('')"
TREE = "[1]" + "".join(f".map(v{n}, [{','.join([f'v{n}'] * 30)}])" for n in range(8))  # 30 to the 8th leaves


def doubled(times: int, start: str = "'aaaaaaaa'") -> str:
    return f"[{start}]" + "".join(f".map(v{n}, v{n} + v{n} + v{n} + v{n})" for n in range(times))


def run(expression: str, limit: int = 1_000_000) -> Any:
    return ENVIRONMENT.compile(expression).run({"object": OBJECT}, CelEvaluation(limit))


BOMBS = [
    pytest.param(f"['{'a' * 4000}'.replace('a', '{'a' * 1000}')].map(s, s.replace('a', s))", id="replace"),
    pytest.param(f"{LONG}.replace('', {LONG})", id="replace between characters"),
    pytest.param(f"{LONG}.replace('a', {LONG}, 100)", id="replace a hundred times"),
    pytest.param(f"{LETTERS}.join({LONG})", id="join"),
    pytest.param(f"[{','.join([LONG] * 20)}].join()", id="join without a separator"),
    pytest.param(f"{LONG}.split('')", id="split into characters"),
    pytest.param("object.wide.split('')", id="split into characters that are not ASCII"),
    pytest.param(f"{LONG}.split('a')", id="split into nothing"),
    pytest.param(doubled(12), id="strings that double"),
    pytest.param(doubled(12, "b'aaaaaaaa'"), id="bytes that double"),
    pytest.param(doubled(12, THOUSAND), id="lists that double"),
    pytest.param(f"{THOUSAND}.map(x, {THOUSAND}.map(y, 'x' + {LONG}))", id="a loop of long strings"),
    pytest.param(f"{THOUSAND}.map(x, {THOUSAND}.map(y, [x, x, x, x, x, x, x, x, x, x]))", id="a loop of lists"),
    pytest.param(f"{THOUSAND}.map(x, {THOUSAND}.map(y, {{1: x, 2: x, 3: x, 4: x, 5: x}}))", id="a loop of maps"),
    pytest.param(f"{THOUSAND}.map(x, object.map.map(k, k))", id="a loop over the keys of a map"),
    pytest.param(f"'%s'.format([{TREE}])", id="format of a tree"),
    pytest.param("'%.900000000f'.format([1.0])", id="format with many digits"),
    pytest.param(f"{THOUSAND}.map(x, '%s%s%s'.format([{LONG}, {LONG}, {LONG}]))", id="format in a loop"),
    pytest.param(f"{TREE} == {TREE}", id="equality of trees"),
    pytest.param(f"{TREE} in [{TREE}, {TREE}]", id="a tree in a list"),
    pytest.param(f"[{TREE}].indexOf({TREE})", id="the index of a tree"),
    pytest.param(f"[{TREE}].lastIndexOf({TREE})", id="the last index of a tree"),
    pytest.param(f"dyn({TREE}).join()", id="join of a tree"),
    pytest.param(f"dyn({TREE}).lowerAscii()", id="a tree to the library"),
    pytest.param(f"string(dyn({TREE}))", id="a tree as a string"),
    pytest.param(f"{{}}[dyn({TREE})]", id="a tree as a key, and in the error's message"),
    pytest.param(f"{{dyn({TREE}): 1}}", id="a tree as the key of a map"),
    pytest.param(f"{THOUSAND}.map(x, {LONG}.upperAscii())", id="upperAscii in a loop"),
    pytest.param(f"{THOUSAND}.map(x, {LONG}.reverse())", id="reverse in a loop"),
    pytest.param(f"{THOUSAND}.map(x, {LONG}.substring(1))", id="substring in a loop"),
    pytest.param(f"{THOUSAND}.map(x, {LONG}.trim())", id="trim in a loop"),
    pytest.param(f"{THOUSAND}.map(x, strings.quote({LONG}))", id="quote in a loop"),
    pytest.param(f"{THOUSAND}.map(x, bytes({LONG}))", id="bytes in a loop"),
    pytest.param(f"{THOUSAND}.map(x, string(bytes({LONG})))", id="strings of bytes in a loop"),
    pytest.param(f"{THOUSAND}.all(x, int({LONG}) != 0 || true)", id="a number that is long, in a loop"),
    pytest.param(f"{THOUSAND}.map(x, {LONG}.find('a+'))", id="find in a loop"),
    pytest.param(f"{LONG}.findAll('a')", id="find all"),
    pytest.param(f"{LONG}.findAll('')", id="find nothing everywhere"),
    pytest.param(f"{THOUSAND}.all(x, {LONG}.matches('(a+)+$b') || true)", id="a pattern of repetitions"),
    pytest.param(f"{THOUSAND}.all(x, ''.matches('\\\\pL{{300}}') || true)", id="a pattern that is a large program"),
    pytest.param(f"{LONG}.matches('(a?){{400}}a{{400}}')", id="a large program and a long text"),
    pytest.param(
        f"{THOUSAND}.all(x, {THOUSAND}.all(y, format.byte().validate({LONG}).hasValue() || true))", id="a format"
    ),
    pytest.param(f"{THOUSAND}.all(x, {THOUSAND}.all(y, [{LONG}, {LONG}].isSorted()))", id="long strings in order"),
    pytest.param(f"{THOUSAND}.all(x, {THOUSAND}.all(y, [{LONG}, {LONG}].max() != ''))", id="the longest string"),
    pytest.param(f"{THOUSAND}.all(x, {LONG}.contains({LONG}))", id="contains"),
    pytest.param(f"{THOUSAND}.all(x, {LONG}.indexOf({LONG}) == 0)", id="the index of a string"),
    pytest.param(
        f"{THOUSAND}.map(x, url('http://a/?' + {LONG}.substring(0, 9000).replace('a', 'b&')).getQuery())",
        id="the query of a URL",
    ),
]  # fmt: skip


@pytest.mark.parametrize("expression", BOMBS)
def test_a_bomb_ends_by_its_cost_and_takes_no_memory(expression: str) -> None:
    run("'a'.matches('a') && 'a'.lowerAscii() == 'a'")  # loads the libraries
    program, evaluation = ENVIRONMENT.compile(expression), CelEvaluation(1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises((CostError, CelError)) as found:
            program.run({"object": OBJECT}, evaluation)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(str(found.value)) < 300
    assert peak < MOST, f"{peak / MB:.0f} MB"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("(" * 8000 + "true" + ")" * 8000, id="parentheses"),
        pytest.param("[" * 8000 + "]" * 8000, id="lists"),
        pytest.param("{1:" * 4000 + "1" + "}" * 4000, id="maps"),
        pytest.param("+".join("1" * 8000), id="sums"),
        pytest.param("object" + ".a" * 8000, id="fields"),
        pytest.param("object" + "[0]" * 5000, id="indexes"),
        pytest.param("true?1:" * 2000 + "1", id="conditions"),
        pytest.param("".join(f"[1].all(x{n}, " for n in range(900)) + "true" + ")" * 900, id="loops"),
        pytest.param("optional.of(1)" + ".optMap(x, x)" * 100, id="macros that copy"),
        pytest.param("optional.of(1)" + ".optFlatMap(x, optional.of(x))" * 20, id="macros that copy, flat"),
        pytest.param("optional.of(1)" + ". optMap (x, x)" * 20, id="macros that copy, with spaces"),
        pytest.param("'" + "a" * 20_000 + "'", id="a long text"),
    ],
)
def test_an_expression_with_too_many_levels_is_refused(expression: str) -> None:
    with pytest.raises(CelSyntaxError) as found:
        ENVIRONMENT.compile(expression)
    assert len(str(found.value)) < 5000


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("!" * 8000 + "true", True, id="an even number of nots"),
        pytest.param("-" * 8000 + "1", 1, id="an even number of minuses"),
        pytest.param("||".join(["object.nope"] * 1200) + "||true", True, id="a chain of ors"),
        pytest.param(f"{LONG}.replace('a', 'bb').size()", 500_000, id="a long replacement"),
        pytest.param(f"{LONG}.split('b').size()", 1, id="a long text that is not split"),
        pytest.param("object.many.join(',').size()", 5000 * 51 - 1, id="many strings joined"),
        pytest.param("object.many.all(s, s.matches('^a+$'))", True, id="many strings that match"),
        pytest.param(f"{LONG}.matches('b')", False, id="a long text that does not match"),
        pytest.param("object == object && object in [object]", True, id="the object itself"),
        pytest.param("object.map.map(k, object.map[k]).size()", 900, id="the values of a map"),
    ],
)
def test_large_inputs_are_no_bombs(expression: str, expected: Any) -> None:
    assert run(expression) == expected


SMALL = """
    size startsWith endsWith contains type dyn value or orValue hasValue sum url isURL getScheme getHost getHostname
    getPort quantity isQuantity sign isInteger asInteger asApproximateFloat add sub isGreaterThan isLessThan compareTo
    semver isSemver major minor patch ip isIP ip.isCanonical family isUnspecified isLoopback isLinkLocalMulticast
    isLinkLocalUnicast isGlobalUnicast cidr isCIDR containsIP containsCIDR masked prefixLength string
"""  # the result is a number, a part of an argument, or made of a text that must be short
BY_LIBRARY = "charAt lowerAscii upperAscii trim reverse strings.quote format substring"  # counted by their arguments


def test_it_is_known_of_every_function_what_its_result_takes() -> None:
    """A function that is added here must be looked at: is its result small, or what bounds it?"""
    operators = {name for name in functions.FUNCTIONS if name.startswith(("_", "!", "-", "optional.", "format."))}
    known = operators | set(SMALL.split()) | functions.METERED.keys() | functions.SIZES.keys()
    assert functions.FUNCTIONS.keys() <= known
    assert DECLARATIONS.keys() - known == set(BY_LIBRARY.split())
    assert library._SIZES.keys() == {"format"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("abc", 3, id="ASCII"),
        pytest.param("é", 4, id="other characters"),
        pytest.param([1, 2], 16, id="numbers in a list"),
        pytest.param([["ab"], ["ab"]], 16 + 16 + 4, id="lists in a list"),
        pytest.param({"a": "bcd"}, 100 + 1 + 3, id="a map"),
        pytest.param(7, 0, id="a number"),
    ],
)
def test_what_a_value_takes(value: Any, expected: int) -> None:
    assert sizes.whole(value) == expected


def test_a_value_with_too_many_levels_is_an_error() -> None:
    value: list[Any] = []
    for _ in range(1000):
        value = [value]
    with pytest.raises(CelError, match="levels"):
        sizes.whole(value)
