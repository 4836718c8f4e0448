"""CEL, its functions. Operators and what is used most are here, Kubernetes' own in `cel_kubernetes`; every other
function of the standard (strings, conversions, times) runs in the library, one call at a time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from stowplan.cel import kubernetes, networks, syntax
from stowplan.cel.environment import UInt
from stowplan.cel.values import CelError, Optional, equal, is_number, kind_of, less, type_of

LONG = 10_000  # characters of a result that cost extra
_FORMS: dict[type, str] = {UInt: "uint({})", datetime: "timestamp({})", timedelta: "duration({})"}
Function = Callable[..., Any]


def find(name: str, member: bool) -> Function:
    """The function of this name; its first argument is the meter of the run."""
    own = _OWN.get(name) or kubernetes.FUNCTIONS.get(name)
    if own is None:
        return lambda _, *values: _delegated(name, member, values)
    plain: Function = own
    if name in _DOUBLE:  # the standard has it, too, for other types
        return lambda _, *values: plain(*values) if _DOUBLE[name](values) else _delegated(name, member, values)
    if name == "scores":
        return lambda meter, *values: meter.scores(*values)
    return lambda _, *values: plain(*values)


def _delegated(name: str, member: bool, values: Sequence[Any]) -> Any:
    forms = tuple(next((form for kind, form in _FORMS.items() if isinstance(value, kind)), "{}") for value in values)
    program = syntax.delegate(name, member, forms)
    data = {f"a{index}": _outside(value) for index, value in enumerate(values)}
    try:
        found = program(data=data)
    except RuntimeError as error:
        raise CelError(str(error)) from None
    kind = found.type().name()
    if kind == "ERROR":
        raise CelError(str(found.value()))
    plain = found.plain_value()
    if kind == "UINT":
        return UInt(plain)
    return bytes(plain) if isinstance(plain, bytearray) else plain


def _outside(value: Any) -> Any:
    """A value as the library takes it; times go as texts."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.9f}s"
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, list):
        return [_outside(each) for each in value]
    if isinstance(value, dict):
        return {key: _outside(each) for key, each in value.items()}
    raise CelError(f"no such overload for {kind_of(value)}")


# -- operators


def index(holder: Any, key: Any) -> Any:
    if isinstance(holder, Optional):
        return holder if not holder.there else Optional(index(holder.value, key), True)
    if isinstance(holder, list):
        place = int(key) if is_number(key) and key == int(key) else -1
        if not 0 <= place < len(holder):
            raise CelError(f"index out of bounds: {key}")
        return holder[place]
    if isinstance(holder, dict) and isinstance(key, str | int) and key in holder:
        return holder[key]
    raise CelError(f"no such key: {key}")


def _add(left: Any, right: Any) -> Any:
    if is_number(left) and type(left) is type(right):
        return _checked(left + right, left)
    if isinstance(left, str | bytes | list) and type(left) is type(right):
        return left + right  # type: ignore[operator]
    return _timed(left, right, lambda a, b: a + b)


def _subtract(left: Any, right: Any) -> Any:
    if is_number(left) and type(left) is type(right):
        return _checked(left - right, left)
    return _timed(left, right, lambda a, b: a - b)


def _timed(left: Any, right: Any, combine: Function) -> Any:
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
    return _checked(int(math.fmod(left, right)) if abs(left) < 1 << 53 else abs(left) % abs(right), left)


def _checked(number: Any, like: Any) -> Any:
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


def _in(value: Any, holder: Any) -> bool:
    if isinstance(holder, dict):
        return isinstance(value, str | int) and value in holder
    if isinstance(holder, list):
        return any(equal(value, each) for each in holder)
    raise CelError("no such overload")


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise CelError("no such overload")


def _text(function: Callable[[str, str], bool]) -> Function:
    def run(value: Any, other: Any) -> bool:
        if not isinstance(value, str) or not isinstance(other, str):
            raise CelError("no such overload")
        return function(value, other)

    return run


def _parse_json(text: Any) -> Any:
    """Numbers are doubles, as in Go."""
    if not isinstance(text, str):
        raise CelError("no such overload")
    try:
        return json.loads(text, parse_int=float, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise CelError(f"not JSON: {error}") from None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


# -- optional values


def _value(found: Any) -> Any:
    if not isinstance(found, Optional):
        raise CelError("no such overload")
    if not found.there:
        raise CelError("optional.none() dereference")
    return found.value


def _or(found: Any, other: Any) -> Any:
    if not isinstance(found, Optional) or not isinstance(other, Optional):
        raise CelError("no such overload")
    return found if found.there else other


def _or_value(found: Any, other: Any) -> Any:
    if not isinstance(found, Optional):
        raise CelError("no such overload")
    return found.value if found.there else other


def _has_value(found: Any) -> bool:
    if not isinstance(found, Optional):
        raise CelError("no such overload")
    return found.there


def _non_zero(value: Any) -> Optional:
    return Optional(value, True) if value not in (None, 0, "", b"", [], {}, False) else Optional()


_OWN: dict[str, Function] = {
    "_+_": _add,
    "_-_": _subtract,
    "_*_": _multiply,
    "_/_": _divide,
    "_%_": _modulo,
    "-_": _negate,
    "!_": _not,
    "_<_": less,
    "_>_": lambda left, right: less(right, left),
    "_<=_": lambda left, right: not less(right, left),
    "_>=_": lambda left, right: not less(left, right),
    "@in": _in,
    "size": _size,
    "startsWith": _text(str.startswith),
    "endsWith": _text(str.endswith),
    "contains": _text(lambda value, other: other in value),
    "type": type_of,
    "dyn": lambda value: value,
    "parseJSON": _parse_json,
    "scores": lambda *_: [],
    "optional.of": lambda value: Optional(value, True),
    "optional.ofNonZeroValue": _non_zero,
    "optional.none": Optional,
    "value": _value,
    "or": _or,
    "orValue": _or_value,
    "hasValue": _has_value,
}
# Names that Kubernetes gave another meaning beside the standard's: ours if this holds of the arguments.
_DOUBLE: dict[str, Callable[[Sequence[Any]], bool]] = {
    "indexOf": lambda values: isinstance(values[0], list),
    "lastIndexOf": lambda values: isinstance(values[0], list),
    "string": lambda values: networks.is_network(values[0]),
}


# -- what a call costs


def measure(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | dict) else 1


def _walk(size: float) -> int:
    return math.ceil(size * 0.1)


def shorter(values: Sequence[Any]) -> int:
    return _walk(min(measure(values[0]), measure(values[1])))


def _compared(values: Sequence[Any]) -> int:
    return shorter(values) if isinstance(values[0], str | bytes) else 1


def _joined(values: Sequence[Any]) -> int:
    if isinstance(values[0], str | bytes):
        return _walk(measure(values[0]) + measure(values[1]))
    return 1


def _searched(values: Sequence[Any]) -> int:
    return _walk(1 + measure(values[0])) * math.ceil(measure(values[1]) * 0.25)


def _walked(values: Sequence[Any]) -> int:
    return _walk(measure(values[0])) if values else 1


def _listed(values: Sequence[Any]) -> int:
    if isinstance(values[0], list):
        return max(measure(values[0]), 1)
    return _walk(measure(values[0])) * max(_walk(measure(values[1])), 1) if len(values) > 1 else _walked(values)


_STRING = ("startsWith", "endsWith", "bytes", "lowerAscii", "upperAscii", "substring", "trim", "replace", "split")
_READ = ("url", "isURL", "quantity", "isQuantity", "semver", "isSemver", "ip", "isIP", "cidr", "isCIDR", "parseJSON")
COSTS: dict[str, Callable[[Sequence[Any]], int]] = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _compared),
    "_+_": _joined,
    "@in": lambda values: measure(values[1]) if isinstance(values[1], list) else 1,
    "matches": _searched,
    "find": _searched,
    "findAll": _searched,
    "contains": lambda values: _walk(measure(values[0])) * _walk(measure(values[1])),
    **dict.fromkeys((*_STRING, *_READ), _walked),
    **dict.fromkeys(("isSorted", "sum", "min", "max", "indexOf", "lastIndexOf", "join"), _listed),
}
