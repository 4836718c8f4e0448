"""What is said of an invalid selector, letter for letter as Kubernetes' libraries say it."""

from __future__ import annotations

import pytest

from stowplan.objects import selector_errors
from stowplan.objects.selectors import LabelSelector, LabelSelectorRequirement

NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
PREFIX = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
EMPTY_SET = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
LONG = "x" * 64


@pytest.mark.parametrize(
    ("key", "operator", "values", "problem"),
    [
        pytest.param("a", "In", ("b",), "", id="fine"),
        pytest.param("example.com/a", "NotIn", ("", "b"), "", id="fine with a prefix and an empty value"),
        pytest.param("a", "Exists", (), "", id="fine without values"),
        pytest.param("a", "Gt", ("1",), '"Gt" is not a valid label selector operator', id="an operator of nodes"),
        pytest.param("a", "Lt", ("x",), '"Lt" is not a valid label selector operator', id="another one"),
        pytest.param("a", "in", ("1",), '"in" is not a valid label selector operator', id="in small letters"),
        pytest.param("a", "", (), '"" is not a valid label selector operator', id="no operator"),
        pytest.param("a", 'a"b\n', (), '"a\\"b\\n" is not a valid label selector operator', id="escapes"),
        pytest.param("a", "In", (), EMPTY_SET, id="In without values"),
        pytest.param("a", "NotIn", (), EMPTY_SET, id="NotIn without values"),
        pytest.param(
            "a", "Exists", ("b", "c"),
            'values: Invalid value: ["b","c"]: values set must be empty for exists and does not exist',
            id="Exists with values",
        ),
        pytest.param(
            "env", "DoesNotExist", ("<b>",),
            '[values: Invalid value: ["\\u003cb\\u003e"]: values set must be empty for exists and does not exist, '
            f'values[0][env]: Invalid value: "<b>": {VALUE}]',
            id="DoesNotExist with an invalid value",
        ),
        pytest.param(
            "bad key!", "Exists", (), f'key: Invalid value: "bad key!": name part {NAME}', id="an invalid key",
        ),
        pytest.param("", "Exists", (), f'key: Invalid value: "": name part must be non-empty; name part {NAME}',
                     id="no key"),
        pytest.param("/a", "Exists", (), 'key: Invalid value: "/a": prefix part must be non-empty', id="no prefix"),
        pytest.param("Example/a", "Exists", (), f'key: Invalid value: "Example/a": {PREFIX}', id="a capital prefix"),
        pytest.param(
            "a/b/c", "Exists", (),
            f"key: Invalid value: \"a/b/c\": a valid label key {NAME} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
            id="two prefixes",
        ),
        pytest.param(
            LONG, "Exists", (), f'key: Invalid value: "{LONG}": name part must be no more than 63 bytes', id="long",
        ),
        pytest.param(
            f"{'x' * 254}/a", "Exists", (),
            f'key: Invalid value: "{"x" * 254}/a": prefix part must be no more than 253 bytes',
            id="a long prefix",
        ),
        pytest.param(
            "env", "In", ("two words",), f'values[0][env]: Invalid value: "two words": {VALUE}', id="an invalid value",
        ),
        pytest.param(
            "env", "NotIn", ("fine", LONG), f'values[1][env]: Invalid value: "{LONG}": must be no more than 63 bytes',
            id="a long value",
        ),
        pytest.param(
            "a b", "In", (), f'[key: Invalid value: "a b": name part {NAME}, {EMPTY_SET}]', id="two problems",
        ),
        pytest.param(
            "env", "Exists", ("-",),
            '[values: Invalid value: ["-"]: values set must be empty for exists and does not exist, '
            f'values[0][env]: Invalid value: "-": {VALUE}]',
            id="a value that is wrong in two ways",
        ),
    ],
)  # fmt: skip
def test_expressions(key: str, operator: str, values: tuple[str, ...], problem: str) -> None:
    selector = LabelSelector(match_expressions=(LabelSelectorRequirement(key, operator, values),))
    assert selector_errors.problem(selector) == problem


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        pytest.param({"a": "b", "c": ""}, "", id="fine"),
        pytest.param({"a": "b c"}, f'values[0][a]: Invalid value: "b c": {VALUE}', id="an invalid value"),
        pytest.param({"a b": "c"}, f'key: Invalid value: "a b": name part {NAME}', id="an invalid key"),
    ],
)
def test_labels_that_must_be_equal(labels: dict[str, str], problem: str) -> None:
    assert selector_errors.problem(LabelSelector(match_labels=labels)) == problem


def test_the_first_problem_is_told() -> None:
    none, unknown = LabelSelectorRequirement("a", "In", ()), LabelSelectorRequirement("a", "Like", ())
    assert selector_errors.problem(LabelSelector(match_expressions=(none, unknown))) == EMPTY_SET


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("ä €", '"ä €"', id="printable"),
        pytest.param("\x00\x7f", '"\\x00\\x7f"', id="control characters"),
        pytest.param("\u200b\U000e0001", '"\\u200b\\U000e0001"', id="characters that nobody sees"),
    ],
)
def test_texts_are_quoted_as_by_go(text: str, expected: str) -> None:
    assert selector_errors.quoted(text) == expected
