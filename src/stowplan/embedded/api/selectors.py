"""Label and field selectors as they stand in a URL: "app in (web, db),!canary", "spec.nodeName=n-1,type!=Normal".

Both become a predicate over documents. A table says which fields a kind supports, as in Kubernetes; the name and the
namespace are supported by every kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, bad_request
from stowplan.objects import selectors
from stowplan.objects.selectors import LabelRequirement, LabelSelectorRequirement, Selector

_TOKEN = re.compile(r"\s*(?:(!=|==|=|!|\(|\)|,|>|<)|([^\s!=(),<>]+))")
_WORD_OPERATORS = {"in": "In", "notin": "NotIn"}
_SIGN_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}

FIELDS: dict[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
             "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver"),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source", "type",
    ),
}  # fmt: skip
# The fields of events have other names in events.k8s.io.
_EVENT_ALIASES = {"regarding": "involvedObject", "reportingController": "reportingComponent"}


@lru_cache(maxsize=1024)
def labels(text: str) -> Selector:
    """The requirements of a label selector. Raises 400 if it cannot be parsed."""
    words = [sign or word for sign, word in _TOKEN.findall(text)]
    if "".join(words) != re.sub(r"\s+", "", text):
        raise bad_request(f"unable to parse requirement: {text!r}")
    found = list(_requirements(words))
    parsed = [selectors.compile_requirement(each) for each in found]
    if None in parsed:
        bad = found[parsed.index(None)]
        raise bad_request(f"unable to parse requirement: {bad.key} {bad.operator} {list(bad.values)} is not valid")
    return selectors.canonical(each for each in parsed if each is not None)


def _requirements(words: list[str]) -> Iterator[LabelSelectorRequirement]:
    at = 0
    values: tuple[str, ...]
    while at < len(words):
        if words[at] == "!":
            key, operator, values, at = _word(words, at + 1), "DoesNotExist", (), at + 2
        else:
            key = _word(words, at)
            operator, values, at = _condition(words, at + 1)
        yield LabelSelectorRequirement(key, operator, values)
        if at < len(words):
            if words[at] != ",":
                raise _parse_error(words[at], ",")
            at += 1
            if at == len(words):
                raise _parse_error("", "identifier after ','")


def _condition(words: list[str], at: int) -> tuple[str, tuple[str, ...], int]:
    """The operator and values that follow a key, and the position after them."""
    if at >= len(words) or words[at] == ",":
        return "Exists", (), at
    sign = words[at]
    if sign in _SIGN_OPERATORS:
        if at + 1 >= len(words) or words[at + 1] == ",":
            return _SIGN_OPERATORS[sign], ("",), at + 1
        return _SIGN_OPERATORS[sign], (_word(words, at + 1),), at + 2
    if sign not in _WORD_OPERATORS:
        raise _parse_error(sign, "in, notin, =, ==, !=, gt, lt")
    if at + 1 >= len(words) or words[at + 1] != "(":
        raise _parse_error(words[at + 1] if at + 1 < len(words) else "", "'('")
    end = next((place for place in range(at + 2, len(words)) if words[place] == ")"), None)
    if end is None:
        raise _parse_error("", "',' or ')'")
    values = tuple(_word(words, place) for place in range(at + 2, end) if words[place] != ",")
    return _WORD_OPERATORS[sign], values or ("",), end + 1


def _word(words: list[str], at: int) -> str:
    if at >= len(words) or not re.match(r"[^!=(),<>]", words[at]):
        raise _parse_error(words[at] if at < len(words) else "", "identifier")
    return words[at]


def _parse_error(found: str, expected: str) -> ApiError:
    return bad_request(f"unable to parse requirement: found '{found}', expected: {expected}")


@lru_cache(maxsize=1024)
def fields(text: str, collection: str, more: tuple[str, ...] = ()) -> tuple[LabelRequirement, ...]:
    """The requirements of a field selector. Raises 400 for a field that is not supported."""
    return tuple(_field(part, collection, more) for part in text.split(",") if part.strip())


def _field(part: str, collection: str, more: tuple[str, ...]) -> LabelRequirement:
    sign = next((sign for sign in ("!=", "==", "=") if sign in part), None)
    if sign is None:
        raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
    key, _, value = part.partition(sign)
    key = key.strip()
    first, dot, rest = key.partition(".")
    key = f"{_EVENT_ALIASES.get(first, first)}{dot}{rest}" if collection == "events" else key
    if key not in ("metadata.name", "metadata.namespace", *FIELDS.get(collection, ()), *more):
        raise bad_request(f"field label not supported: {key}")
    return LabelRequirement(key, "NotIn" if sign == "!=" else "In", (value.strip(),))


def value_at(document: Document, path: str) -> str:
    """A field as text; "" if it is missing."""
    found: Any = document
    if path == "source":
        found = document.get("source", {}).get("component", "") or document.get("reportingComponent", "")
    else:
        for part in path.split("."):
            found = found.get(part) if isinstance(found, dict) else None
    if found is None or isinstance(found, dict | list):
        return _DEFAULTS.get(path, "")
    return str(found).lower() if isinstance(found, bool) else str(found)


_DEFAULTS = {
    "spec.unschedulable": "false",
    "status.replicas": "0",
    "status.successful": "0",
    "spec.hostNetwork": "false",
}


def matcher(by_label: Selector, by_field: tuple[LabelRequirement, ...]) -> Callable[[Document], bool] | None:
    """One predicate for both selectors; None if there is no selector."""
    if not by_label and not by_field:
        return None

    def matches(document: Document) -> bool:
        if by_label and not selectors.matches(by_label, document["metadata"].get("labels") or {}):
            return False
        return all((value_at(document, field.key) == field.values[0]) == (field.operator == "In") for field in by_field)

    return matches


def text_of(selector: Document) -> str:
    """The selector of an object in the syntax of a query parameter."""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [f"{key}={value}" for key, value in sorted(selector.get("matchLabels", {}).items())]
    return ",".join([*parts, *(_expression_text(each) for each in selector.get("matchExpressions", ()))])


def _expression_text(expression: Document) -> str:
    key, values = expression["key"], ",".join(expression.get("values", ()))
    match expression.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return str(key)
