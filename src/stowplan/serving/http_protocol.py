"""One connection of a server: bytes become requests, requests are answered one after the other.

httptools parses. What a client may send before it is known is bounded here: the headers of a request, what surrounds
the chunks of a body, the requests that it sends ahead, and the part of a body that nobody has read yet. Times and
numbers of connections are bounded by `connections`.

While a request waits for its turn, what follows it is not parsed, and little more is read. The next answer is made
when the client has read enough of the one before. What cannot be read as HTTP is answered with 400 after the requests
before it, and the connection ends.

A body is read only if a page asks for it, and must arrive in time then. Trailers are ignored. If a page answers before
the body is there, the client has a moment to read the answer; then the connection ends.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from http import HTTPStatus
from typing import cast

import httptools

from stowplan.serving.web import (
    AppRunner,
    Headers,
    HTTPBadRequest,
    HTTPException,
    HTTPRequestEntityTooLarge,
    HTTPRequestTimeout,
    PageRequest,
    PageResponse,
    StreamedResponse,
)

MOST_OF_HEAD = 16 * 1024  # bytes of the request line and the headers, or between two parts of a body, or after it
MOST_HEADERS = 128
MOST_AHEAD = 1  # requests that wait for their turn; a few more if they are short
PARSED_AT_ONCE = 1024  # bytes, so that few requests more are parsed than may wait
READ_AHEAD = 64 * 1024  # bytes of a body that wait for a page, and bytes that are not parsed yet


class RequestBody:
    """What has arrived of a body, and whether that is all of it."""

    def __init__(self, protocol: HttpProtocol) -> None:
        self._protocol = protocol
        self._parts: list[bytes] = []
        self._arrived = asyncio.Event()
        self._wrong: Exception | None = None
        self.size, self.complete, self.expected = 0, False, False

    def feed(self, data: bytes) -> None:
        self._parts.append(data)
        self.size += len(data)
        self._arrived.set()

    def end(self) -> None:
        self.complete = True
        self._arrived.set()

    def fail(self, wrong: Exception) -> None:
        """There will be no more of it; unless it is complete, who reads it gets this."""
        self._wrong = None if self.complete else self._wrong or wrong
        self._arrived.set()

    async def read(self, most: int) -> bytes:
        self._protocol.wants(self)
        try:
            async with asyncio.timeout(self._protocol.body_within):
                while not self.complete and self._wrong is None and self.size <= most:
                    self._arrived.clear()
                    self._protocol.resume()
                    await self._arrived.wait()
        except TimeoutError:
            raise HTTPRequestTimeout from None
        if self._wrong is not None:
            raise self._wrong
        if self.size > most:
            raise HTTPRequestEntityTooLarge
        return b"".join(self._parts)


class HttpProtocol(asyncio.Protocol):
    """The connection of one client."""

    def __init__(self, runner: AppRunner) -> None:
        self._runner = runner
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        # Whether the connection goes on afterwards, too. None: what cannot be read as a request.
        self._waiting: list[tuple[PageRequest | None, RequestBody, bool]] = []
        self._task: asyncio.Task[None] | None = None
        self._unparsed = b""
        self._loose = 0  # bytes since the last head or part of a body ended
        self._in_head, self._ends, self._deaf, self._writable = True, False, False, True
        self._may_write, self._streams = asyncio.Event(), False
        self._heard_all = False  # the client sends no more
        self._by_tls = False
        self._target, self._headers, self._body = b"", Headers(), RequestBody(self)

    # -- the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._by_tls = transport.get_extra_info("ssl_object") is not None
        self._runner.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._runner.connections.discard(self)
        self._transport = None
        self._may_write.set()
        self._waiting.clear()
        self._unparsed = b""
        self._body.fail(ConnectionResetError("the client is gone"))
        if self._task is not None:
            self._task.cancel()  # nobody reads the answer, and what it waits for may take long

    def eof_received(self) -> bool:
        """A client that sends no more may still read its answers; not one that goes on without end."""
        self._ends = self._heard_all = True
        if not self._unparsed:
            self._nothing_follows()
        if self._transport is None or self._by_tls or self._streams:  # TLS cannot be closed by half
            return False
        return self._task is not None or bool(self._waiting)

    def pause_writing(self) -> None:
        self._writable = False
        self._may_write.clear()
        self.pause()

    def resume_writing(self) -> None:
        self._writable = True
        self._may_write.set()
        self._answer_next()
        self._parse()

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and self._writable and len(self._unparsed) <= READ_AHEAD:
            self._transport.resume_reading()

    @property
    def body_within(self) -> float:
        return self._runner.body_within

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def closing(self) -> None:
        """No further request is answered."""
        self._ends = True
        self._waiting.clear()
        self._unparsed = b""
        if self._task is None and self._transport is not None:
            self._transport.close()

    @property
    def ahead(self) -> int:
        """How many requests wait for their turn."""
        return len(self._waiting)

    # -- bytes

    def data_received(self, data: bytes) -> None:
        if not self._deaf:
            self._unparsed += data
            self._parse()

    def _parse(self) -> None:
        """Parse what has arrived, unless a request waits: then it is kept, and little more is read."""
        begin, data = 0, self._unparsed
        try:
            while begin < len(data) and not self._deaf and len(self._waiting) < MOST_AHEAD:
                part = data[begin : begin + PARSED_AT_ONCE]
                begin += len(part)
                self._loose += len(part)
                self._parser.feed_data(part)
                if self._loose > MOST_OF_HEAD:
                    raise httptools.HttpParserError("the headers are too long")
        except httptools.HttpParserUpgrade:
            self._deaf = True  # the request is answered as it stands; what follows is another protocol
        except (httptools.HttpParserError, ValueError):
            self._refuse()
        self._unparsed = b"" if self._deaf else data[begin:]
        if len(self._unparsed) > READ_AHEAD:
            self.pause()
        elif self._deaf or self._body.complete or self._body.size <= READ_AHEAD:
            self.resume()
        if self._heard_all and not self._unparsed:
            self._nothing_follows()

    def _nothing_follows(self) -> None:
        self._body.fail(ConnectionResetError("the client sends no more"))
        if self._task is None and not self._waiting:
            self._close()

    def _refuse(self) -> None:
        """This is no HTTP, or too much of it. Requests before it are answered still."""
        self._deaf = True
        if self._in_head:
            self._waiting.append((None, self._body, False))
            self._answer_next()
        else:
            self._body.fail(HTTPBadRequest())

    # -- the parser's callbacks

    def on_message_begin(self) -> None:
        self._target, self._headers, self._body = b"", Headers(), RequestBody(self)

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer: no page needs one
        if len(self._headers) >= MOST_HEADERS:
            raise ValueError("there are too many headers")
        self._headers.add(name.decode("latin-1"), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        method = self._parser.get_method().decode("latin-1")
        goes_on = self._parser.should_keep_alive()
        self._body.expected = self._headers.get("expect").lower() == "100-continue"
        request = PageRequest(method, _path_of(self._target), self._headers, self._body, self._transport)
        self._in_head, self._loose = False, 0
        self._waiting.append((request, self._body, goes_on))
        self._answer_next()

    def on_body(self, body: bytes) -> None:
        self._loose = 0
        self._body.feed(body)
        if self._body.size > READ_AHEAD:
            self.pause()

    def on_message_complete(self) -> None:
        self._in_head, self._loose = True, 0
        self._body.end()

    # -- answers

    def wants(self, body: RequestBody) -> None:
        """A page reads the body of its request."""
        if body.expected and not body.complete and self._transport is not None:
            body.expected = False
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _answer_next(self) -> None:
        if self._task is None and self._waiting and self._writable and self._transport is not None:
            request, body, goes_on = self._waiting.pop(0)
            if request is None:
                self._write(HTTPBadRequest(), goes_on=False)
                self._linger()
                return
            self._task = asyncio.get_running_loop().create_task(self._answer(request, body, goes_on))
            self._runner.answering.add(self._task)
            self._task.add_done_callback(self._runner.answering.discard)

    async def _answer(self, request: PageRequest, body: RequestBody, goes_on: bool) -> None:
        try:
            response = await self._runner.app.answer(request)
            if isinstance(response, StreamedResponse):
                await self._stream(response, head_only=request.method == "HEAD")
                return
        except ConnectionError:
            self.abort()
            return
        except Exception:  # middleware answers for pages that fail
            response = HTTPException()
        finally:
            self._task = None
        more = bool(self._waiting or self._unparsed) or not (self._ends or self._deaf)
        goes_on = goes_on and more and body.complete
        self._write(response, goes_on=goes_on, head_only=request.method == "HEAD")
        if goes_on:
            self._answer_next()
            self._parse()
        elif body.complete:
            self._close()
        else:
            self._linger()

    async def _stream(self, response: StreamedResponse, *, head_only: bool) -> None:
        """Send each part as it comes, until there are no more or the client is gone."""
        async with aclosing(response.parts) as parts:
            self._write(response, goes_on=False, head_only=True)
            if head_only or self._heard_all:
                self._close()
                return
            self._streams = True
            try:
                async for part in parts:
                    if self._transport is None:
                        return
                    self._transport.write(part)
                    if not self._writable:
                        async with asyncio.timeout(response.patience):
                            await self._may_write.wait()
            except Exception:  # too slow, or a part could not be made: half an answer has no other end
                self.abort()
                return
        self._close()

    def _write(self, response: PageResponse, *, goes_on: bool, head_only: bool = False) -> None:
        if self._transport is None:
            return
        length = {} if isinstance(response, StreamedResponse) else {"Content-Length": str(len(response.body))}
        headers = {
            "Date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()),
            **length,
            "Connection": "keep-alive" if goes_on else "close",
            **response.headers,
        }
        lines = [
            f"HTTP/1.1 {response.status} {_words(response.status)}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
        self._transport.write(head if head_only else head + response.body)

    def _close(self) -> None:
        self._deaf = True
        if self._transport is not None:
            self._transport.close()

    def _linger(self) -> None:
        """The client may be sending still: closed at once, it would not see the answer."""
        self._deaf, self._unparsed = True, b""
        transport = self._transport
        if transport is None:
            return
        self.resume()
        if transport.can_write_eof():
            transport.write_eof()
        asyncio.get_running_loop().call_later(self._runner.lingering_time, transport.close)


def _words(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _path_of(target: bytes) -> bytes:
    """Return path and query of a request's target, which may be a whole URL."""
    if target.startswith(b"/"):
        return target
    found = httptools.parse_url(target)
    query = b"?" + found.query if found.query else b""
    return (found.path or b"/") + query
