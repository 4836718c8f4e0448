"""LimitRanges: their types, the names of resources, and bounds that fit together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, forbidden_field, invalid_value, required
from stowplan.embedded.validation import resource_names
from stowplan.embedded.validation.metadata import check_label_key
from stowplan.objects import quantity

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_BOUNDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


class _Order(NamedTuple):
    """A bound that must not exceed another one."""

    low: str
    high: str
    low_words: str
    high_words: str
    field: str  # the bound that the error names
    value: str  # the bound whose value the error has


_ORDERED = (
    _Order("min", "max", "min value", "max value", field="min", value="min"),
    _Order(
        "min", "defaultRequest", "min value", "default request value", field="defaultRequest", value="defaultRequest"
    ),
    _Order(
        "defaultRequest", "max", "default request value", "max value", field="defaultRequest", value="defaultRequest"
    ),
    _Order(
        "defaultRequest", "default", "default request value", "default limit value",
        field="defaultRequest", value="defaultRequest",
    ),
    _Order("min", "default", "min value", "default value", field="default", value="min"),
    _Order("default", "max", "default value", "max value", field="default", value="max"),
)  # fmt: skip


def check(limit_range: Document) -> Iterator[StatusCause]:
    seen = set[str]()
    for index, item in enumerate(limit_range["spec"].get("limits") or ()):
        field, kind = f"spec.limits[{index}]", item["type"]
        yield from _type(kind, f"{field}.type")
        if kind in seen:
            yield StatusCause(f"{field}.type", f'Duplicate value: "{kind}"', "FieldValueDuplicate")
        seen.add(kind)
        yield from _item(item, field)


def _type(kind: str, field: str) -> Iterator[StatusCause]:
    problems = list(check_label_key(field, kind))
    if not problems and "/" not in kind and kind not in _TYPES:
        problems = [invalid_value(field, kind, "must be a standard limit type or fully qualified")]
    yield from problems


def _item(item: Document, field: str) -> Iterator[StatusCause]:
    kind, checked = item["type"], list(_BOUNDS)
    of_container = kind in ("Pod", "Container")
    if kind == "Pod":
        for part in ("default", "defaultRequest"):
            checked.remove(part)
            if item.get(part):
                yield forbidden_field(f"{field}.{part}", "may not be specified when `type` is 'Pod'")
    for part in checked:
        if part == "maxLimitRequestRatio":
            yield from _storage(item, field)
        for name in sorted(item.get(part, {})):
            check_name = resource_names.check_of_container if of_container else resource_names.check
            yield from check_name(name, f"{field}.{part}[{name}]")
    bounds = {part: item.get(part, {}) for part in checked}
    for name in sorted({name for part in bounds.values() for name in part}):
        found = {part: amounts[name] for part, amounts in bounds.items() if name in amounts}
        yield from _amounts(name, found, field)


def _storage(item: Document, field: str) -> Iterator[StatusCause]:
    if item["type"] == "PersistentVolumeClaim" and not any("storage" in item.get(part, {}) for part in ("min", "max")):
        why = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{field}.limits", why)


def _amounts(name: str, found: Document, field: str) -> Iterator[StatusCause]:
    """The bounds of one resource."""
    for order in _ORDERED:
        low, high = found.get(order.low), found.get(order.high)
        if low is not None and high is not None and quantity.nanos(low) > quantity.nanos(high):
            why = f"{order.low_words} {low} is greater than {order.high_words} {high}"
            yield invalid_value(f"{field}.{order.field}[{name}]", found[order.value], why)
    yield from _ratio(name, found, field)
    default, request = found.get("default"), found.get("defaultRequest")
    if resource_names.may_exceed_its_request(name) or default is None or request is None:
        return
    if quantity.nanos(default) != quantity.nanos(request):
        why = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid_value(f"{field}.defaultRequest[{name}]", request, why)


def _ratio(name: str, found: Document, field: str) -> Iterator[StatusCause]:
    text = found.get("maxLimitRequestRatio")
    if text is None:
        return
    ratio, path = quantity.nanos(text), f"{field}.maxLimitRequestRatio[{name}]"
    if ratio < quantity.NANO:
        yield invalid_value(path, text, f"ratio {text} is less than 1")
    if "min" not in found or "max" not in found or not quantity.nanos(found["min"]):
        return
    most = quantity.nanos(found["max"]) / quantity.nanos(found["min"])
    if ratio / quantity.NANO > most:
        yield invalid_value(path, text, f"ratio {text} is greater than max/min = {most:f}")
