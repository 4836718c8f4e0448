"""The parts that claims, classes and slices share: names of drivers, pools and attributes, and CEL selectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from stowplan.cel.environment import Environment
from stowplan.cel.syntax import CelSyntaxError
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value, required
from stowplan.embedded.validation.lists import check_list
from stowplan.embedded.validation.metadata import check_dns_label, check_name

MOST_SELECTORS, MOST_CONFIGURATIONS = 32, 32
_LONGEST_EXPRESSION, _LONGEST_DRIVER, _LONGEST_ID, _LONGEST_POOL = 10 * 1024, 63, 32, 253
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_ENVIRONMENT = Environment(variables={"device": "map<string, dyn>"}, binds=True)


def too_long(field: str, most: int) -> StatusCause:
    return StatusCause(field, f"Too long: may not be more than {most} bytes", "FieldValueTooLong")


def check_driver(field: str, name: str) -> Iterator[StatusCause]:
    if not name:
        yield required(field)
        return
    if len(name) > _LONGEST_DRIVER:
        yield too_long(field, _LONGEST_DRIVER)
    yield from check_name(field, name.lower())


def check_pool_name(field: str, name: str) -> Iterator[StatusCause]:
    if not name:
        yield required(field)
        return
    if len(name) > _LONGEST_POOL:
        yield too_long(field, _LONGEST_POOL)
    for part in name.split("/"):
        yield from check_name(field, part)


def check_label(field: str, name: str) -> Iterator[StatusCause]:
    """The name of a device or a request."""
    yield from check_dns_label(field, name)


def check_counter_set(field: str, name: str) -> Iterator[StatusCause]:
    if not name:
        yield required(field)
    else:
        yield from check_dns_label(field, name)


def check_qualified(field: str, name: str) -> Iterator[StatusCause]:
    """The name of an attribute or a capacity: an identifier, perhaps with the domain it belongs to."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        domain, identifier = "", name
    elif not domain:
        yield invalid_value(field, "", "the domain must not be empty")
    else:
        yield from check_driver(field, domain)
    if slash and not identifier:
        yield invalid_value(field, "", "the name must not be empty")
        return
    if len(identifier) > _LONGEST_ID:
        yield too_long(field, _LONGEST_ID)
    if not re.fullmatch(_IDENTIFIER, identifier):
        why = (
            "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric"
            " characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is"
            f" '{_IDENTIFIER}')"
        )
        yield invalid_value(field, identifier, why)


def check_fully_qualified(field: str, name: str) -> Iterator[StatusCause]:
    yield from check_qualified(field, name)
    if "/" not in name:
        yield invalid_value(field, name, "a fully qualified name must be a domain and a name separated by a slash")


def check_selectors(selectors: list[Document], field: str) -> Iterator[StatusCause]:
    yield from check_list(selectors, MOST_SELECTORS, field, _selector)


def _selector(selector: Document, field: str) -> Iterator[StatusCause]:
    if "cel" not in selector:
        yield required(f"{field}.cel")
        return
    field, expression = f"{field}.cel.expression", selector["cel"].get("expression", "")
    if len(expression) > _LONGEST_EXPRESSION:
        yield too_long(field, _LONGEST_EXPRESSION)
        return
    try:
        _ENVIRONMENT.compile(expression)
    except CelSyntaxError as error:
        yield invalid_value(field, expression, str(error))


def check_configuration(found: Document, field: str) -> Iterator[StatusCause]:
    opaque = found.get("opaque")
    if opaque is None:
        yield required(f"{field}.opaque")
        return
    yield from check_driver(f"{field}.opaque.driver", opaque.get("driver", ""))
    parameters: Any = opaque.get("parameters")
    if parameters is None:
        yield required(f"{field}.opaque.parameters")
    elif not isinstance(parameters, dict):
        yield invalid_value(f"{field}.opaque.parameters", parameters, "must be a valid JSON object")


def immutable(field: str, value: Any) -> StatusCause:
    return invalid_value(field, value, "field is immutable")
