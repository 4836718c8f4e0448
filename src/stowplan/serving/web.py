"""Pages over HTTP: requests, responses, and which page answers which path.

Most names and their meaning are those of `aiohttp.web`, as far as the pages of our programs need them. aiohttp itself
takes ten megabytes and a fifth of a second to import, which a scheduler that serves six pages can spare. How bytes
become requests is in `http_protocol`.

    app = Application(middlewares=[guard], client_max_size=1 << 20)
    app.router.add_get("/debug/decisions/{namespace}/{pod}", page)
    runner = AppRunner(app)
    runner.server()                 # the protocol of a connection

A path is matched segment by segment, after percent-decoding, and as it stands: `..` is a name like any other.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl, unquote

if TYPE_CHECKING:
    from stowplan.serving.http_protocol import HttpProtocol

MAX_BODY_BYTES = 1024 * 1024
BODY_WITHIN = 10.0  # seconds to send a body, from when a page reads it


class Headers(dict[str, str]):
    """The headers of a request, by lower-case name; of several with one name, all values."""

    def add(self, name: str, value: str) -> None:
        key = name.lower()
        self[key] = f"{self[key]}, {value}" if key in self else value

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name.lower() if isinstance(name, str) else name)

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]
        return super().get(name.lower(), default)


class Body(Protocol):
    """Where a request's body comes from, and whether all of it is here."""

    complete: bool

    async def read(self, most: int) -> bytes:
        """Return all of it. Raises HTTPRequestEntityTooLarge if it is longer than this."""


class PageRequest:
    """A request whose headers are complete.

    `match_info`: the parts of the path that its page names. `decoded`: what a page made of the body, to be used again.
    `may` says whether the client has a right; a server that asks for none lets everybody do everything.
    """

    def __init__(
        self, method: str, target: bytes, headers: Headers, body: Body, transport: asyncio.BaseTransport | None
    ) -> None:
        self.method, self.headers, self.transport = method, headers, transport
        self._raw, _, self._raw_query = target.partition(b"?")
        self.match_info: dict[str, str] = {}
        self.decoded: object = None
        self.may: Callable[[Mapping[str, str]], Awaitable[bool]] = _may
        self.client_max_size = MAX_BODY_BYTES
        self._body = body

    @cached_property
    def segments(self) -> list[str]:
        return [unquote(each) for each in self._raw.decode("latin-1").split("/")[1:]]

    @cached_property
    def path(self) -> str:
        return f"/{'/'.join(self.segments)}"

    @cached_property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self._raw_query.decode("latin-1"), keep_blank_values=True))

    @property
    def complete(self) -> bool:
        """Whether all of the body is here."""
        return self._body.complete

    async def read(self) -> bytes:
        return await self._body.read(self.client_max_size)

    async def text(self) -> str:
        return (await self.read()).decode()


async def _may(_right: Mapping[str, str]) -> bool:
    return True


class PageResponse:
    """An answer: a status, headers and a body."""

    def __init__(
        self,
        *,
        body: bytes | None = None,
        status: int = 200,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
        content_type: str = "",
    ) -> None:
        given = dict(headers or {})
        plain = "text/plain; charset=utf-8" if text is not None else "application/octet-stream"
        given.setdefault("Content-Type", content_type or plain)
        self.status, self.headers = status, given
        self.body = text.encode() if text is not None else body or b""


class StreamedResponse(PageResponse):
    """An answer that goes on, such as server-sent events: each part is sent as it comes. The connection ends with it.

    A client that reads too slowly is waited for; one that reads nothing for `patience` seconds is let go.
    """

    def __init__(
        self, parts: AsyncGenerator[bytes, None], *, content_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(headers=headers, content_type=content_type)
        self.parts = parts
        self.patience = 30.0


Handler = Callable[[PageRequest], Awaitable[PageResponse]]
Middleware = Callable[[PageRequest, Handler], Awaitable[PageResponse]]


def json_response(data: object, *, status: int = 200) -> PageResponse:
    return PageResponse(body=json.dumps(data).encode(), status=status, content_type="application/json")


# -- answers that a page raises


class HTTPException(PageResponse, Exception):  # noqa: N818 (aiohttp's name)
    """An answer instead of a page; without a text, it is the status in words."""

    status_code = 500

    def __init__(
        self, *, text: str | None = None, content_type: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        words = f"{self.status_code}: {HTTPStatus(self.status_code).phrase}"
        PageResponse.__init__(
            self,
            status=self.status_code,
            text=words if text is None else text,
            content_type=content_type,
            headers=headers,
        )


class HTTPBadRequest(HTTPException):
    status_code = 400


class HTTPNotFound(HTTPException):
    status_code = 404


class HTTPMethodNotAllowed(HTTPException):
    status_code = 405


class HTTPRequestTimeout(HTTPException):
    status_code = 408


class HTTPRequestEntityTooLarge(HTTPException):
    status_code = 413


# -- which page answers


class Router:
    """Pages by method and path. Where two match, the one that was added first answers."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, list[str], Handler]] = []

    def add_get(self, path: str, page: Handler) -> None:
        """HEAD is answered as well, without the body."""
        for method in ("GET", "HEAD"):
            self._routes.append((method, path.split("/")[1:], page))

    def add_post(self, path: str, page: Handler) -> None:
        self._routes.append(("POST", path.split("/")[1:], page))

    def page_for(self, request: PageRequest) -> Handler:
        """Return the page, and set the request's `match_info`; or a page that raises what is wrong."""
        allowed: dict[str, None] = {}
        for method, pattern, page in self._routes:
            found = _matched(pattern, request.segments)
            if found is None:
                continue
            if method == request.method:
                request.match_info = found
                return page
            allowed[method] = None
        return _refusing(HTTPMethodNotAllowed(headers={"Allow": ",".join(allowed)}) if allowed else HTTPNotFound())


def _matched(pattern: Sequence[str], segments: Sequence[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    found: dict[str, str] = {}
    for wanted, given in zip(pattern, segments, strict=True):
        if wanted.startswith("{"):
            if not given:
                return None
            found[wanted[1:-1]] = given
        elif wanted != given:
            return None
    return found


def _refusing(error: HTTPException) -> Handler:
    async def refuse(_request: PageRequest) -> PageResponse:
        raise error

    return refuse


class Application:
    """Pages, behind middlewares: the first one is asked first."""

    def __init__(self, *, middlewares: Sequence[Middleware] = (), client_max_size: int = MAX_BODY_BYTES) -> None:
        self.router, self._middlewares, self._most = Router(), tuple(middlewares), client_max_size

    async def answer(self, request: PageRequest) -> PageResponse:
        request.client_max_size = self._most
        handler = self.router.page_for(request)
        for each in reversed(self._middlewares):
            handler = _within(each, handler)
        try:
            return await handler(request)
        except HTTPException as refusal:
            return refusal


def _within(outer: Middleware, inner: Handler) -> Handler:
    async def asked(request: PageRequest) -> PageResponse:
        return await outer(request, inner)

    return asked


class AppRunner:
    """The connections of an application: `server` makes the protocol of a new one."""

    def __init__(
        self,
        app: Application,
        *,
        shutdown_timeout: float = 1.0,
        lingering_time: float = 1.0,
        body_within: float = BODY_WITHIN,
    ) -> None:
        self.app, self.lingering_time, self.body_within = app, lingering_time, body_within
        self._shutdown_timeout = shutdown_timeout
        self.connections: set[HttpProtocol] = set()
        self.answering: set[asyncio.Task[None]] = set()

    def server(self) -> HttpProtocol:
        from stowplan.serving.http_protocol import HttpProtocol

        return HttpProtocol(self)

    async def cleanup(self) -> None:
        """Finish what is being answered, for a moment; then close all connections."""
        for each in list(self.connections):
            each.closing()
        if self.answering:
            await asyncio.wait(self.answering, timeout=self._shutdown_timeout)
        for task in list(self.answering):
            task.cancel()
        for each in list(self.connections):
            each.abort()
