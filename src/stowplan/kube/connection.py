"""One HTTP/1.1 connection: one request and its response at a time.

The protocol is implemented on httptools (the parser of Node.js), because the CPU time of a request is the second
largest cost of binding a pod. Medians of CPU per request over TLS, on 2 busy shared cores: to a real kube-apiserver
157 µs (126 with uvloop) where aiohttp takes 323 (259); to a server that responds at once 50 to 60 where aiohttp takes
200 to 260.

    idle ── send ─► waiting ── whole response ─► idle (or closed, if the server asks for it)
      │                └────── head of a stream ─► streaming ── end ─► closed
      └── closed by the server, timeout, invalid response: closed; the caller gets `UnreachableError`
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from stowplan.kube.responses import Response, UnreachableError

FRAMING = (b"content-length", b"transfer-encoding")
MAX_BUFFERED = 4 << 20  # unread bytes of a stream before reading from the server is paused
MAX_BODY = 1 << 30  # bytes of a response: 500 objects of 1.5 MB, the most that a page of a list may have, are less


class Connection(asyncio.Protocol):
    def __init__(self, on_lost: Callable[[Connection], None]) -> None:
        self._on_lost = on_lost
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._response: asyncio.Future[Response] | None = None
        self._timer: asyncio.TimerHandle | None = None  # stays when a response has come: the next request may use it
        self._due = 0.0  # when the response must be there
        self._timeout = 0.0
        self._is_stream = False  # True if the response is read while it arrives
        self._stream: Stream | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_read = False
        self._parts: list[bytes] = []
        self._length = 0
        self._keep_alive = True
        self._loop = asyncio.get_running_loop()

    @property
    def usable(self) -> bool:
        return (
            self._transport is not None
            and not self._transport.is_closing()
            and self._keep_alive
            and self._response is None
        )

    async def exchange(self, request: bytes, timeout: float) -> Response:
        """Send a request and wait for the whole response."""
        if self._transport is None or self._transport.is_closing():
            raise UnreachableError("the connection was closed while idle", unsent=True)
        response: asyncio.Future[Response] = self._loop.create_future()
        self._response = response
        self._expect_within(timeout)
        self._transport.write(request)
        try:
            return await response
        finally:
            self._response = None
            if not response.done() or response.cancelled() or response.exception() is not None:
                self.close()

    async def stream(self, request: bytes, timeout: float) -> tuple[Response, Stream | None]:
        """Send a request whose response, if it is 200, is read while it arrives. `timeout` is for its head."""
        self._is_stream, self._keep_alive = True, False
        response = await self.exchange(request, timeout)
        return response, self._stream

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _expect_within(self, timeout: float) -> None:
        """The timer of an earlier request is kept if it rings in time: it is set again then."""
        self._due, self._timeout = self._loop.time() + timeout, timeout
        if self._timer is None:
            self._timer = self._loop.call_at(self._due, self._ring)
        elif self._timer.when() > self._due:
            self._timer.cancel()
            self._timer = self._loop.call_at(self._due, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._response is None or self._response.done():
            return
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._ring)
        else:
            self._fail(UnreachableError(f"no answer within {self._timeout:g} s"))

    def _fail(self, error: UnreachableError) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_exception(error)
        elif self._stream is not None:
            self._stream.end(error)
        self.close()

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._response is None and self._stream is None:
            self.close()  # data without a request
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(UnreachableError(f"the response is not HTTP: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        whole = self._head_read and not any(name.lower() in FRAMING for name, _ in self._headers)
        if whole and exc is None:
            self.on_message_complete()  # a response without a length ends with its connection
        else:
            self._fail(UnreachableError(f"the connection broke: {exc or 'closed by the server'}"))
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._on_lost(self)

    # -- called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._head_read = True
        self._keep_alive = self._keep_alive and self._parser.should_keep_alive()
        if self._is_stream and self._parser.get_status_code() == 200:
            assert self._transport is not None
            self._stream = Stream(self._transport)
            self._finish(b"")

    def on_body(self, body: bytes) -> None:
        if self._stream is not None:
            self._stream.feed(body)
            return
        self._parts.append(body)
        self._length += len(body)
        if self._length > MAX_BODY:
            self._fail(UnreachableError(f"the response is larger than {MAX_BODY >> 20} MiB"))

    def on_message_complete(self) -> None:
        if self._stream is not None:
            self._stream.end(None)
            self.close()
        elif self._parser.get_status_code() >= 200:  # 1xx: the final response follows
            self._finish(b"".join(self._parts))
        self._headers, self._parts, self._length, self._head_read = [], [], 0, False

    def _finish(self, body: bytes) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_result(Response(self._parser.get_status_code(), self._headers, body))


class Stream:
    """The body of a response that does not end by itself."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []
        self._unread = 0
        self._ended = False
        self._error: UnreachableError | None = None
        self._wakeup: asyncio.Future[None] | None = None

    def feed(self, body: bytes) -> None:
        self._parts.append(body)
        self._unread += len(body)
        if self._unread > MAX_BUFFERED:
            self._transport.pause_reading()
        self._wake()

    def end(self, error: UnreachableError | None) -> None:
        if not self._ended:
            self._ended, self._error = True, error
            self._wake()

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    async def read(self, timeout: float) -> bytes:
        """The data since the last call; b"" at the end. `UnreachableError` after `timeout` seconds without data."""
        if not self._parts and not self._ended:
            await self._wait(timeout)
        if not self._parts and self._error is not None:
            raise self._error
        data = b"".join(self._parts)
        self._parts.clear()
        if self._unread > MAX_BUFFERED and not self._ended:
            self._transport.resume_reading()
        self._unread = 0
        return data

    async def _wait(self, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        self._wakeup = loop.create_future()
        silence = UnreachableError(f"the stream was silent for {timeout:g} s")
        timer = loop.call_later(timeout, self.end, silence)
        try:
            await self._wakeup
        finally:
            timer.cancel()
