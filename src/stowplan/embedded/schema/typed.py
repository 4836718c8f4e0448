"""Decodes JSON values by the type of a built-in kind: types are checked, unknown fields dropped, defaults filled in.

Each type of the recorded schema becomes a msgspec struct when it is first needed. The result is a plain dict again,
since all other modules work on documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Annotated, Any

import msgspec

from stowplan.embedded.documents import Document
from stowplan.embedded.schema import builtin_types
from stowplan.embedded.schema.quantities import canonical


class WrongTypeError(ValueError):
    """A value of the wrong type. The text has the words of Go's JSON decoder."""


class _Quantity(str):
    __slots__ = ()


class _Instant(str):
    __slots__ = ()


_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_INT32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_PLAIN: dict[str, Any] = {
    "string": str, "bytes": str, "boolean": bool, "number": float, "int32": _INT32, "int64": _INT64, "any": Any,
    "int|string": _INT32 | str, "quantity": _Quantity, "time": _Instant, "microtime": _Instant,
}  # fmt: skip


def decoded(type_name: str, raw: Document) -> Document:
    """The document with the fields that its type has. Raises `WrongTypeError` for a value of the wrong type."""
    try:
        struct = msgspec.convert(raw, _struct(type_name), dec_hook=_read)
    except msgspec.ValidationError as error:
        raise WrongTypeError(_in_go_words(type_name, str(error))) from None
    decoded: Document = msgspec.to_builtins(struct, enc_hook=str)
    return decoded


def without_nulls(raw: Any) -> Any:
    """A copy without nulls, which Kubernetes reads as absent fields."""
    if isinstance(raw, dict):
        return {key: without_nulls(value) for key, value in raw.items() if value is not None}
    return [without_nulls(value) for value in raw] if isinstance(raw, list) else raw


def unknown(raw: Any, kept: Any, path: str = "") -> Iterator[str]:
    """The paths of the fields that `decoded` dropped."""
    if isinstance(raw, dict) and isinstance(kept, dict):
        for key, value in raw.items():
            below = f"{path}.{key}" if path else str(key)
            if key not in kept:
                if value is not None:
                    yield below
            elif isinstance(value, dict | list):
                yield from unknown(value, kept[key], below)
    elif isinstance(raw, list) and isinstance(kept, list):
        for index, (value, other) in enumerate(zip(raw, kept, strict=False)):
            if isinstance(value, dict | list):
                yield from unknown(value, other, f"{path}[{index}]")


@cache
def _struct(type_name: str) -> type[msgspec.Struct]:
    """The struct of a type. Its attributes are numbered, since the name of a field may be a Python keyword."""
    members = []
    for number, (name, field) in enumerate(builtin_types.fields(type_name).items()):
        kind = _python_type(field.type) | msgspec.UnsetType if field.type != "any" else Any
        default: Any = msgspec.field(default=msgspec.UNSET, name=name)
        if field.default == {}:
            default = msgspec.field(default_factory=_struct(field.type), name=name)
        elif field.default is not builtin_types.MISSING and field.default is not None:
            default = msgspec.field(default=field.default, name=name)
        members.append((f"f{number}", kind, default))
    return msgspec.defstruct(type_name.replace(".", "_"), members, kw_only=True, gc=False)


def _python_type(name: str) -> Any:
    if name.startswith("[]"):
        return list[_python_type(name[2:])]  # type: ignore[misc]
    if name.startswith("{}"):
        return dict[str, _python_type(name[2:])]  # type: ignore[misc]
    return _PLAIN[name] if name in _PLAIN else _struct(name)


def _read(kind: type, value: Any) -> Any:
    if kind is _Quantity:
        return _quantity(value)
    if kind is _Instant and isinstance(value, str) and _INSTANT.fullmatch(value):
        return _Instant(value)
    raise ValueError(f"Expected `time`, got `{type(value).__name__}`")


@lru_cache(maxsize=16384, typed=True)
def _quantity(value: Any) -> _Quantity:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"Expected `quantity`, got `{type(value).__name__}`")
    return _Quantity(canonical(str(value)))


_TYPE_ERROR = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<found>[^`]*)`")
_FOUND_NAMES = {"str": "string", "int": "number", "float": "number", "dict": "object", "list": "array", "bool": "bool"}
_EXPECTED_NAMES = {"str": "string", "object": "struct", "array": "slice"}


def _in_go_words(type_name: str, problem: str) -> str:
    what, _, path = problem.partition(" - at `$")
    path = path.rstrip("`").replace("[...]", "").strip(".")
    parsed = _TYPE_ERROR.match(what)
    if parsed is None:
        return f"{what[:1].lower()}{what[1:]} ({path})" if path else what
    found, expected = parsed["found"], parsed["wanted"].removesuffix(" | null")
    owner = type_name.rsplit(".", 1)[-1]
    return (
        f"json: cannot unmarshal {_FOUND_NAMES.get(found, found)} into Go struct field {owner}.{path} "
        f"of type {_EXPECTED_NAMES.get(expected, expected)}"
    )
