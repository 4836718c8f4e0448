"""Functions of the CEL standard that run in Google's library (cel-cpp): strings, conversions, times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from stowplan.cel import sizes
from stowplan.cel.sizes import Size, Take
from stowplan.cel.values import CelError, UInt, type_name

if TYPE_CHECKING:
    from cel_expr_python import cel

MOST_ARGUMENTS = 5
_CONVERSIONS: dict[type, str] = {UInt: "uint({})", datetime: "timestamp({})", timedelta: "duration({})"}
_CALL = 64  # bytes that a call counts, beside its values: it takes as long as many operators
_LONGEST_PROBLEM = 200  # characters
_SIZES: dict[str, Size] = {"format": sizes.of_format}  # of results that may be larger than the arguments


def call(take: Take, name: str, member: bool, values: Sequence[Any]) -> Any:
    """Call a function. `member`: the first value stood before the dot."""
    take(_CALL + 2 * sum(map(sizes.whole, values)) + (_SIZES[name](values) if name in _SIZES else 0))
    try:
        return _call(name, member, values)
    except (RuntimeError, ValueError, OverflowError) as error:  # of the library, and of strings that have no UTF-8
        raise CelError(str(error)[:_LONGEST_PROBLEM]) from None


def _call(name: str, member: bool, values: Sequence[Any]) -> Any:
    conversions = tuple(
        next((text for kind, text in _CONVERSIONS.items() if isinstance(value, kind)), "{}") for value in values
    )
    run = _program(name, member, conversions)
    found = run(data={f"a{index}": _argument(value) for index, value in enumerate(values)})
    kind = found.type().name()
    if kind == "ERROR":
        raise CelError(str(found.value())[:_LONGEST_PROBLEM])
    plain = found.plain_value()
    if kind == "UINT":
        return UInt(plain)
    return bytes(plain) if isinstance(plain, bytearray) else plain


@cache
def _program(function: str, member: bool, conversions: tuple[str, ...]) -> Callable[..., Any]:
    """Compile one call, with each argument converted first."""
    arguments = [conversion.format(f"a{index}") for index, conversion in enumerate(conversions)]
    before = f"{arguments.pop(0)}." if member else ""
    run: Callable[..., Any] = _environment().compile(f"{before}{function}({', '.join(arguments)})").eval
    return run


@cache
def _environment() -> cel.Env:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_strings

    variables = {f"a{index}": cel.Type.DYN for index in range(MOST_ARGUMENTS)}
    return cel.NewEnv(variables=variables, extensions=[ext_strings.ExtStrings()])


def _argument(value: Any) -> Any:
    """Return a value as the library takes it. Times are passed as strings."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.9f}s"
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, list):
        return [_argument(each) for each in value]
    if isinstance(value, dict):
        return {key: _argument(each) for key, each in value.items()}
    raise CelError(f"no such overload for {type_name(value)}")
