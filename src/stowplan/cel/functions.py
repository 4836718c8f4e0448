"""The functions that expressions call: operators, optionals and what is used most are here, Kubernetes' own in
`kubernetes`, `networks` and `formats`. The library runs every other function of the standard.

A result that may be large is counted before it is made (`sizes`): `find` returns functions that are told `take` first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from stowplan.cel import formats, kubernetes, library, networks, patterns, sizes, strings
from stowplan.cel.costs import Cost
from stowplan.cel.declarations import Form
from stowplan.cel.sizes import Size, Take, shown
from stowplan.cel.values import CelError, Optional, UInt, equal, is_number, less, type_of


@dataclass(frozen=True, slots=True)
class Function:
    """A function that an environment adds. Without `call` it is bound for each evaluation (`CelEvaluation`)."""

    forms: tuple[Form, ...]
    call: Callable[..., Any] | None = None
    cost: Cost | None = None  # None: 1
    size: Size | None = None  # what the result takes; None: little


def find(name: str, member: bool) -> Callable[..., Any]:
    """Return the function of this name, which is told `take` first. `member`: its argument stands before the dot."""
    own = METERED.get(name) or (_metered(FUNCTIONS[name], SIZES.get(name)) if name in FUNCTIONS else None)
    if own is None:
        return lambda take, *values: library.call(take, name, member, values)
    shared = _SHARED.get(name)
    if shared is None:
        return own
    return lambda take, *values: own(take, *values) if shared(values) else library.call(take, name, member, values)


def metered(function: Function) -> Callable[..., Any]:
    """Return what runs for a function that an environment adds."""
    assert function.call is not None, "this function is bound for each evaluation"
    return _metered(function.call, function.size)


def _metered(function: Callable[..., Any], size: Size | None) -> Callable[..., Any]:
    if size is None:
        return lambda _, *values: function(*values)

    def run(take: Take, *values: Any) -> Any:
        take(size(values))
        return function(*values)

    return run


# -- operators


def index(holder: Any, key: Any) -> Any:
    """Evaluate `a[b]`."""
    if isinstance(holder, Optional):
        return holder if not holder.present else Optional(index(holder.value, key), True)
    if isinstance(holder, list):
        whole = is_number(key) and (not isinstance(key, float) or key.is_integer())
        if not whole or not 0 <= key < len(holder):
            raise CelError(f"index out of bounds: {shown(key)}")
        return holder[int(key)]
    if isinstance(holder, dict) and isinstance(key, str | int) and key in holder:
        return holder[key]
    raise CelError(f"no such key: {shown(key)}")


def _add(left: Any, right: Any) -> Any:
    if is_number(left) and type(left) is type(right):
        return _checked(left + right, left)
    if isinstance(left, str | bytes | list) and type(left) is type(right):
        return left + right  # type: ignore[operator]
    return _combine_times(left, right, lambda a, b: a + b)


def _subtract(left: Any, right: Any) -> Any:
    if is_number(left) and type(left) is type(right):
        return _checked(left - right, left)
    return _combine_times(left, right, lambda a, b: a - b)


def _combine_times(left: Any, right: Any, combine: Callable[[Any, Any], Any]) -> Any:
    if not isinstance(left, datetime | timedelta) or not isinstance(right, datetime | timedelta):
        raise CelError("no such overload")
    try:
        return combine(left, right)
    except (OverflowError, TypeError) as error:
        raise CelError(str(error)) from None


def _multiply(left: Any, right: Any) -> Any:
    if is_number(left) and type(left) is type(right):
        return _checked(left * right, left)
    raise CelError("no such overload")


def _divide(left: Any, right: Any) -> Any:
    if isinstance(left, float) and isinstance(right, float):
        return left / right if right else math.copysign(math.inf, left) * math.copysign(1, right) if left else math.nan
    if not is_number(left) or type(left) is not type(right):
        raise CelError("no such overload")
    if right == 0:
        raise CelError("division by zero")
    found = abs(left) // abs(right)
    return _checked(found if (left < 0) == (right < 0) else -found, left)


def _modulo(left: Any, right: Any) -> Any:
    if not is_number(left) or isinstance(left, float) or type(left) is not type(right):
        raise CelError("no such overload")
    if right == 0:
        raise CelError("modulus by zero")
    found = abs(left) % abs(right)
    return _checked(-found if left < 0 else found, left)


def _checked(number: Any, like: Any) -> Any:
    """Return a number of the type of `like`; an error if it is out of range."""
    if isinstance(like, float):
        return number
    low, high = (0, 1 << 64) if isinstance(like, UInt) else (-(1 << 63), 1 << 63)
    if not low <= number < high:
        raise CelError("integer overflow")
    return UInt(number) if isinstance(like, UInt) else number


def _negate(value: Any) -> Any:
    if not is_number(value) or isinstance(value, UInt):
        raise CelError("no such overload")
    return _checked(-value, value)


def _not(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError("no such overload")
    return not value


def _in(take: Take, value: Any, holder: Any) -> bool:
    if isinstance(holder, dict):
        return isinstance(value, str | int) and value in holder
    if isinstance(holder, list):
        return any(equal(value, each, take) for each in holder)
    raise CelError("no such overload")


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise CelError("no such overload")


def _string(function: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    def run(value: Any, other: Any) -> bool:
        if not isinstance(value, str) or not isinstance(other, str):
            raise CelError("no such overload")
        return function(value, other)

    return run


# -- optional values


def _value(found: Any) -> Any:
    if not isinstance(found, Optional):
        raise CelError("no such overload")
    if not found.present:
        raise CelError("optional.none() dereference")
    return found.value


def _or(found: Any, other: Any) -> Any:
    if not isinstance(found, Optional) or not isinstance(other, Optional):
        raise CelError("no such overload")
    return found if found.present else other


def _or_value(found: Any, other: Any) -> Any:
    if not isinstance(found, Optional):
        raise CelError("no such overload")
    return found.value if found.present else other


def _has_value(found: Any) -> bool:
    if not isinstance(found, Optional):
        raise CelError("no such overload")
    return found.present


def _non_zero(value: Any) -> Optional:
    return Optional(value, True) if value not in (None, 0, "", b"", [], {}, False) else Optional()


def _operator(name: str, kinds: tuple[type, ...], operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return an operator that names itself, as cel-go does, if values of the left one's type do not have it at all."""

    def run(left: Any, right: Any) -> Any:
        if not isinstance(left, kinds) or isinstance(left, bool) > (bool in kinds):
            raise CelError(f"no such overload: {name}")
        return operate(left, right)

    return run


_NUMBER: tuple[type, ...] = (int, float)
_TIME: tuple[type, ...] = (datetime, timedelta)
_ORDERED = (*_NUMBER, *_TIME, bool, str, bytes)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_+_": _operator("_+_", (*_NUMBER, *_TIME, str, bytes, list), _add),
    "_-_": _operator("_-_", (*_NUMBER, *_TIME), _subtract),
    "_*_": _operator("_*_", _NUMBER, _multiply),
    "_/_": _operator("_/_", _NUMBER, _divide),
    "_%_": _operator("_%_", (int,), _modulo),
    "-_": _negate,
    "!_": _not,
    "_<_": _operator("_<_", _ORDERED, less),
    "_>_": _operator("_>_", _ORDERED, lambda left, right: less(right, left)),
    "_<=_": _operator("_<=_", _ORDERED, lambda left, right: not less(right, left)),
    "_>=_": _operator("_>=_", _ORDERED, lambda left, right: not less(left, right)),
    "size": _size,
    "startsWith": _string(str.startswith),
    "endsWith": _string(str.endswith),
    "contains": _string(lambda value, other: other in value),
    "type": type_of,
    "dyn": lambda value: value,
    "optional.of": lambda value: Optional(value, True),
    "optional.ofNonZeroValue": _non_zero,
    "optional.none": Optional,
    "value": _value,
    "or": _or,
    "orValue": _or_value,
    "hasValue": _has_value,
    **kubernetes.FUNCTIONS,
    **networks.FUNCTIONS,
    **formats.FUNCTIONS,
}
METERED: dict[str, Callable[..., Any]] = {  # those that count for themselves
    "@in": _in,
    "matches": patterns.matches,
    "find": patterns.find,
    "findAll": patterns.find_all,
    "replace": strings.replace,
    "split": strings.split,
    "join": strings.join,
    **kubernetes.METERED,
}
SIZES: dict[str, Size] = {  # of the results of FUNCTIONS; of those that are not here it is little
    "_+_": sizes.of_sum,
    "validate": sizes.of_copies,
    "getQuery": sizes.of_query,
    "getEscapedPath": sizes.of_escaped,
}
# Kubernetes' functions that share their name with one of the standard: Kubernetes' if this is true of the arguments.
_SHARED: dict[str, Callable[[Sequence[Any]], bool]] = {
    "indexOf": lambda values: isinstance(values[0], list),
    "lastIndexOf": lambda values: isinstance(values[0], list),
    "string": lambda values: networks.is_network(values[0]),
}
