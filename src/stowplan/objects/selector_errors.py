"""Why a label selector is invalid, in the words of Kubernetes' libraries, so that users can search for them.

    values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty
    "Gt" is not a valid label selector operator

Labels that must be equal are checked first, then expressions in order. The first condition that is wrong is told, with
everything that is wrong in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from stowplan.objects.selectors import LabelSelector, LabelSelectorRequirement

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LONGEST_NAME, _LONGEST_PREFIX = 63, 253  # bytes
_CHARACTERS = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_NAMES = f"must {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
_VALUES = (
    f"a valid label must be an empty string or {_CHARACTERS} (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '({_NAME})?')"
)
_PREFIXES = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"} | {
    '"': '\\"',
    "\\": "\\\\",
}
_HTML = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"})


def problem(selector: LabelSelector) -> str:
    """Return why a selector is invalid; "" if it is valid."""
    for key, value in selector.match_labels.items():
        if found := requirement_problem(LabelSelectorRequirement(key, "Equals", (value,))):
            return found
    for each in selector.match_expressions:
        if each.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return f"{quoted(each.operator)} is not a valid label selector operator"
        if found := requirement_problem(each):
            return found
    return ""


def requirement_problem(requirement: LabelSelectorRequirement) -> str:
    """Return what is wrong with one condition on labels; "" if nothing is."""
    found = list(dict.fromkeys(_problems(requirement)))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""


def _problems(requirement: LabelSelectorRequirement) -> Iterator[str]:
    key, values = requirement.key, requirement.values
    if wrong := "; ".join(_key_problems(key)):
        yield f"key: Invalid value: {quoted(key)}: {wrong}"
    if requirement.operator in ("In", "NotIn") and not values:
        yield "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    elif requirement.operator in ("Exists", "DoesNotExist") and values:
        yield f"values: Invalid value: {_listed(values)}: values set must be empty for exists and does not exist"
    for index, value in enumerate(values):
        if wrong := "; ".join(_value_problems(value)):
            yield f"values[{index}][{key}]: Invalid value: {quoted(value)}: {wrong}"


def _key_problems(key: str) -> Iterator[str]:
    if key.count("/") > 1:
        yield f"a valid label key {_NAMES} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    prefix, slash, name = key.rpartition("/")
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash:
        if len(prefix.encode()) > _LONGEST_PREFIX:
            yield f"prefix part must be no more than {_LONGEST_PREFIX} bytes"
        if not re.fullmatch(_SUBDOMAIN, prefix):
            yield f"prefix part {_PREFIXES}"
    if not name:
        yield "name part must be non-empty"
    elif len(name.encode()) > _LONGEST_NAME:
        yield f"name part must be no more than {_LONGEST_NAME} bytes"
    if not re.fullmatch(_NAME, name):
        yield f"name part {_NAMES}"


def _value_problems(value: str) -> Iterator[str]:
    if len(value.encode()) > _LONGEST_NAME:
        yield f"must be no more than {_LONGEST_NAME} bytes"
    if not re.fullmatch(f"({_NAME})?", value):
        yield _VALUES


def quoted(text: str) -> str:
    """Return a text in quotation marks, with the escapes of Go's %q."""
    return '"' + "".join(_ESCAPES.get(each) or (each if each.isprintable() else _escaped(each)) for each in text) + '"'


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x80 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _listed(values: tuple[str, ...]) -> str:
    """Return a list as Go's JSON has it."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).translate(_HTML)
