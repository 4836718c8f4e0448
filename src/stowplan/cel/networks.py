"""CEL, Kubernetes' own functions on addresses and networks."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from stowplan.cel.values import CelError, Network, address, as_kind, as_text, can_be_read, network, read_by

_NETWORKS = (ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Interface, ipaddress.IPv6Interface)


def _ip(value: Any) -> Any:
    if isinstance(value, ipaddress.IPv4Interface | ipaddress.IPv6Interface):
        return value.ip
    return read_by(address, value, f"IP Address {value!r} parse error")


def _cidr(text: Any) -> Any:
    return read_by(network, text, f"CIDR {text!r} parse error")


def is_network(value: Any) -> bool:
    return isinstance(value, _NETWORKS)


def _address(value: Any) -> Any:
    if isinstance(value, ipaddress.IPv4Interface | ipaddress.IPv6Interface):
        raise CelError("no such overload")
    return as_kind(value, ipaddress.IPv4Address | ipaddress.IPv6Address)


def _interface(value: Any) -> Any:
    return as_kind(value, ipaddress.IPv4Interface | ipaddress.IPv6Interface)


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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ip": _ip,
    "isIP": can_be_read(_ip),
    "ip.isCanonical": lambda text: str(_ip(as_text(text))) == text,
    "family": lambda found: _address(found).version,
    "isUnspecified": lambda found: _address(found).is_unspecified,
    "isLoopback": lambda found: _address(found).is_loopback,
    "isLinkLocalMulticast": _link_local_multicast,
    "isLinkLocalUnicast": lambda found: _address(found).is_link_local,
    "isGlobalUnicast": _global_unicast,
    "cidr": _cidr,
    "isCIDR": can_be_read(_cidr),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "masked": _masked,
    "prefixLength": lambda net: _interface(net).network.prefixlen,
}
