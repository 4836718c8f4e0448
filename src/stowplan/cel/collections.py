"""Functions on sets and lists that some environments have: cel-go's libraries `sets` and `lists` (version 3).

An environment adds them by `functions=collections.FUNCTIONS`. `sortBy`, which is a macro, is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

from stowplan.cel import sizes
from stowplan.cel.functions import Function
from stowplan.cel.values import CelError, Optional, as_type, equal, less

LONGEST = 100_000  # elements of a range


def _ignore(_: int) -> None:
    """What is compared counts by the cost of the call."""


def _contains(items: Any, wanted: Any) -> bool:
    return all(any(equal(each, one, _ignore) for one in as_type(items, list)) for each in as_type(wanted, list))


def _intersects(left: Any, right: Any) -> bool:
    return any(equal(one, other, _ignore) for one in as_type(left, list) for other in as_type(right, list))


def _slice(items: Any, start: Any, end: Any) -> list[Any]:
    found: list[Any] = as_type(items, list)
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(found):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(found)}")
    return found[start:end]


def _flatten(items: Any, depth: Any = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    found: list[Any] = []
    for each in as_type(items, list):
        found += _flatten(each, depth - 1) if isinstance(each, list) and depth > 0 else [each]
    return found


def _distinct(items: Any) -> list[Any]:
    found: list[Any] = []
    for each in as_type(items, list):
        if not any(equal(each, one, _ignore) for one in found):
            found.append(each)
    return found


def _reverse(items: Any) -> Any:
    return items[::-1] if isinstance(items, str) else as_type(items, list)[::-1]


def _sort(items: Any) -> list[Any]:
    found: list[Any] = as_type(items, list)
    if len({type(each) for each in found}) > 1:
        raise CelError("list elements must have the same type")
    return sorted(found, key=cmp_to_key(lambda one, other: less(other, one) - less(one, other)))


def _range(end: Any) -> list[int]:
    if as_type(end, int) > LONGEST:
        raise CelError(f"a range of {end} elements is too long")
    return list(range(end))


def _first(items: Any) -> Optional:
    found: list[Any] = as_type(items, list)
    return Optional(found[0], True) if found else Optional()


def _last(items: Any) -> Optional:
    found: list[Any] = as_type(items, list)
    return Optional(found[-1], True) if found else Optional()


def _by_pairs(values: Sequence[Any]) -> int:
    """Every element is compared with every other one."""
    return max(1, math.prod(len(each) for each in values if isinstance(each, list)))


def _squared(values: Sequence[Any]) -> int:
    return max(1, len(values[0]) ** 2) if isinstance(values[0], list) else 1


def _by_length(values: Sequence[Any]) -> int:
    return max(1, sum(len(each) for each in values if isinstance(each, list | str)))


def _of_pair(call: Callable[[Any, Any], bool]) -> Function:
    return Function((("", ("list<~A>", "list<~A>"), "bool"),), call, _by_pairs)


_copied = sizes.of_copies
FUNCTIONS: dict[str, Function] = {
    "sets.contains": _of_pair(_contains),
    "sets.equivalent": _of_pair(lambda left, right: _contains(left, right) and _contains(right, left)),
    "sets.intersects": _of_pair(_intersects),
    "slice": Function((("list<~A>", ("int", "int"), "list<~A>"),), _slice, _by_length, _copied),
    "flatten": Function(
        (("list<dyn>", (), "list<dyn>"), ("list<dyn>", ("int",), "list<dyn>")), _flatten, _by_length, _copied
    ),
    "distinct": Function((("list<~A>", (), "list<~A>"),), _distinct, _squared, _copied),
    "reverse": Function((("list<~A>", (), "list<~A>"), ("string", (), "string")), _reverse, _by_length, _copied),
    "sort": Function((("list<~A>", (), "list<~A>"),), _sort, _squared, _copied),
    "lists.range": Function((("", ("int",), "list<int>"),), _range, None, lambda values: 8 * max(0, int(values[0]))),
    "first": Function((), _first),  # the library declares these two
    "last": Function((), _last),
}
