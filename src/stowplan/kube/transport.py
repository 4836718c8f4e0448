"""Requests to one server, with credentials, a rate limit and retries.

`request` returns a whole response, `stream` one that goes on. A 401 refreshes the credentials once. Temporary failures
(429, 500, 502, 503, 504, or no response) are retried until the deadline of the caller, after Retry-After and a backoff
with jitter. Nothing is sent after its deadline, and no write once `may_write` returns False.

With `expects_objects` the server is an API server. A success that is no Kubernetes object counts as no response: it is
unknown what became of the request.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlencode, urlsplit

import msgspec

from stowplan.kube.connection import Connection, Stream
from stowplan.kube.credentials import Access, Headers
from stowplan.kube.pool import Pool
from stowplan.kube.rate_limits import Backoff, TokenBucket
from stowplan.kube.responses import Response, StoppedError, UnreachableError

JSON = "application/json"
RETRIED = frozenset((429, 500, 502, 503, 504))
TIMEOUT = 30.0


class _Request(msgspec.Struct):
    method: str
    target: str
    body: bytes = b""
    content_type: str = JSON
    timeout: float = TIMEOUT
    until: float | None = None


class Transport:
    """Belongs to one event loop. `qps` 0 or less: no rate limit."""

    def __init__(
        self,
        access: Access,
        *,
        connections: int = 32,
        qps: float = 0.0,
        burst: int = 100,
        may_write: Callable[[], bool] = lambda: True,
        generator: random.Random | None = None,
        user_agent: str = "stowplan",
    ) -> None:
        self.access = access
        self.generator = generator or random.Random()
        self.expects_objects = False
        self._may_write = may_write
        self._pool = Pool(access, connections)
        self._bucket = TokenBucket(qps, burst) if qps > 0 else None
        parts = urlsplit(access.server)
        # Without TLS a proxy gets the whole URL. The path of the server address is a prefix of every path.
        whole = access.proxy is not None and access.ssl is None
        self._prefix = access.server if whole else parts.path.rstrip("/")
        permit = access.proxy.authorization if access.proxy is not None and whole else ""
        self._fixed = f"Host: {parts.netloc.rpartition('@')[2]}\r\nUser-Agent: {user_agent}\r\n"
        self._fixed += f"Proxy-Authorization: {permit}\r\n" if permit else ""
        self._signed: tuple[Headers, str] | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes = b"",
        content_type: str = JSON,
        timeout: float = TIMEOUT,
        until: float | None = None,
    ) -> Response:
        """The response to a request. `path` is encoded already.

        Without `until` there is one attempt. With it, temporary failures are retried until that time of the event
        loop's clock; then the last response is returned, or `UnreachableError` raised.
        """
        request = _Request(method, _target(path, params), body, content_type, timeout, until)
        return await (self._once(request) if until is None else self._with_retries(request, until))

    async def _with_retries(self, request: _Request, until: float) -> Response:
        clock, maybe_applied = asyncio.get_running_loop().time, False
        backoff: Backoff | None = None  # made when it is needed
        last: Response | UnreachableError | None = None
        while True:
            try:
                response = await self._once(request)
                response.maybe_applied = maybe_applied
                if response.status not in RETRIED:
                    return response
                backoff = backoff or Backoff(self.generator)
                last, pause = response, backoff.wait(response.retry_after)
                maybe_applied = maybe_applied or response.status != 429
            except UnreachableError as error:
                backoff = backoff or Backoff(self.generator)
                last, pause = (last if last and error.unsent else error), backoff.wait()
                maybe_applied = maybe_applied or not error.unsent
            if clock() + pause >= until:
                if isinstance(last, UnreachableError):
                    raise last
                return last
            await asyncio.sleep(pause)

    async def _once(self, request: _Request) -> Response:
        if self._bucket is not None and (pause := self._bucket.pause(asyncio.get_running_loop().time())):
            await asyncio.sleep(pause)
        headers = self.access.valid_headers
        if headers is None:
            headers = await self.access.headers()
        response = await self._exchange(request, headers)
        if response.status == 401:
            response = await self._exchange(request, await self._refreshed(headers))
        if self.expects_objects and response.ok and (strange := response.strangeness()):
            raise UnreachableError(f"{request.method} {request.target}: {strange}")
        return response

    async def _exchange(self, request: _Request, headers: Headers) -> Response:
        connection = self._pool.idle() or await self._pool.acquire()
        try:
            return await connection.exchange(self._encoded(request, headers), self._timeout_for(request))
        finally:
            self._pool.release(connection)

    def _timeout_for(self, request: _Request) -> float:
        """The timeout of a request, just before it is sent. Raises if it must not be sent any more."""
        if request.method != "GET" and not self._may_write():
            raise StoppedError(f"{request.method} {request.target}: not sent, since writing is no longer allowed")
        if request.until is None:
            return request.timeout
        left = request.until - asyncio.get_running_loop().time()
        if left <= 0:
            raise UnreachableError("the deadline passed before the request was sent", unsent=True)
        return min(request.timeout, left)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str] | None = None, *, timeout: float = TIMEOUT
    ) -> AsyncIterator[Stream]:
        """A response that is read while it arrives, on its own connection. Raises `RefusedError` if it is not 200."""
        request, refused = _Request("GET", _target(path, params)), None
        for _ in range(2):
            headers = await self.access.headers() if refused is None else await self._refreshed(refused)
            connection, response, stream = await self._opened(self._encoded(request, headers), timeout)
            try:
                if stream is not None:
                    if self.expects_objects and not response.is_json:
                        raise UnreachableError(f"GET {path}: {response.strangeness()}")
                    yield stream
                    return
                refused = headers
            finally:
                connection.close()
            if response.status != 401:
                break
        response.checked(f"GET {path}")
        raise UnreachableError(f"GET {path}: expected a stream, got {response.status}")

    async def _opened(self, request: bytes, timeout: float) -> tuple[Connection, Response, Stream | None]:
        """A stream over an idle connection if there is one, which saves a handshake; if that fails, over a new one."""
        connection = self._pool.idle_for_stream()
        if connection is not None:
            until = asyncio.get_running_loop().time() + timeout
            try:
                return connection, *await connection.stream(request, timeout)
            except UnreachableError:
                connection.close()  # the server may have closed it a moment ago
                if asyncio.get_running_loop().time() >= until:
                    raise
            except BaseException:
                connection.close()
                raise
        connection = await self._pool.open()
        try:
            return connection, *await connection.stream(request, timeout)
        except BaseException:
            connection.close()
            raise

    async def _refreshed(self, refused: Headers) -> Headers:
        self._pool.close_idle()  # a client certificate belongs to its connection
        return await self.access.headers(refused)

    def _encoded(self, request: _Request, headers: Headers) -> bytes:
        """The bytes of the request."""
        if self._signed is None or self._signed[0] is not headers:
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
            self._signed = headers, f"HTTP/1.1\r\n{self._fixed}{lines}Accept: {JSON}\r\n"
        method, body = request.method, request.body
        opening = f"{method} {self._prefix}{request.target} {self._signed[1]}"
        if not body:
            # A request without a body needs Content-Length: 0, unless it is a GET.
            return f"{opening}\r\n".encode() if method == "GET" else f"{opening}Content-Length: 0\r\n\r\n".encode()
        about = f"Content-Type: {request.content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        return (opening + about).encode() + body

    async def close(self) -> None:
        """Close all connections. Pending requests raise `UnreachableError`."""
        await self._pool.close()


def _target(path: str, params: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(params)}" if params else path
