"""YAML within bounds: what is read as the API server reads it, and what is refused before it takes memory."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.bounded_yaml import YamlLimits, load, load_all
from stowplan.objects.errors import ConfigError


def bomb(levels: int, *, merge: bool = False) -> str:
    """Aliases to aliases: 10 to the power of `levels` values."""
    lines = ["a0: &a0 {k0: x, k1: x, k2: x}" if merge else "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        ten = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} " + (f"{{<<: [{ten}]}}" if merge else f"[{ten}]"))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param("# a comment", None, id="a comment"),
        pytest.param("---\n---\na: 1\n---\n", {"a": 1}, id="documents without a value do not count"),
        pytest.param("a: y\nb: Off\nc: yeS", {"a": True, "b": False, "c": "yeS"}, id="words for true and false"),
        pytest.param("[~, null, '', '~']", [None, None, "", "~"], id="null, and texts like it"),
        pytest.param("[2, 2.0, 2.5, 1e3, -0x10, 0b11, 017, 1_000]", [2, 2, 2.5, 1000, -16, 3, 15, 1000], id="numbers"),
        pytest.param("[08, .5, '2']", [8, 0.5, "2"], id="an eight is no octal digit"),
        pytest.param("[22:30, 2024-01-31, 1.2.3, ., -]", ["22:30", "2024-01-31", "1.2.3", ".", "-"], id="texts"),
        pytest.param("[18446744073709551615, 1e400]", [2**64 - 1, "1e400"], id="the edges of numbers"),
        pytest.param(f"a: {'1' * 5000}", {"a": "1" * 5000}, id="a number too long for one is a text"),
        pytest.param("{1: a, true: b, 1.5: c}", {"1": "a", "true": "b", "1.5": "c"}, id="keys become texts"),
        pytest.param("[!!str 1, !!int '2', !!bool 'no', !!binary aGk=]", ["1", 2, False, "hi"], id="tags"),
        pytest.param("a: &x [1]\nb: *x", {"a": [1], "b": [1]}, id="an alias"),
        pytest.param(
            "a: &x {k: 1, l: 1}\nb: {l: 2, <<: *x}", {"a": {"k": 1, "l": 1}, "b": {"l": 2, "k": 1}}, id="a merge key"
        ),
        pytest.param("b: {<<: [{k: 1}, {k: 2, l: 2}]}", {"b": {"k": 1, "l": 2}}, id="the first merged mapping wins"),
        pytest.param("a: '<<'\nb: &c <<\nd: *c", {"a": "<<", "b": "<<", "d": "<<"}, id="merge signs that are values"),
        pytest.param("text: |\n  a\n  b\n", {"text": "a\nb\n"}, id="a block of text"),
        pytest.param(b"\xef\xbb\xbfa: 1", {"a": 1}, id="a byte order mark"),
    ],
)
def test_reads_yaml_as_the_api_server_does(text: str | bytes, value: Any) -> None:
    assert load(text) == value


def test_an_alias_is_a_copy() -> None:
    value = load("a: &x {k: [1]}\nb: *x")
    value["a"]["k"].append(2)
    assert value["b"] == {"k": [1]}


SMALL = YamlLimits(characters=200, nodes=20, depth=4)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a" * 201, "found a text of 201 characters, expected at most 200", id="too long"),
        pytest.param("a:\n" + "- 1\n" * 20, "line 19: found more than 20 values", id="too many"),
        pytest.param("a: &a [1,2,3,4]\nb: &b [*a,*a]\nc: [*b]", "line 3: found more than 20 values", id="by aliases"),
        pytest.param("---\n[1,2,3,4,5,6,7,8,9]\n" * 2 + "--- 1\n", "line 5: found more than 20", id="in all documents"),
        pytest.param("[[[[[1]]]]]", "line 1: nested too deeply; expected at most 4 levels", id="too deep"),
        pytest.param("a: &a [[1]]\nb:\n- - *a", "line 3: nested too deeply", id="too deep by an alias"),
        pytest.param("a: &a\n  b: *a", 'line 2: the alias "a" stands inside of what it stands for', id="a circle"),
        pytest.param("a: *b", 'line 1: not YAML: found the undefined alias "b"', id="an unknown alias"),
        pytest.param("a: 1\nb: 1\na: 2", 'line 3: the key "a" appears twice', id="a key twice"),
        pytest.param("1: 1\n'1': 1", 'line 2: the key "1" appears twice', id="a number and a text as the same key"),
        pytest.param("? [1]\n: 2", "line 1: found a list as a key, expected a text", id="a list as a key"),
        pytest.param("~: 1", "line 1: found no value as a key, expected a text", id="no value as a key"),
        pytest.param("<<: 1", "line 1: found a merge key (<<) without a mapping", id="merging a number"),
        pytest.param("a: !!int x", "line 1: found 'x', expected what the tag !!int says", id="a false tag"),
        pytest.param("a: !!python/name:os.system x", "line 1: found the tag", id="a tag that is code"),
        pytest.param("a: !!set {b}", "line 1: found the tag", id="a tag of a mapping"),
        pytest.param("a: [}", "line 1: not YAML: ", id="not YAML"),
        pytest.param("a: 1\nb:\n\tc: 1", "line 3: not YAML: ", id="a tab"),
        pytest.param("a: \x01", "not YAML: ", id="a control character"),
        pytest.param(b"a: 1\nb: \xff", "line 2: not UTF-8 text: found the byte 0xff", id="not UTF-8"),
        pytest.param("a: 1\n---\nb: 1", "found 2 documents, expected one", id="two documents"),
    ],
)
def test_refuses_with_the_line(text: str | bytes, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text, SMALL)
    assert str(caught.value).startswith(problem), str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(bomb(9), id="aliases"),
        pytest.param(bomb(9, merge=True), id="merge keys"),
        pytest.param("[" * 100_000, id="brackets"),
        pytest.param("- " * 100_000, id="dashes"),
        pytest.param("{a: " * 100_000, id="braces"),
        pytest.param("? " * 100_000, id="question marks"),
        pytest.param("a: &a [*a, *a]", id="a circle"),
        pytest.param("x: [" + "1," * 1_000_000 + "]", id="a million values"),
    ],
)
def test_refuses_what_would_take_all_memory(text: str) -> None:
    with pytest.raises(ConfigError, match=r"line 1|line \d: (found more|nested|the alias)"):
        load(text)


def test_reads_the_last_of_equal_keys_if_told_so() -> None:
    assert load("a: 1\na: 2", unique_keys=False) == {"a": 2}


def test_reads_all_documents() -> None:
    assert load_all("a: 1\n---\n- 2\n---\n") == [{"a": 1}, [2], None]


def test_y_and_n_may_be_letters() -> None:
    text = "{x: 1, y: n, Y: N, yes: no}"
    assert load_all(text, letters=True) == [{"x": 1, "y": "n", "Y": "N", "true": False}]
    assert load_all("[y, n]") == [[True, False]]
