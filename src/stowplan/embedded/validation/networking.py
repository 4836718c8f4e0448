"""Ingresses, IngressClasses, Endpoints and EndpointSlices: paths, hosts, addresses, ports."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value, required, unsupported
from stowplan.embedded.validation.metadata import check_name

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PORT = "must be between 1 and 65535, inclusive"
_DOMAIN_PATH = 'must be a domain-prefixed path (such as "acme.io/foo")'
_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_MOST_ENDPOINTS, _MOST_ADDRESSES = 1000, 100


def check_ingress(ingress: Document) -> Iterator[StatusCause]:
    spec = ingress["spec"]
    if not spec.get("rules") and "defaultBackend" not in spec:
        yield invalid_value("spec", None, "either `defaultBackend` or `rules` must be specified")
    if "defaultBackend" in spec:
        yield from _backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules", ())):
        yield from _rule(rule, f"spec.rules[{index}]")
    if spec.get("ingressClassName") is not None:
        yield from check_name("spec.ingressClassName", spec["ingressClassName"])


def _rule(rule: Document, field: str) -> Iterator[StatusCause]:
    host = rule.get("host", "")
    if host and _is_address(host):
        yield invalid_value(f"{field}.host", host, "must be a DNS name, not an IP address")
    elif host:
        yield from check_name(f"{field}.host", host.removeprefix("*."))
    if "http" not in rule:
        return
    if not rule["http"].get("paths"):
        yield required(f"{field}.http.paths")
    for index, path in enumerate(rule["http"].get("paths", ())):
        yield from _path(path, f"{field}.http.paths[{index}]")


def _path(path: Document, field: str) -> Iterator[StatusCause]:
    kind, text = path.get("pathType"), path.get("path", "")
    if kind is None:
        yield required(f"{field}.pathType", "pathType must be specified")
    elif kind not in _PATH_TYPES:
        yield unsupported(f"{field}.pathType", kind, _PATH_TYPES)
    elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
        yield invalid_value(f"{field}.path", text, "must be an absolute path")
    yield from _backend(path["backend"], f"{field}.backend")


def _backend(backend: Document, field: str) -> Iterator[StatusCause]:
    service = backend.get("service")
    if service is not None and "resource" in backend:
        yield invalid_value(field, "", "cannot set both resource and service backends")
    elif service is None and "resource" not in backend:
        yield required(field, "resource or service backend is required")
    if service is None:
        return
    if not service.get("name"):
        yield required(f"{field}.service.name")
    port = service.get("port", {})
    if port.get("name") and port.get("number"):
        yield invalid_value(field, "", "cannot set both port name & port number")
    elif port.get("number"):
        yield from _port(port["number"], f"{field}.service.port.number")
    elif not port.get("name"):
        yield required(field, "port name or number is required")


def check_ingress_class(document: Document) -> Iterator[StatusCause]:
    controller = document["spec"].get("controller", "")
    if len(controller) > 250:
        yield StatusCause("spec.controller", "Too long: may not be more than 250 bytes", "FieldValueTooLong")
    if not controller:
        yield required("spec.controller")
    elif not re.fullmatch(r"[a-z0-9.-]+/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", controller):
        yield invalid_value("spec.controller", controller, _DOMAIN_PATH)


def check_ingress_class_update(document: Document, old: Document) -> Iterator[StatusCause]:
    if document["spec"].get("controller") != old["spec"].get("controller"):
        yield invalid_value("spec.controller", document["spec"].get("controller"), "field is immutable")


def check_endpoints(endpoints: Document) -> Iterator[StatusCause]:
    for index, subset in enumerate(endpoints.get("subsets", ())):
        field = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(field, "must specify `addresses` or `notReadyAddresses`")
        for part in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(part, ())):
                yield from _address(address["ip"], f"{field}.{part}[{number}].ip")
                yield from _special(address["ip"], f"{field}.{part}[{number}].ip")
        for number, port in enumerate(subset.get("ports", ())):
            if len(subset["ports"]) > 1 and not port.get("name"):
                yield required(f"{field}.ports[{number}].name")
            yield from _port(port["port"], f"{field}.ports[{number}].port")
            yield from _protocol(port["protocol"], f"{field}.ports[{number}].protocol")


def check_endpoint_slice(document: Document) -> Iterator[StatusCause]:
    kind = document.get("addressType", "")
    if not kind:
        yield required("addressType")
    elif kind not in _ADDRESS_TYPES:
        yield unsupported("addressType", kind, _ADDRESS_TYPES)
    if len(document["endpoints"]) > _MOST_ENDPOINTS:
        yield _too_many("endpoints", len(document["endpoints"]), _MOST_ENDPOINTS)
    for index, endpoint in enumerate(document["endpoints"]):
        yield from _endpoint(endpoint, kind, f"endpoints[{index}].addresses")
    names = [port.get("name", "") for port in document.get("ports", ())]
    for index, port in enumerate(document.get("ports", ())):
        if names.index(names[index]) != index:
            yield StatusCause(f"ports[{index}].name", f'Duplicate value: "{names[index]}"', "FieldValueDuplicate")
        if "port" in port:
            yield from _port(port["port"], f"ports[{index}].port")
        yield from _protocol(port["protocol"], f"ports[{index}].protocol")


def _endpoint(endpoint: Document, kind: str, field: str) -> Iterator[StatusCause]:
    addresses = endpoint.get("addresses", [])
    if not addresses:
        yield required(field, "must contain at least 1 address")
    elif len(addresses) > _MOST_ADDRESSES:
        yield _too_many(field, len(addresses), _MOST_ADDRESSES)
    for number, address in enumerate(addresses):
        if kind == "FQDN":
            yield from check_name(f"{field}[{number}]", address)
        elif kind in ("IPv4", "IPv6"):
            yield from _family(address, field, kind)
            yield from _address(address, f"{field}[{number}]")
            if _is_address(address):
                yield from _special(address, f"{field}[{number}]")


def check_endpoint_slice_update(document: Document, old: Document) -> Iterator[StatusCause]:
    if document.get("addressType") != old.get("addressType"):
        yield invalid_value("addressType", document.get("addressType"), "field is immutable")


def _too_many(field: str, found: int, most: int) -> StatusCause:
    message = f"Too many: {found}: must have at most {most} items"
    return StatusCause(field, message, "FieldValueTooMany")


def _address(text: str, field: str) -> Iterator[StatusCause]:
    if not _is_address(text):
        yield invalid_value(field, text, _ADDRESS)


def _special(text: str, field: str) -> Iterator[StatusCause]:
    """Addresses that mean something else than an endpoint."""
    why = _not_routable(ipaddress.ip_address(text)) if _is_address(text) else "must be a valid IP address"
    if why:
        yield invalid_value(field, text, why)


def _family(text: str, field: str, kind: str) -> Iterator[StatusCause]:
    if _is_address(text) and ipaddress.ip_address(text).version != int(kind[-1]):
        yield invalid_value(field, text, f"must be an {kind} address")


def _not_routable(address: Any) -> str:
    if address.is_unspecified:
        return "may not be unspecified (0.0.0.0 or ::)"
    if address.is_loopback:
        return "may not be in the loopback range (127.0.0.0/8, ::1/128)"
    if address.is_link_local:
        return "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
    return ""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _port(number: int, field: str) -> Iterator[StatusCause]:
    if not 0 < number < 65536:
        yield invalid_value(field, number, _PORT)


def _protocol(text: str, field: str) -> Iterator[StatusCause]:
    if text not in _PROTOCOLS:
        yield unsupported(field, text, _PROTOCOLS)
