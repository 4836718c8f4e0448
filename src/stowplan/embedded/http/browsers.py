"""Web pages must not reach a cluster on the loopback: their browser sends requests where they could not.

A cluster without a token trusts who can connect. A browser can, for any page that its user visits, in two ways:

- DNS rebinding: the page's own name resolves to 127.0.0.1, so the page may read the answers. The Host header has that
  name: only loopback addresses, localhost and the name that the server was told to listen on are answered.
- Cross-site requests: the page sends a form, or a `fetch` without asking the server first. Browsers say where they come
  from (Origin, Sec-Fetch-Site), and without asking first they cannot send a body as JSON: a body needs a type that they
  would have to ask for.

kubectl and client-go send none of these headers, and always a proper type. With a token nothing of this is needed: no
page knows it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from stowplan.embedded.errors import ApiError, bad_request, unsupported_media

_OWN_SITES = ("same-origin", "none")  # the page is ours, or there is no page
_OF_FORMS = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_not_from_a_page(headers: Mapping[str, str], content_type: str, *, has_body: bool, listens_on: str) -> None:
    """Raise ApiError for a request that a foreign web page may have sent."""
    host = headers.get("Host", "")
    if not host:
        raise bad_request("the request has no Host header")
    name = _name(host)
    if not is_loopback(name) and name.lower() != listens_on.lower():
        raise _refused(f"the Host {_shown(host)} is not this server's: use 127.0.0.1 or localhost")
    origin = headers.get("Origin")
    if origin is not None and origin.lower() != f"http://{host}".lower():
        raise _refused(f"the request comes from a page of {_shown(origin)}")
    site = headers.get("Sec-Fetch-Site", "none")
    if site not in _OWN_SITES:
        raise _refused(f"the request comes from a page of another site (Sec-Fetch-Site: {_shown(site)})")
    if has_body and content_type.lower() in _OF_FORMS:
        raise unsupported_media("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")


def _name(host: str) -> str:
    """Return a Host header without its port, and without the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _refused(why: str) -> ApiError:
    return ApiError(403, "Forbidden", f"forbidden: {why}", {})


def _shown(text: str) -> str:
    return ascii(text[:100])
