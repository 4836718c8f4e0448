"""CEL, Kubernetes' own functions: lists, regular expressions, URLs, quantities, versions, addresses, formats."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from stowplan.objects import quantity, selectors
from stowplan.plugins.clusters.cel_declared import FORMATS
from stowplan.plugins.clusters.cel_values import (
    Address,
    Amount,
    CelError,
    Format,
    Network,
    Optional,
    Url,
    Version,
    address,
    equal,
    less,
    network,
    version,
)

_NETWORKS = (ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Interface, ipaddress.IPv6Interface)
_LARGEST = 1 << 63
_QUERY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]*")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise CelError("no such overload")
    return value


def _of(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise CelError("no such overload")
    return value


# -- lists


def _sorted(items: Any) -> bool:
    return not any(less(after, before) for before, after in zip(_of(items, list), items[1:], strict=False))


def _sum(items: Any) -> Any:
    if not _of(items, list):
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
    if not _of(items, list):
        raise CelError(f"{what} called on empty list")
    found = items[0]
    for item in items[1:]:
        if better(item, found):
            found = item
    return found


def _place(items: Any, wanted: Any) -> int:
    return next((place for place, item in enumerate(_of(items, list)) if equal(item, wanted)), -1)


def _last_place(items: Any, wanted: Any) -> int:
    places = [place for place, item in enumerate(_of(items, list)) if equal(item, wanted)]
    return places[-1] if places else -1


# -- regular expressions, by RE2: Python's own may take for ever


def _pattern(text: Any) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(_text(text), options=options)
    except re2.error as error:
        raise CelError(f"illegal regex: {error}") from None


def _find(text: Any, pattern: Any) -> str:
    found = _pattern(pattern).search(_text(text))
    return found.group(0) if found is not None else ""


def _find_all(text: Any, pattern: Any, most: Any = -1) -> list[str]:
    found = [match.group(0) for match in _pattern(pattern).finditer(_text(text))]
    return found if most < 0 else found[:most]


# -- URLs


def _url(text: Any) -> Url:
    found = _parse_url(_text(text))
    if found is None:
        raise CelError(f"URL parse error: {text!r}")
    return found


def _parse_url(text: str) -> Url | None:
    """What Go takes for a request's target: absolute, or a path."""
    if not text or re.search(r"[\x00-\x20\x7f]", text) or not (text.startswith("/") or _QUERY.fullmatch(text)):
        return None
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    if parts.scheme and not text[len(parts.scheme) + 1 :].startswith("/"):
        return None
    return Url(parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query)


def _hostname(url: Any) -> str:
    host: str = _of(url, Url).host
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _port(url: Any) -> str:
    host: str = _of(url, Url).host
    return (host.rpartition("]")[2] if host.startswith("[") else host).partition(":")[2]


def _query(url: Any) -> dict[str, list[str]]:
    return parse_qs(_of(url, Url).query, keep_blank_values=True)


# -- quantities


def _quantity(text: Any) -> Amount:
    try:
        return Amount(quantity.nanos(_text(text)))
    except ValueError as error:
        raise CelError(str(error)) from None


def _is(read: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def run(text: Any) -> bool:
        try:
            read(_text(text))
        except CelError:
            if not isinstance(text, str):
                raise
            return False
        return True

    return run


def _whole(amount: Any) -> bool:
    nanos = _of(amount, Amount).nanos
    return not nanos % quantity.NANO and -_LARGEST <= nanos // quantity.NANO < _LARGEST


def _as_integer(amount: Any) -> int:
    if not _whole(amount):
        raise CelError("cannot convert value to integer")
    return int(amount.nanos // quantity.NANO)


def _plus(amount: Any, other: Any, sign: int = 1) -> Amount:
    added = other * quantity.NANO if isinstance(other, int) else _of(other, Amount).nanos
    return Amount(_of(amount, Amount).nanos + sign * added)


def _compare(left: Any, right: Any) -> int:
    a, b = _comparable(left), _comparable(right)
    if type(left) is not type(right):
        raise CelError("no such overload")
    return int(a > b) - int(a < b)


def _comparable(value: Any) -> Any:
    return value.nanos if isinstance(value, Amount) else _of(value, Version).order


def _sign(amount: Any) -> int:
    nanos = _of(amount, Amount).nanos
    return int(nanos > 0) - int(nanos < 0)


# -- versions, addresses


def _semver(text: Any) -> Version:
    found = version(_text(text))
    if found is None:
        raise CelError(f"no semantic version: {text!r}")
    return found


def _ip(value: Any) -> Address:
    if isinstance(value, ipaddress.IPv4Interface | ipaddress.IPv6Interface):
        return value.ip
    found = address(_text(value))
    if found is None:
        raise CelError(f"IP Address {value!r} parse error")
    return found


def _cidr(text: Any) -> Network:
    found = network(_text(text))
    if found is None:
        raise CelError(f"CIDR {text!r} parse error")
    return found


def is_network(value: Any) -> bool:
    return isinstance(value, _NETWORKS)


def _address(value: Any) -> Any:
    if isinstance(value, ipaddress.IPv4Interface | ipaddress.IPv6Interface):
        raise CelError("no such overload")
    return _of(value, ipaddress.IPv4Address | ipaddress.IPv6Address)


def _interface(value: Any) -> Any:
    return _of(value, ipaddress.IPv4Interface | ipaddress.IPv6Interface)


def _contains_ip(net: Any, inner: Any) -> bool:
    return (_ip(inner) if isinstance(inner, str) else _address(inner)) in _interface(net).network


def _contains_cidr(net: Any, inner: Any) -> bool:
    outer, other = _interface(net).network, (_cidr(inner) if isinstance(inner, str) else _interface(inner)).network
    return bool(outer.version == other.version and other.subnet_of(outer))


def _global_unicast(value: Any) -> bool:
    found = _address(value)
    broadcast = ipaddress.IPv4Address("255.255.255.255")
    apart = found.is_unspecified or found.is_loopback or found.is_multicast or found.is_link_local
    return not apart and found != broadcast


def _link_local_multicast(value: Any) -> bool:
    found = _address(value)
    net = "224.0.0.0/24" if found.version == 4 else "ff02::/16"
    return found in ipaddress.ip_network(net)


def _masked(net: Any) -> Network:
    return ipaddress.ip_interface(str(_interface(net).network))


# -- formats


def _dns(text: str, longest: int, pattern: str) -> bool:
    return len(text) <= longest and re.fullmatch(pattern, text, re.ASCII) is not None


_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = r"[a-z](?:[-a-z0-9]*[a-z0-9])?"
_UUID = r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def _moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return re.fullmatch(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d.*", text) is not None


def _day(text: str) -> bool:
    try:
        datetime.strptime(text, "%Y-%m-%d")
    except ValueError:
        return False
    return len(text) == 10


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True


_RULES: dict[str, Callable[[str], bool]] = {
    "dns1123Label": lambda text: _dns(text, 63, _LABEL),
    "dns1123Subdomain": lambda text: _dns(text, 253, rf"{_LABEL}(?:\.{_LABEL})*"),
    "dns1035Label": lambda text: _dns(text, 63, _LABEL_1035),
    "qualifiedName": selectors.is_label_key,
    "dns1123LabelPrefix": lambda text: _dns(text.removesuffix("-") + "a" * text.endswith("-"), 63, _LABEL),
    "dns1123SubdomainPrefix": lambda text: _dns(
        text.removesuffix("-") + "a" * text.endswith("-"), 253, rf"{_LABEL}(?:\.{_LABEL})*"
    ),
    "dns1035LabelPrefix": lambda text: _dns(text.removesuffix("-") + "a" * text.endswith("-"), 63, _LABEL_1035),
    "labelValue": lambda text: _dns(text, 63, r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"),
    "uri": lambda text: _parse_url(text) is not None,
    "uuid": lambda text: re.fullmatch(_UUID, text) is not None,
    "byte": _is_base64,
    "date": _day,
    "datetime": _moment,
}


def _named(name: Any) -> Optional:
    return Optional(Format(name), True) if _text(name) in _RULES else Optional()


def _validate(form: Any, text: Any) -> Optional:
    """What is wrong with a text; nothing if it is right."""
    name = _of(form, Format).name
    return Optional() if _RULES[name](_text(text)) else Optional([f"no valid {name}"], True)


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
    "isURL": _is(_url),
    "getScheme": lambda url: _of(url, Url).scheme,
    "getHost": lambda url: _of(url, Url).host,
    "getHostname": _hostname,
    "getPort": _port,
    "getEscapedPath": lambda url: quote(_of(url, Url).path, safe="/%:@!$&'()*+,;=-._~"),
    "getQuery": _query,
    "quantity": _quantity,
    "isQuantity": _is(_quantity),
    "sign": _sign,
    "isInteger": _whole,
    "asInteger": _as_integer,
    "asApproximateFloat": lambda amount: _of(amount, Amount).nanos / quantity.NANO,
    "add": _plus,
    "sub": lambda amount, other: _plus(amount, other, -1),
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "compareTo": _compare,
    "semver": _semver,
    "isSemver": _is(_semver),
    "major": lambda found: _of(found, Version).major,
    "minor": lambda found: _of(found, Version).minor,
    "patch": lambda found: _of(found, Version).patch,
    "ip": _ip,
    "isIP": _is(_ip),
    "ip.isCanonical": lambda text: str(_ip(_text(text))) == text,
    "family": lambda found: _address(found).version,
    "isUnspecified": lambda found: _address(found).is_unspecified,
    "isLoopback": lambda found: _address(found).is_loopback,
    "isLinkLocalMulticast": _link_local_multicast,
    "isLinkLocalUnicast": lambda found: _address(found).is_link_local,
    "isGlobalUnicast": _global_unicast,
    "cidr": _cidr,
    "isCIDR": _is(_cidr),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "masked": _masked,
    "prefixLength": lambda net: _interface(net).network.prefixlen,
    "string": str,
    "format.named": _named,
    **{f"format.{name}": (lambda name=name: Format(name)) for name in FORMATS},
    "validate": _validate,
}
