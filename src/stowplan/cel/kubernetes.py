"""Kubernetes' own functions on lists, URLs, quantities and semantic versions. Regular expressions are in `patterns`."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, ClassVar
from urllib.parse import parse_qs, quote, urlsplit

from stowplan.cel.sizes import Take, flat, shown
from stowplan.cel.values import (
    CHARACTERS_PER_BYTE,
    CelError,
    as_string,
    as_type,
    equal,
    is_number,
    less,
    parsed,
    parses,
)
from stowplan.objects import quantity

_LARGEST = 1 << 63
_LONGEST_QUANTITY = _LONGEST_VERSION = 256  # characters
_LONGEST_URL = 1 << 14


# -- lists


def _is_sorted(take: Take, items: Any) -> bool:
    _take_order(take, items)
    return not any(less(after, before) for before, after in pairwise(items))


def _sum(items: Any) -> Any:
    if not as_type(items, list):
        return 0
    total = items[0]
    if not is_number(total) and not isinstance(total, timedelta):
        raise CelError("no such overload")
    for item in items[1:]:
        if type(item) is not type(total):
            raise CelError("no such overload")
        try:
            total = total + item
        except OverflowError as error:
            raise CelError(str(error)) from None
    if isinstance(total, int) and not -_LARGEST <= total < _LARGEST:
        raise CelError("integer overflow")
    return total


def _extreme(take: Take, items: Any, better: Callable[[Any, Any], bool], function: str) -> Any:
    if not as_type(items, list):
        raise CelError(f"{function} called on empty list")
    _take_order(take, items)
    found = items[0]
    for item in items[1:]:
        if better(item, found):
            found = item
    return found


def _take_order(take: Take, items: Any) -> None:
    """Count what comparing each element with another one reads."""
    take(flat(items) + sum(flat(item) for item in as_type(items, list)) // CHARACTERS_PER_BYTE)


def _index_of(take: Take, items: Any, wanted: Any) -> int:
    return next((index for index, item in enumerate(as_type(items, list)) if equal(item, wanted, take)), -1)


def _last_index_of(take: Take, items: Any, wanted: Any) -> int:
    last = len(as_type(items, list)) - 1
    return next((index for index in range(last, -1, -1) if equal(items[index], wanted, take)), -1)


# -- URLs


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    host: str
    path: str
    query: str


_split_url = inspect.unwrap(urlsplit)  # without its cache, which would keep what expressions make
_ABSOLUTE_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]*")


def parse_url(text: str) -> Url | None:
    """Parse what Go takes for the target of a request: an absolute URL, or a path."""
    if not 0 < len(text) <= _LONGEST_URL or re.search(r"[\x00-\x20\x7f]", text):
        return None
    if not text.startswith("/") and not _ABSOLUTE_URL.fullmatch(text):
        return None
    try:
        parts = _split_url(text)
        _ = parts.port
    except ValueError:
        return None
    if parts.scheme and not text[len(parts.scheme) + 1 :].startswith("/"):
        return None
    return Url(parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query)


def _url(text: Any) -> Url:
    return parsed(parse_url, text, f"URL parse error: {shown(text)}")


def _hostname(url: Any) -> str:
    host: str = as_type(url, Url).host
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _port(url: Any) -> str:
    host: str = as_type(url, Url).host
    return (host.rpartition("]")[2] if host.startswith("[") else host).partition(":")[2]


def _query(url: Any) -> dict[str, list[str]]:
    return parse_qs(as_type(url, Url).query, keep_blank_values=True)


# -- quantities


@dataclass(frozen=True, slots=True)
class CelQuantity:
    cel_type: ClassVar = "Quantity"

    nanos: int


_NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _quantity(text: Any) -> CelQuantity:
    if len(as_string(text)) > _LONGEST_QUANTITY:
        raise CelError(f"a quantity of {len(text)} characters is too long; {_LONGEST_QUANTITY} are the most")
    try:
        return CelQuantity(quantity.nanos(as_string(text)))
    except ValueError:
        raise CelError(_NO_QUANTITY) from None


def _is_integer(amount: Any) -> bool:
    nanos = as_type(amount, CelQuantity).nanos
    return not nanos % quantity.NANO and -_LARGEST <= nanos // quantity.NANO < _LARGEST


def _as_integer(amount: Any) -> int:
    if not _is_integer(amount):
        raise CelError("cannot convert value to integer")
    return int(amount.nanos // quantity.NANO)


def _approximate(amount: Any) -> float:
    nanos = as_type(amount, CelQuantity).nanos
    try:
        return float(nanos / quantity.NANO)
    except OverflowError:
        return math.copysign(math.inf, nanos)


def _add(amount: Any, other: Any, sign: int = 1) -> CelQuantity:
    added = other * quantity.NANO if isinstance(other, int) else as_type(other, CelQuantity).nanos
    return CelQuantity(as_type(amount, CelQuantity).nanos + sign * added)


def _compare(left: Any, right: Any) -> int:
    a, b = _comparable(left), _comparable(right)
    if type(left) is not type(right):
        raise CelError("no such overload")
    return int(a > b) - int(a < b)


def _comparable(value: Any) -> Any:
    return value.nanos if isinstance(value, CelQuantity) else as_type(value, SemanticVersion).order


def _sign(amount: Any) -> int:
    nanos = as_type(amount, CelQuantity).nanos
    return int(nanos > 0) - int(nanos < 0)


# -- semantic versions


@dataclass(frozen=True, slots=True, eq=False)
class SemanticVersion:
    """Versions that differ in their build metadata alone are equal."""

    major: int
    minor: int
    patch: int
    pre_release: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[Any, ...]:
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre_release)
        return self.major, self.minor, self.patch, not self.pre_release, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SemanticVersion) and self.order == other.order

    def __hash__(self) -> int:
        return hash(self.order)


_VERSION = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)


def parse_version(text: str) -> SemanticVersion | None:
    found = _VERSION.fullmatch(text) if len(text) <= _LONGEST_VERSION else None
    if found is None:
        return None
    pre_release = tuple(found[4].split(".")) if found[4] is not None else ()
    build = tuple(found[5].split(".")) if found[5] is not None else ()
    if any(not part or (part.isdigit() and not _is_number(part)) for part in pre_release):
        return None
    if not all(build) or any(len(found[group]) > 20 for group in (1, 2, 3)):
        return None
    return SemanticVersion(int(found[1]), int(found[2]), int(found[3]), pre_release)


def _is_number(part: str) -> bool:
    """True of a number without leading zeros that fits into 64 bits, as Go reads it."""
    return part == "0" or (part[0] != "0" and len(part) <= 20 and int(part) < 1 << 64)


def _semver(text: Any) -> SemanticVersion:
    return parsed(parse_version, text, f"no semantic version: {shown(text)}")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "url": _url,
    "isURL": parses(_url),
    "getScheme": lambda url: as_type(url, Url).scheme,
    "getHost": lambda url: as_type(url, Url).host,
    "getHostname": _hostname,
    "getPort": _port,
    "getEscapedPath": lambda url: quote(as_type(url, Url).path, safe="/%:@!$&'()*+,;=-._~"),
    "getQuery": _query,
    "quantity": _quantity,
    "isQuantity": parses(_quantity),
    "sign": _sign,
    "isInteger": _is_integer,
    "asInteger": _as_integer,
    "asApproximateFloat": _approximate,
    "add": _add,
    "sub": lambda amount, other: _add(amount, other, -1),
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "compareTo": _compare,
    "semver": _semver,
    "isSemver": parses(_semver),
    "major": lambda version: as_type(version, SemanticVersion).major,
    "minor": lambda version: as_type(version, SemanticVersion).minor,
    "patch": lambda version: as_type(version, SemanticVersion).patch,
}
METERED: dict[str, Callable[..., Any]] = {
    "isSorted": _is_sorted,
    "min": lambda take, items: _extreme(take, items, less, "min"),
    "max": lambda take, items: _extreme(take, items, lambda a, b: less(b, a), "max"),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
}
