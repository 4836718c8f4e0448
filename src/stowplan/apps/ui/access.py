"""Who may read the pages, and what a browser may do with them.

The server listens on the loopback only. Still, every page that the user visits can make the browser send requests
there, and every user of the machine can connect. So a request must

- be GET or HEAD: nothing is changed here, and nothing else is answered;
- name this server as its Host (a foreign name that resolves to 127.0.0.1 does not), and come from no other page: the
  browser says where from in Origin and Sec-Fetch-Site;
- know the token. It is in the address that is printed; the browser gets a cookie for it, and the token leaves the
  address. Programs send `Authorization: Bearer TOKEN`.

The policy for the browser allows our own script and style sheet, and requests to this server: nothing else.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from stowplan.embedded.http.browsers import is_loopback
from stowplan.serving import web
from stowplan.serving.web import Handler

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
OWN_SITES = ("same-origin", "none")
METHODS = ("GET", "HEAD")
PARAMETER = "token"
ASK = "Open the address that `stowplan ui` printed: it has a token, which this request lacks."


def new_token() -> str:
    return secrets.token_urlsafe(24)


class BrowserAccess:
    """`port` is set once the server listens."""

    def __init__(self, token: str) -> None:
        self.token, self.port = token, 0

    @property
    def cookie(self) -> str:
        """The name of the cookie: a browser keeps one jar for all ports of a host."""
        return f"stowplan-ui-{self.port}"

    def address(self, path: str = "/") -> str:
        """The address to open."""
        return f"http://127.0.0.1:{self.port}{path}?{urlencode({PARAMETER: self.token})}"

    async def guard(self, request: web.PageRequest, handler: Handler) -> web.PageResponse:
        """Middleware: answer only who may read, and add the headers to every answer."""
        try:
            answer = self._refusal(request) or await handler(request)
        except web.HTTPException as error:
            answer = error
        answer.headers.update({name: value for name, value in HEADERS.items() if name not in answer.headers})
        return answer

    def _refusal(self, request: web.PageRequest) -> web.PageResponse | None:
        """Return the answer to a request that may not be answered, or that brings the token; None for any other."""
        if request.method not in METHODS:
            return _refused(405, "These pages only read: GET and HEAD are answered.", {"Allow": ", ".join(METHODS)})
        if problem := self._foreign(request.headers):
            return _refused(403, problem)
        if self._is_token(request.query.get(PARAMETER, "")):
            return self._with_cookie(request)
        if not (self._is_token(_bearer(request.headers)) or self._is_token(self._of_cookie(request.headers))):
            return _refused(403, ASK)
        return None

    def _foreign(self, headers: web.Headers) -> str:
        host = headers.get("Host")
        name, port = _split(host)
        if not is_loopback(name) or port != self.port:
            return f"The Host {host[:100]!a} is not this server's: use 127.0.0.1:{self.port}."
        origin = headers.get("Origin")
        if origin and origin.lower() != f"http://{host}".lower():
            return f"The request comes from a page of {origin[:100]!a}."
        site = headers.get("Sec-Fetch-Site", "none")
        if site not in OWN_SITES:
            return f"The request comes from a page of another site (Sec-Fetch-Site: {site[:50]!a}). {ASK}"
        return ""

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def _of_cookie(self, headers: web.Headers) -> str:
        """Return our cookie's value. Other programs of this machine have cookies here, too, of any form."""
        pairs = (pair.strip().partition("=") for pair in headers.get("Cookie").split(";"))
        return next((value for name, _, value in pairs if name == self.cookie), "")

    def _with_cookie(self, request: web.PageRequest) -> web.PageResponse:
        """Send the browser to the same page without the token, which it has in a cookie from then on."""
        rest = [(name, value) for name, value in request.query.items() if name != PARAMETER]
        path = "/" + "/".join(quote(each, safe="") for each in request.segments).lstrip("/")
        where = path + (f"?{urlencode(rest)}" if rest else "")
        cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        return web.PageResponse(text="", status=303, headers={"Location": where, "Set-Cookie": cookie})


def _bearer(headers: web.Headers) -> str:
    kind, _, token = headers.get("Authorization").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _split(host: str) -> tuple[str, int]:
    """Return the name and the port of a Host header; port 80 if it names none, -1 if it is none."""
    name, _, port = host[1:].partition("]") if host.startswith("[") else host.partition(":")
    port = port.removeprefix(":")
    if not port:
        return name, 80
    return name, int(port) if port.isascii() and port.isdigit() and len(port) < 6 else -1


def _refused(status: int, why: str, headers: Mapping[str, str] | None = None) -> web.PageResponse:
    return web.PageResponse(text=f"{why}\n", status=status, headers=headers)
