"""One HTTP/1.1 connection: a request goes out, an answer comes back, then the next one.

A protocol of our own over httptools (Node's parser) because a client's microseconds per request are the second
largest cost of binding a pod. Medians of CPU per request over TLS, on 2 busy shared cores: to a real
kube-apiserver 157 µs (126 with uvloop) where aiohttp takes 323 (259); to a server that answers at once 50 to 60
where aiohttp takes 200 to 260.

    idle ── send ─► waiting ── whole answer ─► idle (or closed, if the server wants that)
      │                └────── head of a stream ─► streaming ── end ─► closed
      └── the server closes, time is up, the answer makes no sense: closed; who waits gets `UnreachableError`
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from stowplan.kube.responses import Response, UnreachableError

FRAMING = (b"content-length", b"transfer-encoding")
BUFFERED = 4 << 20  # bytes of a stream that may wait to be read before the server is held back


class Connection(asyncio.Protocol):
    def __init__(self, lost: Callable[[Connection], None]) -> None:
        self._lost = lost
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._streams = False  # whether the answer on its way is to be read while it comes
        self._stream: Stream | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_read = False
        self._parts: list[bytes] = []
        self._keep = True
        self._loop = asyncio.get_running_loop()

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing() and self._keep and self._answer is None

    async def exchange(self, request: bytes, timeout: float) -> Response:
        """Send a request and wait for the whole answer."""
        if self._transport is None or self._transport.is_closing():
            raise UnreachableError("the connection was closed while idle", unsent=True)
        answer: asyncio.Future[Response] = self._loop.create_future()
        self._answer = answer
        self._timer = self._loop.call_later(timeout, self._too_late, timeout)
        self._transport.write(request)
        try:
            return await answer
        finally:
            self._timer.cancel()
            self._answer = None
            if not answer.done() or answer.cancelled() or answer.exception() is not None:
                self.close()

    async def stream(self, request: bytes, timeout: float) -> tuple[Response, Stream | None]:
        """Send a request whose answer, if it is 200, is read as it comes; `timeout` is for its beginning."""
        self._streams, self._keep = True, False
        response = await self.exchange(request, timeout)
        return response, self._stream

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _too_late(self, timeout: float) -> None:
        self._fail(UnreachableError(f"no answer within {timeout:g} s"))

    def _fail(self, error: UnreachableError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        elif self._stream is not None:
            self._stream.end(error)
        self.close()

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None and self._stream is None:
            self.close()  # nobody asked for anything
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(UnreachableError(f"an answer that is not HTTP: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        whole = self._head_read and not any(name.lower() in FRAMING for name, _ in self._headers)
        if whole and exc is None:
            self.on_message_complete()  # an answer of unknown length ends with its connection
        else:
            self._fail(UnreachableError(f"the connection broke: {exc or 'closed by the server'}"))
        self._transport = None
        self._lost(self)

    # -- called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._head_read = True
        self._keep = self._keep and self._parser.should_keep_alive()
        if self._streams and self._parser.get_status_code() == 200:
            assert self._transport is not None
            self._stream = Stream(self._transport)
            self._settle(b"")

    def on_body(self, body: bytes) -> None:
        if self._stream is not None:
            self._stream.feed(body)
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._stream is not None:
            self._stream.end(None)
            self.close()
        elif self._parser.get_status_code() >= 200:  # less: the real answer is still to come
            self._settle(b"".join(self._parts))
        self._headers, self._parts, self._head_read = [], [], False

    def _settle(self, body: bytes) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Response(self._parser.get_status_code(), self._headers, body))


class Stream:
    """The body of an answer that does not end by itself, as much as has come at a time."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []
        self._waiting = 0
        self._ended = False
        self._error: UnreachableError | None = None
        self._news: asyncio.Future[None] | None = None

    def feed(self, body: bytes) -> None:
        self._parts.append(body)
        self._waiting += len(body)
        if self._waiting > BUFFERED:
            self._transport.pause_reading()
        self._tell()

    def end(self, error: UnreachableError | None) -> None:
        if not self._ended:
            self._ended, self._error = True, error
            self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def read(self, patience: float) -> bytes:
        """All that came since last time; b"" at the end. Silence for `patience` seconds is a broken connection."""
        if not self._parts and not self._ended:
            await self._wait(patience)
        if not self._parts and self._error is not None:
            raise self._error
        data = b"".join(self._parts)
        self._parts.clear()
        if self._waiting > BUFFERED and not self._ended:
            self._transport.resume_reading()
        self._waiting = 0
        return data

    async def _wait(self, patience: float) -> None:
        loop = asyncio.get_running_loop()
        self._news = loop.create_future()
        silence = UnreachableError(f"the stream was silent for {patience:g} s")
        timer = loop.call_later(patience, self.end, silence)
        try:
            await self._news
        finally:
            timer.cancel()
