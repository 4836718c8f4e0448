"""Label selectors and node-selector terms: the types of the API, and compiled ones that match labels.

A compiled `Selector` is a tuple of `LabelRequirement`s in a canonical order, so that equal selectors are equal keys.
None is a selector that matches nothing, the empty tuple one that matches everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from stowplan.objects.meta import CompleteApiValue


class LabelSelectorRequirement(CompleteApiValue, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(CompleteApiValue, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorTerm(CompleteApiValue, frozen=True):
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    match_fields: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelector(CompleteApiValue, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class LabelRequirement(msgspec.Struct, frozen=True, order=True):
    """One condition on one label: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.key)
        match self.operator:
            case "In":
                return found is not None and found in self.values
            case "NotIn":
                return found is None or found not in self.values
            case "Exists":
                return found is not None
            case "DoesNotExist":
                return found is None
            case _:
                return found is not None and self.compares(found)

    def compares(self, found: str) -> bool:
        """Compare by Gt or Lt: both sides are 64-bit integers; other labels do not match."""
        number, bound = integer(found), integer(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


Selector: TypeAlias = tuple[LabelRequirement, ...]
EVERYTHING: Selector = ()

_INTEGER = re.compile(r"[+-]?[0-9]+")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")


def integer(text: str) -> int | None:
    """Return an integer if Go's ParseInt(text, 10, 64) accepts the text; otherwise None."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def matches(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and all(requirement.matches(labels) for requirement in selector)


def canonical(requirements: Iterable[LabelRequirement]) -> Selector:
    """Return the conditions in a fixed order, without duplicates."""
    return tuple(sorted(set(requirements)))


def from_labels(labels: Mapping[str, str]) -> Selector:
    """Return a selector for equal labels, as in a Service or a nodeSelector."""
    return canonical(LabelRequirement(key, "In", (value,)) for key, value in labels.items())


def compile_selector(selector: LabelSelector | None) -> Selector | None:
    """Compile a selector. An absent or invalid one matches nothing, an empty one everything."""
    if selector is None:
        return None
    parsed = [compile_requirement(expression) for expression in selector.match_expressions]
    requirements = [requirement for requirement in parsed if requirement is not None]
    if len(requirements) != len(parsed) or any(requirement.operator in ("Gt", "Lt") for requirement in requirements):
        return None
    return canonical([*from_labels(selector.match_labels), *requirements])


def compile_requirement(expression: LabelSelectorRequirement) -> LabelRequirement | None:
    """Compile a requirement; None if it is invalid."""
    operator, values = expression.operator, expression.values
    if operator in ("In", "NotIn"):
        fine = bool(values)
    elif operator in _WITHOUT_VALUES:
        fine = not values
    else:
        fine = operator in ("Gt", "Lt") and len(values) == 1 and integer(values[0]) is not None
    if not fine or not is_label_key(expression.key) or not all(_LABEL_VALUE.fullmatch(text) for text in values):
        return None
    return LabelRequirement(expression.key, operator, tuple(sorted(set(values))))


def is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        return False
    return _LABEL_NAME.fullmatch(name) is not None


class NodeTerm(msgspec.Struct, frozen=True):
    """A compiled node-selector term: conditions on labels and on the node's name; all must be met."""

    labels: Selector
    named: tuple[LabelRequirement, ...]

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        fields = {"metadata.name": name}
        return matches(self.labels, labels) and all(field_matches(field, fields) for field in self.named)


def field_matches(field: LabelRequirement, fields: Mapping[str, str]) -> bool:
    """True if a condition on a field is met. A missing field is the empty string."""
    return (fields.get(field.key, "") == field.values[0]) == (field.operator == "In")


def compile_term(term: NodeSelectorTerm) -> NodeTerm | None:
    """Compile a term; None for a term that matches no node: an empty or an invalid one."""
    if not term.match_expressions and not term.match_fields:
        return None
    labels = [compile_requirement(expression) for expression in term.match_expressions]
    fields = [compile_field(expression) for expression in term.match_fields]
    if None in labels or None in fields:
        return None
    return NodeTerm(canonical(part for part in labels if part), tuple(part for part in fields if part))


def compile_field(expression: LabelSelectorRequirement) -> LabelRequirement | None:
    if expression.operator not in ("In", "NotIn") or len(expression.values) != 1:
        return None
    return LabelRequirement(expression.key, expression.operator, expression.values)


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Return the terms that can match a node; one of them must match."""
    terms = (compile_term(term) for term in selector.node_selector_terms)
    return tuple(term for term in terms if term is not None)
