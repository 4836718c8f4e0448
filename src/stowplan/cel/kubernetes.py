"""CEL, Kubernetes' own functions: lists, regular expressions, URLs, quantities, versions; with those of `cel_networks`
and `cel_formats`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, quote

from stowplan.cel import formats, networks
from stowplan.cel.values import (
    Amount,
    CelError,
    Url,
    Version,
    as_kind,
    as_text,
    can_be_read,
    equal,
    less,
    read_by,
    url,
    version,
)
from stowplan.objects import quantity

_LARGEST = 1 << 63


# -- lists


def _sorted(items: Any) -> bool:
    return not any(less(after, before) for before, after in zip(as_kind(items, list), items[1:], strict=False))


def _sum(items: Any) -> Any:
    if not as_kind(items, list):
        return 0
    total = items[0]
    for item in items[1:]:
        if type(item) is not type(total) or isinstance(item, bool | str):
            raise CelError("no such overload")
        total += item
    if isinstance(total, int) and not -_LARGEST <= total < _LARGEST:
        raise CelError("integer overflow")
    return total


def _extreme(items: Any, better: Callable[[Any, Any], bool], what: str) -> Any:
    if not as_kind(items, list):
        raise CelError(f"{what} called on empty list")
    found = items[0]
    for item in items[1:]:
        if better(item, found):
            found = item
    return found


def _place(items: Any, wanted: Any) -> int:
    return next((place for place, item in enumerate(as_kind(items, list)) if equal(item, wanted)), -1)


def _last_place(items: Any, wanted: Any) -> int:
    places = [place for place, item in enumerate(as_kind(items, list)) if equal(item, wanted)]
    return places[-1] if places else -1


# -- regular expressions, by RE2: Python's own may take for ever


def _pattern(text: Any) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(as_text(text), options=options)
    except re2.error as error:
        raise CelError(f"illegal regex: {error}") from None


def _find(text: Any, pattern: Any) -> str:
    found = _pattern(pattern).search(as_text(text))
    return found.group(0) if found is not None else ""


def _find_all(text: Any, pattern: Any, most: Any = -1) -> list[str]:
    found = [match.group(0) for match in _pattern(pattern).finditer(as_text(text))]
    return found if most < 0 else found[:most]


# -- URLs


def _url(text: Any) -> Any:
    return read_by(url, text, f"URL parse error: {text!r}")


def _hostname(url: Any) -> str:
    host: str = as_kind(url, Url).host
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _port(url: Any) -> str:
    host: str = as_kind(url, Url).host
    return (host.rpartition("]")[2] if host.startswith("[") else host).partition(":")[2]


def _query(url: Any) -> dict[str, list[str]]:
    return parse_qs(as_kind(url, Url).query, keep_blank_values=True)


# -- quantities


def _quantity(text: Any) -> Amount:
    try:
        return Amount(quantity.nanos(as_text(text)))
    except ValueError as error:
        raise CelError(str(error)) from None


def _whole(amount: Any) -> bool:
    nanos = as_kind(amount, Amount).nanos
    return not nanos % quantity.NANO and -_LARGEST <= nanos // quantity.NANO < _LARGEST


def _as_integer(amount: Any) -> int:
    if not _whole(amount):
        raise CelError("cannot convert value to integer")
    return int(amount.nanos // quantity.NANO)


def _plus(amount: Any, other: Any, sign: int = 1) -> Amount:
    added = other * quantity.NANO if isinstance(other, int) else as_kind(other, Amount).nanos
    return Amount(as_kind(amount, Amount).nanos + sign * added)


def _compare(left: Any, right: Any) -> int:
    a, b = _comparable(left), _comparable(right)
    if type(left) is not type(right):
        raise CelError("no such overload")
    return int(a > b) - int(a < b)


def _comparable(value: Any) -> Any:
    return value.nanos if isinstance(value, Amount) else as_kind(value, Version).order


def _sign(amount: Any) -> int:
    nanos = as_kind(amount, Amount).nanos
    return int(nanos > 0) - int(nanos < 0)


# -- versions


def _semver(text: Any) -> Any:
    return read_by(version, text, f"no semantic version: {text!r}")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "isSorted": _sorted,
    "sum": _sum,
    "min": lambda items: _extreme(items, less, "min"),
    "max": lambda items: _extreme(items, lambda a, b: less(b, a), "max"),
    "indexOf": _place,
    "lastIndexOf": _last_place,
    "find": _find,
    "findAll": _find_all,
    "url": _url,
    "isURL": can_be_read(_url),
    "getScheme": lambda url: as_kind(url, Url).scheme,
    "getHost": lambda url: as_kind(url, Url).host,
    "getHostname": _hostname,
    "getPort": _port,
    "getEscapedPath": lambda url: quote(as_kind(url, Url).path, safe="/%:@!$&'()*+,;=-._~"),
    "getQuery": _query,
    "quantity": _quantity,
    "isQuantity": can_be_read(_quantity),
    "sign": _sign,
    "isInteger": _whole,
    "asInteger": _as_integer,
    "asApproximateFloat": lambda amount: as_kind(amount, Amount).nanos / quantity.NANO,
    "add": _plus,
    "sub": lambda amount, other: _plus(amount, other, -1),
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "compareTo": _compare,
    "semver": _semver,
    "isSemver": can_be_read(_semver),
    "major": lambda found: as_kind(found, Version).major,
    "minor": lambda found: as_kind(found, Version).minor,
    "patch": lambda found: as_kind(found, Version).patch,
    "string": str,
    **networks.FUNCTIONS,
    **formats.FUNCTIONS,
}
