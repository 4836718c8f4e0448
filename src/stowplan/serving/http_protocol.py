"""One connection of a server: bytes become requests, requests are answered one after the other.

httptools parses. What a client may send before it is known is bounded here: the headers of a request, the requests that
it sends ahead, and the part of a body that nobody has read yet. Times and numbers of connections are bounded by
`connections`. What cannot be read as HTTP is answered with 400, and the connection ends.

A body is read only if a page asks for it. If a page answers before the body is there, the client has a moment to read
the answer; then the connection ends.
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import cast

import httptools

from stowplan.serving.web import (
    AppRunner,
    Headers,
    HTTPBadRequest,
    HTTPException,
    HTTPRequestEntityTooLarge,
    PageRequest,
    PageResponse,
)

MOST_OF_HEAD = 16 * 1024  # bytes of the request line and the headers
MOST_AHEAD = 16  # requests that a client may send before it has the answers
READ_AHEAD = 64 * 1024  # bytes of a body that wait for a page


class RequestBody:
    """What has arrived of a body, and whether that is all of it."""

    def __init__(self, protocol: HttpProtocol) -> None:
        self._protocol = protocol
        self._parts: list[bytes] = []
        self._arrived = asyncio.Event()
        self.size, self.complete, self.expected, self.lost = 0, False, False, False

    def feed(self, data: bytes) -> None:
        self._parts.append(data)
        self.size += len(data)
        self._arrived.set()

    def end(self) -> None:
        self.complete = True
        self._arrived.set()

    def lose(self) -> None:
        """The client is gone, with or without the rest."""
        self.lost = not self.complete
        self._arrived.set()

    async def read(self, most: int) -> bytes:
        self._protocol.wants(self)
        while not self.complete and not self.lost and self.size <= most:
            self._arrived.clear()
            self._protocol.resume()
            await self._arrived.wait()
        if self.lost:
            raise ConnectionResetError("the client is gone")
        if self.size > most:
            raise HTTPRequestEntityTooLarge
        return b"".join(self._parts)


class HttpProtocol(asyncio.Protocol):
    """The connection of one client."""

    def __init__(self, runner: AppRunner) -> None:
        self._runner = runner
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiting: list[tuple[PageRequest, RequestBody, bool]] = []  # and whether the connection goes on afterwards
        self._task: asyncio.Task[None] | None = None
        self._head = 0  # bytes of the current request's head
        self._in_head, self._ends, self._deaf, self._writable = True, False, False, True
        self._target, self._headers, self._body = b"", Headers(), RequestBody(self)

    # -- the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._runner.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._runner.connections.discard(self)
        self._transport = None
        self._waiting.clear()
        self._body.lose()
        if self._task is not None:
            self._task.cancel()  # nobody reads the answer, and what it waits for may take long

    def eof_received(self) -> bool:
        """A client that sends no more may still read its answer."""
        self._ends = True
        open_ = self._transport is not None and self._transport.get_extra_info("ssl_object") is None
        return open_ and self._task is not None and self._body.complete  # TLS cannot be closed by half

    def pause_writing(self) -> None:
        self._writable = False
        self.pause()

    def resume_writing(self) -> None:
        self._writable = True
        self.resume()

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and self._writable:
            self._transport.resume_reading()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def closing(self) -> None:
        """No further request is answered."""
        self._ends = True
        if self._task is None and self._transport is not None:
            self._transport.close()

    # -- bytes

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        try:
            while data and not self._deaf:
                part = data[: MOST_OF_HEAD + 1 - self._head] if self._in_head else data
                if self._in_head:
                    self._head += len(part)
                self._parser.feed_data(part)
                if self._in_head and self._head > MOST_OF_HEAD:
                    raise httptools.HttpParserError("the headers are too long")
                data = data[len(part) :]
        except httptools.HttpParserUpgrade:
            self._deaf = True  # the request is answered as it stands; what follows is another protocol
        except (httptools.HttpParserError, ValueError):
            self._refuse()

    def _refuse(self) -> None:
        """This is no HTTP, or too much of it. Requests before it are answered still."""
        self._deaf = True
        if self._task is None:
            self._write(HTTPBadRequest(), goes_on=False)
            self._linger()
        else:
            self._ends = True

    # -- the parser's callbacks

    def on_message_begin(self) -> None:
        self._target, self._headers, self._body = b"", Headers(), RequestBody(self)

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.add(name.decode("latin-1"), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self._in_head, self._head = False, 0
        method = self._parser.get_method().decode("latin-1")
        goes_on = self._parser.should_keep_alive()
        self._body.expected = self._headers.get("expect").lower() == "100-continue"
        request = PageRequest(method, _path_of(self._target), self._headers, self._body, self._transport)
        if len(self._waiting) >= MOST_AHEAD:
            self.abort()
            self._deaf = True
            return
        self._waiting.append((request, self._body, goes_on))
        self._answer_next()

    def on_body(self, body: bytes) -> None:
        self._body.feed(body)
        if self._body.size > READ_AHEAD:
            self.pause()

    def on_message_complete(self) -> None:
        self._in_head = True
        self._body.end()

    # -- answers

    def wants(self, body: RequestBody) -> None:
        """A page reads the body of its request."""
        if body.expected and not body.complete and self._transport is not None:
            body.expected = False
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _answer_next(self) -> None:
        if self._task is None and self._waiting and self._transport is not None:
            request, body, goes_on = self._waiting.pop(0)
            self._task = asyncio.get_running_loop().create_task(self._answer(request, body, goes_on))
            self._runner.answering.add(self._task)
            self._task.add_done_callback(self._runner.answering.discard)

    async def _answer(self, request: PageRequest, body: RequestBody, goes_on: bool) -> None:
        try:
            response = await self._runner.app.answer(request)
        except ConnectionError:
            self.abort()
            return
        except Exception:  # middleware answers for pages that fail
            response = HTTPException()
        finally:
            self._task = None
        goes_on = goes_on and not self._ends and not self._deaf and body.complete
        self._write(response, goes_on=goes_on, head_only=request.method == "HEAD")
        if goes_on:
            self.resume()
            self._answer_next()
        elif body.complete:
            self._close()
        else:
            self._linger()

    def _write(self, response: PageResponse, *, goes_on: bool, head_only: bool = False) -> None:
        if self._transport is None:
            return
        headers = {
            "Date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()),
            "Content-Length": str(len(response.body)),
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
        self._deaf = True
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
