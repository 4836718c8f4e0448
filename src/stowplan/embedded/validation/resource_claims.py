"""ResourceClaims and their templates: what is asked for, and what may be written into the status of a claim."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, forbidden_field, invalid_value, required, unsupported
from stowplan.embedded.validation.device_names import (
    MOST_CONFIGURATIONS,
    check_configuration,
    check_driver,
    check_fully_qualified,
    check_label,
    check_pool_name,
    check_selectors,
    immutable,
)
from stowplan.embedded.validation.lists import check_list
from stowplan.embedded.validation.metadata import check_name

_MOST_REQUESTS, _MOST_ALTERNATIVES, _MOST_CONSTRAINTS = 32, 8, 32
_MOST_USERS, _MOST_RESULTS = 256, 32
_MODES = ("All", "ExactCount")
_EITHER = "exactly one of `exactly` or `firstAvailable` is required"
_EITHER_ATTRIBUTE = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_NAMES_A_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def check(claim: Document) -> Iterator[StatusCause]:
    yield from _spec(claim.get("spec", {}), "spec")


def check_template(template: Document) -> Iterator[StatusCause]:
    yield from _spec(template.get("spec", {}).get("spec", {}), "spec.spec")


def check_update(document: Document, old: Document) -> Iterator[StatusCause]:
    """The spec of claims and templates stays as it is."""
    if document.get("spec") != old.get("spec"):
        yield immutable("spec", document.get("spec"))


def _spec(spec: Document, field: str) -> Iterator[StatusCause]:
    devices, field = spec.get("devices", {}), f"{field}.devices"
    names = _names(devices)
    requests = devices.get("requests", ())
    yield from check_list(requests, _MOST_REQUESTS, f"{field}.requests", _request, lambda each: each.get("name", ""))

    def constraint(found: Document, field: str) -> Iterator[StatusCause]:
        yield from _references(found.get("requests", ()), f"{field}.requests", names)
        if "matchAttribute" in found and "distinctAttribute" in found:
            yield invalid_value(field, "", _EITHER_ATTRIBUTE)
        elif "matchAttribute" in found:
            yield from check_fully_qualified(f"{field}.matchAttribute", found["matchAttribute"])
        elif "distinctAttribute" in found:
            yield from check_fully_qualified(f"{field}.distinctAttribute", found["distinctAttribute"])
        else:
            yield required(field, _EITHER_ATTRIBUTE)

    def configuration(found: Document, field: str) -> Iterator[StatusCause]:
        yield from _references(found.get("requests", ()), f"{field}.requests", names)
        yield from check_configuration(found, field)

    yield from check_list(devices.get("constraints", ()), _MOST_CONSTRAINTS, f"{field}.constraints", constraint)
    yield from check_list(devices.get("config", ()), MOST_CONFIGURATIONS, f"{field}.config", configuration)


def _names(devices: Document) -> set[str]:
    """What may be referred to: requests, and alternatives of requests."""
    found = set()
    for request in devices.get("requests", ()):
        name = request.get("name", "")
        found.add(name)
        found |= {f"{name}/{one.get('name', '')}" for one in request.get("firstAvailable", ())}
    return found


def _references(references: list[str], field: str, names: set[str]) -> Iterator[StatusCause]:
    def reference(name: str, field: str) -> Iterator[StatusCause]:
        if name not in names:
            yield invalid_value(field, name, _NAMES_A_REQUEST)

    yield from check_list(references, _MOST_REQUESTS, field, reference, lambda name: name)


def _request(request: Document, field: str) -> Iterator[StatusCause]:
    yield from check_label(f"{field}.name", request.get("name", ""))
    alternatives, exactly = request.get("firstAvailable"), request.get("exactly")
    if alternatives and exactly is not None:
        yield invalid_value(field, None, f"{_EITHER}, but multiple fields are set")
    elif alternatives:
        field = f"{field}.firstAvailable"
        yield from check_list(alternatives, _MOST_ALTERNATIVES, field, _alternative, lambda each: each.get("name", ""))
    elif exactly is not None:
        yield from _amount(exactly, f"{field}.exactly")
    else:
        yield required(field, _EITHER)


def _alternative(found: Document, field: str) -> Iterator[StatusCause]:
    yield from check_label(f"{field}.name", found.get("name", ""))
    yield from _amount(found, field)


def _amount(found: Document, field: str) -> Iterator[StatusCause]:
    name = found.get("deviceClassName", "")
    if not name:
        yield required(f"{field}.deviceClassName")
    else:
        yield from check_name(f"{field}.deviceClassName", name)
    yield from check_selectors(found.get("selectors", []), f"{field}.selectors")
    mode, count = found.get("allocationMode"), found.get("count", 0)
    if mode == "All" and count:
        yield invalid_value(f"{field}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count <= 0:
        yield invalid_value(f"{field}.count", count, "must be greater than zero")
    elif mode not in _MODES:
        yield unsupported(f"{field}.allocationMode", mode, _MODES)


# -- the status


def check_status(claim: Document, old: Document) -> Iterator[StatusCause]:
    """Who may use a claim, and its allocation, which stays as it is until the claim is deallocated."""
    status, before = claim.get("status", {}), old.get("status", {})
    users = status.get("reservedFor", [])
    yield from check_list(users, _MOST_USERS, "status.reservedFor", _user, lambda each: each.get("uid", ""))
    allocation = status.get("allocation")
    if users and allocation is None:
        yield forbidden_field("status.reservedFor", "may not be specified when `allocated` is not set")
    elif "deletionTimestamp" in claim["metadata"] and any(each not in before.get("reservedFor", ()) for each in users):
        why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield forbidden_field("status.reservedFor", why)
    if allocation is None:
        return
    if before.get("allocation") is not None:
        if allocation != before["allocation"]:
            yield immutable("status.allocation", allocation)
        return
    names = _names(claim.get("spec", {}).get("devices", {}))
    results = allocation.get("devices", {}).get("results", ())

    def result(found: Document, field: str) -> Iterator[StatusCause]:
        if found.get("request") not in names:
            yield invalid_value(f"{field}.request", found.get("request", ""), _NAMES_A_REQUEST)
        yield from check_driver(f"{field}.driver", found.get("driver", ""))
        yield from check_pool_name(f"{field}.pool", found.get("pool", ""))
        yield from check_label(f"{field}.device", found.get("device", ""))

    yield from check_list(results, _MOST_RESULTS, "status.allocation.devices.results", result)


def _user(user: Document, field: str) -> Iterator[StatusCause]:
    for name in ("resource", "name", "uid"):
        if not user.get(name):
            yield required(f"{field}.{name}")
