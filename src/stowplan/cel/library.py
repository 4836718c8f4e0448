"""Functions of the CEL standard that run in Google's library (cel-cpp): strings, conversions, times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from stowplan.cel.values import CelError, UInt, type_name

if TYPE_CHECKING:
    from cel_expr_python import cel

MOST_ARGUMENTS = 5
_CONVERSIONS: dict[type, str] = {UInt: "uint({})", datetime: "timestamp({})", timedelta: "duration({})"}


def call(name: str, member: bool, values: Sequence[Any]) -> Any:
    """Call a function. `member`: the first value stood before the dot."""
    conversions = tuple(
        next((text for kind, text in _CONVERSIONS.items() if isinstance(value, kind)), "{}") for value in values
    )
    run = _program(name, member, conversions)
    try:
        found = run(data={f"a{index}": _argument(value) for index, value in enumerate(values)})
    except RuntimeError as error:
        raise CelError(str(error)) from None
    kind = found.type().name()
    if kind == "ERROR":
        raise CelError(str(found.value()))
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
