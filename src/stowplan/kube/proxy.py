"""The HTTP proxy of a server: named by the kubeconfig, or else by the environment.

HTTPS_PROXY, HTTP_PROXY and NO_PROXY have the same meaning as for kubectl: NO_PROXY lists hosts, domains with their
subdomains, addresses and networks. A proxy of the environment is never used for loopback.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from stowplan.objects.errors import ConfigError


class Proxy(msgspec.Struct, frozen=True):
    host: str
    port: int
    tls: bool
    authorization: str = ""  # the value of Proxy-Authorization


def parse(url: str, file: str) -> Proxy:
    """The proxy of an address such as http://user:password@proxy.example:3128; `file` is for the error message."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        usable, port = parts.scheme in ("http", "https") and bool(parts.hostname), parts.port
    except ValueError:  # a port that is none
        usable = False
    if not usable or parts.hostname is None:
        problem = f'found the proxy "{url}", expected an address such as http://proxy.example:3128'
        raise ConfigError(problem, file=file)
    tls = parts.scheme == "https"
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(parts.hostname, port or (443 if tls else 80), tls, authorization)


def from_environment(server: str, environ: Mapping[str, str]) -> Proxy | None:
    parts = urlsplit(server)
    host, name = parts.hostname or "", f"{parts.scheme.upper()}_PROXY"
    url = environ.get(name) or environ.get(name.lower())
    if not url or _direct(host, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    return parse(url, name)


def _direct(host: str, exceptions: str) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(
        _covers(entry.strip().lower(), host.lower(), address) for entry in exceptions.split(",") if entry.strip()
    )


def _covers(entry: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if entry == "*":
        return True
    if address is not None:
        try:
            return address in ipaddress.ip_network(entry.rpartition(":")[0] if entry.count(":") == 1 else entry, False)
        except ValueError:
            return False
    domain = entry.partition(":")[0].removeprefix("*").removeprefix(".")
    return host.endswith(f".{domain}") or (host == domain and not entry.startswith((".", "*")))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
