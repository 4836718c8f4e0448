"""CEL, its values: what is equal to what, what comes before what, and Kubernetes' own types among them.

Texts, numbers, lists and maps are Python's. An unsigned integer is a type of its own (`UInt`); numbers of different
types are compared by their worth.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from stowplan.cel.environment import UInt


class CelError(Exception):
    """What went wrong while an expression ran; it makes the expression false of that cluster."""


class CostError(Exception):
    """The expression costs too much; nothing in it can catch that."""


@dataclass(frozen=True, slots=True)
class Optional:
    value: Any = None
    there: bool = False


@dataclass(frozen=True, slots=True)
class Type:
    name: str


@dataclass(frozen=True, slots=True)
class Amount:
    """A Kubernetes quantity, in nano-units."""

    nanos: int


@dataclass(frozen=True, slots=True)
class Format:
    name: str


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version; what is built of it does not count."""

    major: int
    minor: int
    patch: int
    before: tuple[str, ...] = ()  # the parts of a pre-release
    build: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[Any, ...]:
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.before)
        return self.major, self.minor, self.patch, not self.before, parts

    def __lt__(self, other: Version) -> bool:
        return self.order < other.order


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    host: str
    path: str
    query: str


Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_VERSION = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)
_TYPES = {
    name: Type(name)
    for name in (
        *("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type"),
        *("google.protobuf.Timestamp", "google.protobuf.Duration"),
    )
}


def typed(name: str) -> Type:
    """A name that is no variable: a type's."""
    found = _TYPES.get(name)
    if found is None:
        raise CelError(f"no such attribute: {name}")
    return found


def type_of(value: Any) -> Type:
    return _TYPES.get(kind_of(value)) or Type(kind_of(value))


def kind_of(value: Any) -> str:
    for kind, name in _KINDS.items():
        if isinstance(value, kind):
            return name
    return "null_type" if value is None else type(value).__name__


_KINDS: dict[type, str] = {
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


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Values of different types are not equal, but numbers may be."""
    if is_number(left) and is_number(right):
        return bool(left == right)
    if isinstance(left, Optional) and isinstance(right, Optional):
        return left.there == right.there and (not left.there or equal(left.value, right.value))
    if kind_of(left) != kind_of(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(value, right[key]) for key, value in left.items())
    if isinstance(left, Version):
        return bool(left.order == right.order)
    return bool(left == right)


def less(left: Any, right: Any) -> bool:
    if is_number(left) and is_number(right):
        return bool(left < right)
    if kind_of(left) == kind_of(right) and isinstance(left, str | bytes | bool | datetime | timedelta):
        if isinstance(left, str):
            return bool(left.encode() < right.encode())
        return bool(left < right)
    raise CelError("no such overload: the two cannot be compared")


def version(text: str) -> Version | None:
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    before = tuple(found[4].split(".")) if found[4] is not None else ()
    build = tuple(found[5].split(".")) if found[5] is not None else ()
    if any(not part or (part.isdigit() and len(part) > 1 and part[0] == "0") for part in before):
        return None
    if not all(build) or any(len(found[place]) > 20 for place in (1, 2, 3)):
        return None
    return Version(int(found[1]), int(found[2]), int(found[3]), before, build)


def address(text: str) -> Address | None:
    """As Kubernetes reads addresses: no zone, no IPv4 dressed up as IPv6."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address) and (found.ipv4_mapped is not None or found.scope_id):
        return None
    return found


def network(text: str) -> Network | None:
    before, slash, length = text.partition("/")
    if not slash or not length.isdigit() or (len(length) > 1 and length[0] == "0") or address(before) is None:
        return None
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        return None


_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]*")


def url(text: str) -> Url | None:
    """What Go takes for a request's target: absolute, or a path."""
    if not text or re.search(r"[\x00-\x20\x7f]", text) or not (text.startswith("/") or _ABSOLUTE.fullmatch(text)):
        return None
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    if parts.scheme and not text[len(parts.scheme) + 1 :].startswith("/"):
        return None
    return Url(parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query)


# -- what a function is given


def as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise CelError("no such overload")
    return value


def as_kind(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise CelError("no such overload")
    return value


def can_be_read(read: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Whether a text can be read so."""

    def run(text: Any) -> bool:
        try:
            read(as_text(text))
        except CelError:
            if not isinstance(text, str):
                raise
            return False
        return True

    return run


def read_by(read: Callable[[str], Any], text: Any, problem: str) -> Any:
    """What a text says; `problem` if it says nothing of the kind."""
    found = read(as_text(text))
    if found is None:
        raise CelError(problem)
    return found
