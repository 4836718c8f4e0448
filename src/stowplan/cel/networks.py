"""Kubernetes' own functions on IP addresses and networks (CIDR)."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from stowplan.cel.sizes import shown
from stowplan.cel.values import CelError, as_string, as_type, parses

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_LONGEST = 64  # characters; no address is longer
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")


def is_network(value: Any) -> bool:
    """True if the value is an address or a network."""
    return isinstance(value, Address | Network)


def _parse_address(text: str) -> Address | None:
    """Parse an address as Kubernetes does: without a zone, and no IPv4 address in the form of IPv6."""
    if len(text) > _LONGEST:
        return None
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address) and (found.ipv4_mapped is not None or found.scope_id):
        return None
    return found


def _parse_network(text: str) -> Network | None:
    before, slash, length = text.partition("/")
    if len(text) > _LONGEST or not slash or not length.isdigit() or (len(length) > 1 and length[0] == "0"):
        return None
    if _parse_address(before) is None:
        return None
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        return None


def _ip(value: Any) -> Address:
    if isinstance(value, Network):
        return value.ip
    address = _parse_address(as_string(value))
    if address is None:
        raise CelError(f"IP Address {shown(value)} parse error")
    return address


def _cidr(text: Any) -> Network:
    network = _parse_network(as_string(text))
    if network is None:
        raise CelError(f"CIDR {shown(text)} parse error")
    return network


def _as_address(value: Any) -> Any:
    if isinstance(value, Network):  # which is an address to Python
        raise CelError("no such overload")
    return as_type(value, Address)


def _as_network(value: Any) -> Any:
    return as_type(value, Network)


def _contains_ip(outer: Any, inner: Any) -> bool:
    return (_ip(inner) if isinstance(inner, str) else _as_address(inner)) in _as_network(outer).network


def _contains_cidr(outer: Any, inner: Any) -> bool:
    whole = _as_network(outer).network
    part = (_cidr(inner) if isinstance(inner, str) else _as_network(inner)).network
    return bool(whole.version == part.version and part.subnet_of(whole))


def _is_global_unicast(value: Any) -> bool:
    found = _as_address(value)
    special = found.is_unspecified or found.is_loopback or found.is_multicast or found.is_link_local
    return not special and found != _BROADCAST


def _is_link_local_multicast(value: Any) -> bool:
    found = _as_address(value)
    return found in ipaddress.ip_network("224.0.0.0/24" if found.version == 4 else "ff02::/16")


def _masked(network: Any) -> Network:
    return ipaddress.ip_interface(str(_as_network(network).network))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ip": _ip,
    "isIP": parses(_ip),
    "ip.isCanonical": lambda text: str(_ip(as_string(text))) == text,
    "family": lambda address: _as_address(address).version,
    "isUnspecified": lambda address: _as_address(address).is_unspecified,
    "isLoopback": lambda address: _as_address(address).is_loopback,
    "isLinkLocalMulticast": _is_link_local_multicast,
    "isLinkLocalUnicast": lambda address: _as_address(address).is_link_local,
    "isGlobalUnicast": _is_global_unicast,
    "cidr": _cidr,
    "isCIDR": parses(_cidr),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "masked": _masked,
    "prefixLength": lambda network: _as_network(network).network.prefixlen,
    "string": str,
}
