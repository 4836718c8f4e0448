"""ResourceSlices and DeviceClasses: what drivers publish, and what administrators offer of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, forbidden_field, invalid_value, required, unsupported
from stowplan.embedded.validation.device_names import (
    MOST_CONFIGURATIONS,
    check_configuration,
    check_counter_set,
    check_driver,
    check_label,
    check_pool_name,
    check_qualified,
    check_selectors,
    immutable,
    too_long,
)
from stowplan.embedded.validation.lists import check_list
from stowplan.embedded.validation.resource_names import is_extended
from stowplan.objects import quantity

_MOST_DEVICES, _MOST_SPECIAL_DEVICES, _MOST_COUNTER_SETS, _MOST_ENTRIES, _MOST_TAINTS = 128, 64, 8, 32, 16
_MOST_CONSUMED, _LONGEST_VALUE = 2, 64
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_VALUES = ("bool", "bools", "int", "ints", "string", "strings", "version", "versions")
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_NUMBER, _PART, _BUILD = r"(0|[1-9]\d*)", r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)", r"[0-9a-zA-Z-]+"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PART}(\.{_PART})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII)


def check_slice(document: Document) -> Iterator[StatusCause]:
    spec = document["spec"]
    yield from check_driver("spec.driver", spec.get("driver", ""))
    pool = spec.get("pool", {})
    yield from check_pool_name("spec.pool.name", pool.get("name", ""))
    if pool.get("resourceSliceCount", 0) <= 0:
        yield invalid_value(
            "spec.pool.resourceSliceCount", pool.get("resourceSliceCount", 0), "must be greater than zero"
        )
    if pool.get("generation", 0) < 0:
        yield invalid_value("spec.pool.generation", pool["generation"], "must be greater than or equal to zero")
    yield from _place(spec, "spec", _PLACES)
    devices, sets = spec.get("devices"), spec.get("sharedCounters")
    if devices and sets:
        yield invalid_value("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    own_places = bool(spec.get("perDeviceNodeSelection"))

    def device(found: Document, field: str) -> Iterator[StatusCause]:
        yield from _device(found, field, own_places=own_places)

    special = any(each.get("taints") or each.get("consumesCounters") for each in devices or ())
    most = _MOST_SPECIAL_DEVICES if special else _MOST_DEVICES
    yield from check_list(devices or (), most, "spec.devices", device, lambda each: each.get("name", ""))
    key = lambda each: each.get("name", "")  # noqa: E731
    yield from check_list(sets or (), _MOST_COUNTER_SETS, "spec.sharedCounters", _counter_set, key)


def check_slice_update(document: Document, old: Document) -> Iterator[StatusCause]:
    spec, before = document["spec"], old["spec"]
    if spec.get("pool", {}).get("name") != before.get("pool", {}).get("name"):
        yield immutable("spec.pool.name", spec.get("pool", {}).get("name"))
    for name in ("driver", "nodeName"):
        if spec.get(name) != before.get(name):
            yield immutable(f"spec.{name}", spec.get(name))


def check_class(document: Document) -> Iterator[StatusCause]:
    spec = document.get("spec", {})
    yield from check_selectors(spec.get("selectors", []), "spec.selectors")
    yield from check_list(spec.get("config", ()), MOST_CONFIGURATIONS, "spec.config", check_configuration)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        yield invalid_value("spec.extendedResourceName", name, "must be a valid extended resource name")


def _place(found: Document, field: str, names: tuple[str, ...]) -> Iterator[StatusCause]:
    """Exactly one of the fields that say which nodes have the devices."""
    for name in ("allNodes", "perDeviceNodeSelection"):
        if found.get(name) is False and name in names:
            yield invalid_value(f"{field}.{name}", False, "must be either unset or set to true")
    if found.get("nodeName") == "":
        yield invalid_value(f"{field}.nodeName", "", "must be either unset or set to a non-empty string")
    given = [f"`{name}`" for name in names if found.get(name)]
    choices = f"exactly one of {', '.join(f'`{name}`' for name in names)} is required"
    if not given:
        yield required(field, choices)
    elif len(given) > 1:
        yield invalid_value(field, f"{{{', '.join(given)}}}", f"{choices}, but multiple fields are set")
    terms = found.get("nodeSelector", {}).get("nodeSelectorTerms", ())
    if "nodeSelector" in found and len(terms) != 1 and "perDeviceNodeSelection" in names:
        why = "must have exactly one node selector term"
        yield invalid_value(f"{field}.nodeSelector.nodeSelectorTerms", list(terms), why)


def _device(device: Document, field: str, *, own_places: bool) -> Iterator[StatusCause]:
    yield from check_label(f"{field}.name", device.get("name", ""))
    attributes, capacity = device.get("attributes", {}), device.get("capacity", {})
    if len(attributes) + len(capacity) > _MOST_ENTRIES:
        why = f"the total number of attributes and capacities must not exceed {_MOST_ENTRIES}"
        yield invalid_value(field, len(attributes) + len(capacity), why)
    for name, value in attributes.items():
        yield from check_qualified(f"{field}.attributes", name)
        yield from _attribute(value, f"{field}.attributes[{name}]")
    shared = bool(device.get("allowMultipleAllocations"))
    for name, value in capacity.items():
        yield from check_qualified(f"{field}.capacity", name)
        yield from _capacity(value, f"{field}.capacity[{name}]", shared=shared)
    yield from check_list(device.get("taints", ()), _MOST_TAINTS, f"{field}.taints", _taint)
    key = lambda each: each.get("counterSet", "")  # noqa: E731
    consumed = device.get("consumesCounters", ())
    yield from check_list(consumed, _MOST_CONSUMED, f"{field}.consumesCounters", _consumption, key)
    if own_places:
        yield from _place(device, field, _PLACES[:3])
    elif any(name in device for name in _PLACES[:3]):
        why = "can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        yield invalid_value(field, None, f"`nodeName`, `nodeSelector` and `allNodes` {why}")


def _attribute(value: Document, field: str) -> Iterator[StatusCause]:
    given = [name for name in _VALUES if name in value]
    if len(given) != 1:
        yield invalid_value(field, value if given else "", "exactly one value must be specified")
        return
    text = value[given[0]]
    if given[0] == "version" and not _VERSION.fullmatch(text):
        yield invalid_value(f"{field}.version", text, "must be a string compatible with semver.org spec 2.0.0")
    if given[0] in ("string", "version") and len(text) > _LONGEST_VALUE:
        yield too_long(f"{field}.{given[0]}", _LONGEST_VALUE)


def _capacity(capacity: Document, field: str, *, shared: bool) -> Iterator[StatusCause]:
    policy, field = capacity.get("requestPolicy"), f"{field}.requestPolicy"
    if policy is None:
        return
    values, allowed = policy.get("validValues"), policy.get("validRange")
    if not shared:
        yield forbidden_field(field, "allowMultipleAllocations must be true")
    elif values and allowed is not None:
        why = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield forbidden_field(field, why)
    elif "default" not in policy and (values or allowed is not None):
        name = "validValues" if values else "validRange"
        yield required(f"{field}.default", f"required when {name} is defined")
    elif values:
        if quantity.nanos(policy["default"]) not in map(quantity.nanos, values):
            why = "default value is not valid according to the requestPolicy"
            yield invalid_value(f"{field}.validValues", policy["default"], why)
    elif allowed is not None and "min" not in allowed:
        yield required(f"{field}.validRange.min", "required when validRange is defined")


def _taint(taint: Document, field: str) -> Iterator[StatusCause]:
    if not taint.get("key"):
        yield required(f"{field}.key")
    if not taint.get("effect"):
        yield required(f"{field}.effect")
    elif taint["effect"] not in _EFFECTS:
        yield unsupported(f"{field}.effect", taint["effect"], _EFFECTS)


def _consumption(found: Document, field: str) -> Iterator[StatusCause]:
    yield from check_counter_set(f"{field}.counterSet", found.get("counterSet", ""))
    if not found.get("counters"):
        yield required(f"{field}.counters")


def _counter_set(found: Document, field: str) -> Iterator[StatusCause]:
    yield from check_counter_set(f"{field}.name", found.get("name", ""))
    if not found.get("counters"):
        yield required(f"{field}.counters")
