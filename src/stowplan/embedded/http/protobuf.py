"""Decodes the protobuf of Kubernetes: kubectl and Go clients use it to create built-in kinds.

A body is a magic number of four bytes and an envelope with the kind and the message. The field numbers are recorded
(`protobuf_fields.json`, made by tests/embedded). Go also writes the zeros of plain fields; they are dropped, as they
are in JSON. Responses are always JSON, which all these clients accept.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from stowplan.embedded.documents import Document
from stowplan.embedded.schema import builtin_types
from stowplan.embedded.timestamps import micro_stamp, stamp

MEDIA = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\0"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SPECIAL = ("quantity", "int|string", "time", "microtime", "duration", "raw")
_YEAR_10000 = 253_402_300_800  # seconds since 1970
_NUMBERS = ("int32", "int64", "boolean")


class MalformedError(ValueError):
    """Not protobuf, or of an unknown kind."""


def decode(body: bytes) -> Document:
    """The object in a body, as plain JSON values."""
    if not body.startswith(_MAGIC):
        raise MalformedError("the body does not begin with the magic of Kubernetes' protobuf")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    about = dict(_fields(_bytes(envelope.get(1, b""))))
    version, kind = _text(about.get(1, b"")), _text(about.get(2, b""))
    name = builtin_types.type_of(version, kind) or ("meta.v1.DeleteOptions" if kind == "DeleteOptions" else "")
    if name not in _wire():
        raise MalformedError(f'no kind "{kind}" is known for version "{version}" in protobuf')
    return {"apiVersion": version, "kind": kind, **_message(_bytes(envelope.get(2, b"")), name)}


@cache
def _wire() -> dict[str, dict[int, tuple[str, str]]]:
    """By type and field number: the name of the field, and its type with a prefix."""
    recorded = json.loads(files(__package__).joinpath("protobuf_fields.json").read_bytes())
    return {
        name: {int(number): (text.split(" ")[0], text.split(" ")[1]) for number, text in fields.items()}
        for name, fields in recorded.items()
    }


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                value, at = _varint(data, at)
                yield key >> 3, value
            case 1 | 5 as width:
                size = 8 if width == _FIXED64 else 4
                yield key >> 3, data[at : at + size]
                at += size
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise MalformedError("unexpected end of message")
                yield key >> 3, data[at : at + size]
                at += size
            case other:
                raise MalformedError(f"unknown wire type {other}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise MalformedError("unexpected end of number")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _message(data: bytes, type_name: str) -> Document:
    known = _wire().get(type_name, {})
    found: Document = {}
    for number, value in _fields(data):
        if number not in known:
            continue
        name, kind = known[number]
        bare = kind.lstrip("+*")
        if kind.startswith("+"):
            found |= _message(_bytes(value), bare)
        elif bare.startswith("[]"):
            found.setdefault(name, []).extend(_items(value, bare[2:]))
        elif bare.startswith("{}"):
            entry = dict(_fields(_bytes(value)))
            found.setdefault(name, {})[_text(entry.get(1, b""))] = _value(entry.get(2, b""), bare[2:])
        else:
            read = _value(value, bare)
            if kind.startswith("*") or read not in ("", 0, False, None, {}):
                found[name] = read
    return found


def _items(value: int | bytes, kind: str) -> list[Any]:
    """One item, or many numbers packed into one field."""
    if kind in _NUMBERS and isinstance(value, bytes):
        packed, at = [], 0
        while at < len(value):
            number, at = _varint(value, at)
            packed.append(_value(number, kind))
        return packed
    return [_value(value, kind)]


def _value(value: int | bytes, kind: str) -> Any:
    if kind == "string":
        return _text(value)
    if kind in _NUMBERS:
        number = value if isinstance(value, int) else 0
        signed = number - (1 << 64) if number >> 63 else number
        return bool(number) if kind == "boolean" else signed
    data = _bytes(value)
    if kind == "bytes":
        return base64.b64encode(data).decode()
    if kind.startswith("[]"):  # a list that is a type of its own is encoded as a message
        return [_value(item, kind[2:]) for _, item in _fields(data)]
    return _special(data, kind) if kind in _SPECIAL else _message(data, kind)


def _special(data: bytes, kind: str) -> Any:
    fields = dict(_fields(data))
    first = fields.get(1, 0)
    match kind:
        case "quantity":
            return _text(fields.get(1, b"0"))
        case "int|string":
            return _text(fields.get(3, b"")) if first else _value(fields.get(2, 0), "int32")
        case "time" | "microtime":
            return _time(_value(first, "int64"), _value(fields.get(2, 0), "int64"), micro=kind == "microtime")
        case "raw":
            try:
                return msgspec.json.decode(_bytes(fields.get(1, b"null")))
            except msgspec.DecodeError as error:
                raise MalformedError(str(error)) from None
        case _:
            return f"{_value(first, 'int64')}ns"


def _time(whole: int, nanos: int, *, micro: bool) -> str | None:
    """A time as text; None before 1970, where Go has its zero."""
    seconds = whole + nanos / 1e9
    if seconds >= _YEAR_10000:
        raise MalformedError("a time is out of range: the year is above 9999")
    if seconds <= 0:
        return None
    return micro_stamp(seconds) if micro else stamp(seconds)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise MalformedError("a number where a message should be")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise MalformedError(str(error)) from None
