"""CEL values: types, equality and order.

Strings, numbers, lists and maps are Python's. An unsigned integer has a type of its own (`UInt`). Numbers of different
types are compared by value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

Parsed = TypeVar("Parsed")
BYTES_PER_ELEMENT = 32  # what a compared element counts
CHARACTERS_PER_BYTE = 16  # how many compared characters count as much as a byte that is made


class CelError(Exception):
    """An error of an expression while it runs. In CEL it is a value: `false && error` is false."""


class CostError(Exception):
    """The expression costs too much. The expression cannot catch this error."""


class UInt(int):
    """An unsigned integer."""


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing, as `a.?b` returns it."""

    value: Any = None
    present: bool = False


@dataclass(frozen=True, slots=True)
class Type:
    name: str


_TYPE_NAMES: dict[type, str] = {  # the first that fits counts: a bool is an int, too
    bool: "bool",
    UInt: "uint",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    datetime: "google.protobuf.Timestamp",
    timedelta: "google.protobuf.Duration",
    Optional: "optional_type",
    Type: "type",
}
_TYPES = {name: Type(name) for name in (*_TYPE_NAMES.values(), "null_type")}


def type_named(name: str) -> Type:
    """Return the type that an identifier names."""
    found = _TYPES.get(name)
    if found is None:
        raise CelError(f"no such attribute: {name}")
    return found


def type_of(value: Any) -> Type:
    return _TYPES.get(type_name(value)) or Type(type_name(value))


def type_name(value: Any) -> str:
    for kind, name in _TYPE_NAMES.items():
        if isinstance(value, kind):
            return name
    return "null_type" if value is None else getattr(value, "cel_type", type(value).__name__)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Any, right: Any, take: Callable[[int], None]) -> bool:
    """True if two values are equal. Values of different types are not, except for numbers.

    `take` is told how much is read: lists may be inside lists in many places, and nothing else bounds the time of that.
    """
    if isinstance(left, str) and isinstance(right, str):
        take(min(len(left), len(right)) // CHARACTERS_PER_BYTE)
        return left == right
    if is_number(left) and is_number(right):
        return bool(left == right)
    if isinstance(left, Optional) and isinstance(right, Optional):
        return left.present == right.present and (not left.present or equal(left.value, right.value, take))
    if type_name(left) != type_name(right):
        return False
    if isinstance(left, list):
        take(BYTES_PER_ELEMENT * min(len(left), len(right)))
        return len(left) == len(right) and all(equal(a, b, take) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        take(2 * BYTES_PER_ELEMENT * min(len(left), len(right)))
        return left.keys() == right.keys() and all(equal(value, right[key], take) for key, value in left.items())
    return bool(left == right)


def less(left: Any, right: Any) -> bool:
    if is_number(left) and is_number(right):
        return bool(left < right)
    if type_name(left) == type_name(right) and isinstance(left, str | bytes | bool | datetime | timedelta):
        return bool(left < right)  # the order of characters is that of their bytes in UTF-8
    raise CelError("no such overload")


# -- arguments of functions


def as_string(value: Any) -> str:
    if not isinstance(value, str):
        raise CelError("no such overload")
    return value


def as_type(value: Any, kind: Any) -> Any:
    """Return the value if it is of a type (or of one of several)."""
    if not isinstance(value, kind):
        raise CelError("no such overload")
    return value


def parsed(parse: Callable[[str], Parsed | None], text: Any, problem: str) -> Parsed:
    """Return what a parser makes of a string; an error with this text if that is None."""
    found = parse(as_string(text))
    if found is None:
        raise CelError(problem)
    return found


def parses(parse: Callable[[Any], object]) -> Callable[[Any], bool]:
    """Return a function that is true of the strings that can be parsed."""

    def run(text: Any) -> bool:
        try:
            parse(as_string(text))
        except CelError:
            if not isinstance(text, str):
                raise
            return False
        return True

    return run
