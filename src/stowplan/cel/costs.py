"""What a call costs, as cel-go and Kubernetes count it. A call that is not listed costs 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

LIST_COST, MAP_COST = 10, 30
LONG_RESULT = 10_000  # characters; longer strings cost extra
Cost = Callable[[Sequence[Any]], int]


def of_result(found: Any) -> int:
    """Return the extra cost of a result."""
    return len(found) // 10 if isinstance(found, str) and len(found) > LONG_RESULT else 0


def of_equality(values: Sequence[Any]) -> int:
    return _walk(min(_length(values[0]), _length(values[1])))


def by_length(values: Sequence[Any]) -> int:
    """Return the cost of a call that reads its first argument once."""
    return _walk(_length(values[0])) if values else 1


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | dict) else 1


def _walk(length: float) -> int:
    return math.ceil(length * 0.1)


def _of_order(values: Sequence[Any]) -> int:
    return of_equality(values) if isinstance(values[0], str | bytes) else 1


def _of_concatenation(values: Sequence[Any]) -> int:
    if isinstance(values[0], str | bytes):
        return _walk(_length(values[0]) + _length(values[1]))
    return 1


def _of_membership(values: Sequence[Any]) -> int:
    return _length(values[1]) if isinstance(values[1], list) else 1


def _of_regex(values: Sequence[Any]) -> int:
    return _walk(1 + _length(values[0])) * math.ceil(_length(values[1]) * 0.25)


def _of_contains(values: Sequence[Any]) -> int:
    return _walk(_length(values[0])) * _walk(_length(values[1]))


def _of_list(values: Sequence[Any]) -> int:
    if isinstance(values[0], list):
        return max(_length(values[0]), 1)
    return _walk(_length(values[0])) * max(_walk(_length(values[1])), 1) if len(values) > 1 else by_length(values)


_STRING = ("startsWith", "endsWith", "bytes", "lowerAscii", "upperAscii", "substring", "trim", "replace", "split")
_PARSED = ("url", "isURL", "quantity", "isQuantity", "semver", "isSemver", "ip", "isIP", "cidr", "isCIDR")
COSTS: dict[str, Cost] = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _of_order),
    "_+_": _of_concatenation,
    "@in": _of_membership,
    **dict.fromkeys(("matches", "find", "findAll"), _of_regex),
    "contains": _of_contains,
    **dict.fromkeys((*_STRING, *_PARSED), by_length),
    **dict.fromkeys(("isSorted", "sum", "min", "max", "indexOf", "lastIndexOf", "join"), _of_list),
}
