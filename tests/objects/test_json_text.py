"""Documents that a decoder refuses and Go reads: what is left of them, and that no text takes long."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.objects import json_text

DEEP = 5_000


def nested(levels: int, opening: str = '{"a":', closing: str = "}") -> str:
    return opening * levels + "1" + closing * levels


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(f'{{"deep": {nested(DEEP)}, "name": "x"}}', {"name": "x"}, id="objects"),
        pytest.param(f'{{"deep": {nested(DEEP, "[", "]")}, "name": "x"}}', {"name": "x"}, id="lists"),
        pytest.param(f'[{nested(DEEP)}, "x", {nested(DEEP)}]', ["x"], id="two of them"),
    ],
)
def test_what_is_nested_too_deep_is_left_out(document: str, expected: object) -> None:
    with pytest.raises(RecursionError):
        json.loads(document)
    found = json.loads(json_text.readable(document.encode()))
    assert _without_deep(found) == expected


def _without_deep(found: object) -> object:
    if isinstance(found, dict):
        return {key: value for key, value in found.items() if key != "deep"}
    assert isinstance(found, list)
    return [each for each in found if isinstance(each, str)]


def test_as_many_levels_as_allowed_stay() -> None:
    document = nested(json_text.MOST_LEVELS).encode()
    assert json_text.readable(document) == document
    assert json_text.readable(nested(json_text.MOST_LEVELS + 1).encode()).count(b"null") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(rb'"\ud800"', "\ufffd", id="the first half of a character"),
        pytest.param(rb'"\uDFFFx"', "\ufffdx", id="the second half"),
        pytest.param(rb'"\ud83d\ude00"', "\U0001f600", id="both halves"),
        pytest.param(rb'"\ud800\ud83d\ude00"', "\ufffd\U0001f600", id="a half before both"),
        pytest.param(rb'"\ud83d\ude00\ude00"', "\U0001f600\ufffd", id="a half after both"),
        pytest.param(rb'"\\ud800"', r"\ud800", id="a backslash, and letters"),
        pytest.param(rb'"\\\ud800"', "\\\ufffd", id="a backslash, and a half"),
        pytest.param(b'"\xff\xc3\xa9"', "\ufffdé", id="a byte that is no UTF-8"),
        pytest.param(rb'"{[\"}"', '{["}', id="brackets and quotes in a text"),
    ],
)
def test_texts_are_read_as_go_reads_them(text: bytes, expected: str) -> None:
    assert json.loads(json_text.readable(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'{"a": "', id="a text without an end"),
        pytest.param(b'{"a": "\\', id="an escape without an end"),
        pytest.param(b"}}}", id="nothing but ends"),
        pytest.param(b"[" * 100_000, id="nothing but beginnings"),
        pytest.param(b'"' * 100_001, id="nothing but quotes"),
        pytest.param(b'"' + b"\\" * 100_001, id="nothing but backslashes"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_no_json_does_not_become_json(text: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        json.loads(json_text.readable(text))


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_an_ordinary_document_stays_as_it_is(value: object) -> None:
    document = json.dumps(value).encode()
    assert json.loads(json_text.readable(document)) == value or "\\ud" in json.dumps(value)
