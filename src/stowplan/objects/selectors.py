"""Label selectors and node-selector terms: the API's forms, and the compiled ones that match.

A compiled `Selector` is a tuple of `Requirement`s in a canonical order, so equal questions are equal keys.
`None` stands for a selector that matches nothing, the empty tuple for one that matches everything.
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
        """Gt and Lt read both sides as 64-bit integers; a label that is not one never matches."""
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
    """What Go's ParseInt(text, 10, 64) accepts."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def matches(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and all(requirement.matches(labels) for requirement in selector)


def canonical(requirements: Iterable[LabelRequirement]) -> Selector:
    """The same conditions in one order, each once."""
    return tuple(sorted(set(requirements)))


def from_labels(labels: Mapping[str, str]) -> Selector:
    """Every label equal, as a Service or a nodeSelector asks."""
    return canonical(LabelRequirement(key, "In", (value,)) for key, value in labels.items())


def compile_selector(selector: LabelSelector | None) -> Selector | None:
    """An absent selector matches nothing, an empty one everything; one that cannot be parsed matches nothing."""
    if selector is None:
        return None
    parsed = [compile_requirement(expression) for expression in selector.match_expressions]
    requirements = [requirement for requirement in parsed if requirement is not None]
    if len(requirements) != len(parsed) or any(requirement.operator in ("Gt", "Lt") for requirement in requirements):
        return None
    return canonical([*from_labels(selector.match_labels), *requirements])


def compile_requirement(expression: LabelSelectorRequirement) -> LabelRequirement | None:
    """None where the API machinery would refuse the requirement."""
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


def problem(selector: LabelSelector) -> str:
    """Why the API machinery would refuse the selector; "" if it would not."""
    given = [LabelSelectorRequirement(key, "In", (value,)) for key, value in selector.match_labels.items()]
    for each in (*given, *selector.match_expressions):
        if each.operator not in ("In", "NotIn", *_WITHOUT_VALUES):
            return f'"{each.operator}" is not a valid label selector operator'
        if compile_requirement(each) is None:
            return f"{each.key!r} {each.operator} {list(each.values)} is no valid condition"
    return ""


def is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        return False
    return _LABEL_NAME.fullmatch(name) is not None


class NodeTerm(msgspec.Struct, frozen=True):
    """A node-selector term that parsed: labels AND the node's name, either part possibly empty."""

    labels: Selector
    named: tuple[LabelRequirement, ...]

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        fields = {"metadata.name": name}
        return matches(self.labels, labels) and all(field_matches(field, fields) for field in self.named)


def field_matches(field: LabelRequirement, fields: Mapping[str, str]) -> bool:
    """Field selectors read a missing field as the empty string."""
    return (fields.get(field.key, "") == field.values[0]) == (field.operator == "In")


def compile_term(term: NodeSelectorTerm) -> NodeTerm | None:
    """None for a term that matches no node: an empty one, or one that cannot be parsed."""
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
    """The terms that can match a node; they are alternatives."""
    terms = (compile_term(term) for term in selector.node_selector_terms)
    return tuple(term for term in terms if term is not None)
