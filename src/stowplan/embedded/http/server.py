"""The HTTP server of the embedded cluster: reads requests, writes responses, runs watches.

Without RBAC, loopback needs no credentials, since a local user could do anything to this process anyway; `browsers`
keeps web pages out. Any other address needs a token, which every request must carry. With RBAC the server speaks HTTPS,
and `access_control` decides; a web page would be anonymous, who may read the version and the health pages and nothing
else. Connections are bounded as those of a program's pages (`serving`), but for watches: a client that waits for events
is not idle.
"""

from __future__ import annotations

import asyncio
import hmac
import random
import ssl
from collections.abc import Callable

from aiohttp import web
from aiohttp.web_exceptions import HTTPException

from stowplan.embedded.authorization.users import ANONYMOUS, ApiUser
from stowplan.embedded.errors import ApiError, bad_request, too_large, unauthorized
from stowplan.embedded.http import browsers, requests, responses
from stowplan.embedded.http.handlers import Handlers
from stowplan.embedded.http.requests import Request
from stowplan.embedded.http.responses import ApiResponse
from stowplan.embedded.http.watches import EmbeddedWatch, failure
from stowplan.objects.errors import ConfigError
from stowplan.serving import descriptors
from stowplan.serving.connections import ConnectionLimits, ConnectionTable
from stowplan.serving.listener import LINGER, SILENT, SocketListener

MAX_BODY_BYTES = 3 * 1024 * 1024
MOST_CONNECTIONS = 4096
MOST_UNPROVEN = 256  # connections that have spoken, and of which it is not known whose they are
MOST_PROBLEMS = 100
KEEP_ALIVE = 300.0  # seconds between two requests
BODY_WITHIN = 30.0  # seconds
BOOKMARK_INTERVAL = 60.0
WATCH_SECONDS = (1800.0, 3600.0)  # seconds; the timeout of a watch without timeoutSeconds
_TOO_DEEP = "the document is nested too deeply"


def needs_token(host: str) -> bool:
    return not browsers.is_loopback(host)


def connection_limits(*, strangers: bool) -> ConnectionLimits:
    """`strangers`: some who connect have no right to. All may be from one peer: most often it is this host."""
    most = descriptors.for_connections(MOST_CONNECTIONS)
    unproven = min(MOST_UNPROVEN, most // 2) if strangers else most
    return ConnectionLimits(most, per_peer=most, unproven=unproven, idle_within=KEEP_ALIVE)


class Server:
    """`problems` collects the last internal errors. Each one is a bug."""

    def __init__(self, handlers: Handlers, *, token: str | None = None) -> None:
        self._handlers = handlers
        self.token = token
        self._runner: web.ServerRunner | None = None
        self._listener: SocketListener | None = None
        self._host = ""
        self._ending = False
        self._waiters: set[Callable[[], None]] = set()  # callbacks that wake waiting watches
        self.problems: list[str] = []
        self.address = ""

    async def start(self, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> str:
        """Listen, and return the URL."""
        if needs_token(host) and not self.token:
            raise ConfigError(f"cannot listen on {host} without a token", remedy="give a token, or listen on 127.0.0.1")
        self._ending, self._host = False, host
        served = web.Server(
            self._handle,
            access_log=None,
            logger=SILENT,
            handler_cancellation=True,
            keepalive_timeout=KEEP_ALIVE,
            lingering_time=LINGER,
        )
        self._runner = web.ServerRunner(served, shutdown_timeout=1.0)
        await self._runner.setup()
        context = None if tls is None else lambda: tls
        limits = connection_limits(strangers=needs_token(host) or self._handlers.access.enforced)
        self._listener = SocketListener(served, ConnectionTable(limits), context)
        try:
            addresses = await self._listener.listen(host, port)
        except OSError:
            await self._runner.cleanup()
            raise
        name, number = addresses[0]
        self.address = f"[{name}]:{number}" if ":" in name else f"{name}:{number}"
        self._handlers.address = self.address
        return f"{'http' if tls is None else 'https'}://{self.address}"

    async def stop(self) -> None:
        self._ending = True
        for wake in list(self._waiters):
            wake()
        if self._listener is not None:
            self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, message: web.BaseRequest) -> web.StreamResponse:
        assert self._listener is not None
        with self._listener.serving(message.transport) as prove:
            return await self._answer(message, prove)

    async def _answer(self, message: web.BaseRequest, prove: Callable[..., None]) -> web.StreamResponse:
        try:
            user = self._authorized(message)
            request = await _read(message)
            request.user = user
            prove(known=user.name != ANONYMOUS.name)
            found = self._handlers.answer(request)
            if isinstance(found, ApiResponse):
                return _response(found)
            return await self._serve_watch(message, request, *found)
        except ApiError as error:
            return _response(responses.refusal(error))
        except RecursionError:
            return _response(responses.refusal(bad_request(_TOO_DEEP)))
        except (HTTPException, ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:  # a bug; the client gets 500
            self.problems.append(f"{message.method} {message.path_qs}: {error!r}")
            del self.problems[:-MOST_PROBLEMS]
            internal_error = ApiError(500, "InternalError", f"Internal error occurred: {error!r}", {})
            return _response(responses.refusal(internal_error))

    def _authorized(self, message: web.BaseRequest) -> ApiUser:
        """The user as whom a request is carried out."""
        access = self._handlers.access
        if not access.enforced:
            self._check_token(message)
        headers = list(message.headers.items())
        return access.admitted(message.method, _path(message), message.rel_url.query, headers, self._handlers.now())

    def _check_token(self, message: web.BaseRequest) -> None:
        """Without RBAC there is one token, or none."""
        if self.token is None:
            browsers.check_not_from_a_page(
                message.headers, _content_type(message), has_body=message.body_exists, listens_on=self._host
            )
            return
        found = message.headers.get("Authorization", "")
        given, wanted = (each.encode(errors="surrogateescape") for each in (found, f"Bearer {self.token}"))
        if not hmac.compare_digest(given, wanted):
            raise unauthorized()

    # -- watches

    async def _serve_watch(
        self, message: web.BaseRequest, request: Request, watch: EmbeddedWatch, first: bytes
    ) -> web.StreamResponse:
        seconds = requests.int_parameter(request.query, "timeoutSeconds")
        bookmarks = requests.bool_parameter(request.query, "allowWatchBookmarks")
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache"})
        response.enable_chunked_encoding()
        await response.prepare(message)
        loop = asyncio.get_running_loop()
        until = loop.time() + (seconds if seconds and seconds > 0 else random.uniform(*WATCH_SECONDS))
        try:
            if first:
                await response.write(first)
            await self._send_events(response, watch, until, bookmarks)
            await response.write_eof()
        except ApiError as error:
            await response.write(failure(error))
            await response.write_eof()
        except ConnectionError:
            pass  # the client is gone
        return response

    async def _send_events(
        self, response: web.StreamResponse, watch: EmbeddedWatch, until: float, bookmarks: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        next_bookmark = loop.time() + BOOKMARK_INTERVAL
        store = self._handlers.api.store
        while not self._ending:
            if lines := watch.take():
                await response.write(lines)
            if watch.due:
                await asyncio.sleep(0)
                continue
            now = loop.time()
            if bookmarks and now >= min(next_bookmark, until):
                await response.write(watch.bookmark(store.version))
                next_bookmark = now + BOOKMARK_INTERVAL
            if now >= until or store.collection(watch.collection.name) is not watch.collection:
                return
            await self._wait(watch, (min(until, next_bookmark) if bookmarks else until) - now)

    async def _wait(self, watch: EmbeddedWatch, seconds: float) -> None:
        """Wait for a change of the collection, for `seconds` at most."""
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        watch.collection.wake.add(wake)
        self._waiters.add(wake)
        timer = loop.call_later(max(seconds, 0.0), wake)
        try:
            await woken
        finally:
            timer.cancel()
            watch.collection.wake.discard(wake)
            self._waiters.discard(wake)


async def _read(message: web.BaseRequest) -> Request:
    body = b""
    if message.body_exists:
        if (message.content_length or 0) > MAX_BODY_BYTES:
            raise too_large(MAX_BODY_BYTES)
        try:
            async with asyncio.timeout(BODY_WITHIN):
                body = await _body(message)
        except TimeoutError:
            raise ApiError(408, "Timeout", f"the body did not arrive within {BODY_WITHIN:g} s", {}) from None
    accept = ",".join(message.headers.getall("Accept", ()))
    agent = message.headers.get("User-Agent", "")
    query = message.rel_url.query
    return Request(message.method, _path(message), query, accept, _content_type(message), body, agent)


def _path(message: web.BaseRequest) -> str:
    """The path of a request, which has none in `GET http://host` and is no path in `OPTIONS *`."""
    return f"/{message.rel_url.path.removeprefix('/')}"


def _content_type(message: web.BaseRequest) -> str:
    return message.headers.get("Content-Type", "").partition(";")[0].strip()


async def _body(message: web.BaseRequest) -> bytes:
    chunks, size = [], 0
    async for chunk in message.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise too_large(MAX_BODY_BYTES)
    return b"".join(chunks)


def _response(answer: ApiResponse) -> web.Response:
    headers = [("Content-Type", answer.media), ("Cache-Control", "no-cache, private")]
    for warning in answer.warnings:
        quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
        headers.append(("Warning", f'299 - "{_printable(quoted)}"'))
    if answer.status in (429, 504):
        headers.append(("Retry-After", "1"))
    return web.Response(body=answer.body, status=answer.status, headers=headers)


def _printable(text: str) -> str:
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)[:1000]
