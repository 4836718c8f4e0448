"""A proxy on loopback between a program and its API server. It misbehaves in one way at a time, or not at all.

    with Proxy(plane.server) as proxy:
        kubeconfig = proxy.kubeconfig(plane.kubeconfig(), folder / "via-proxy")
        proxy.mode = "html"
        ...
        proxy.mode = FINE

It has an event loop in a thread of its own. Requests are read one by one, so that a fault may depend on what is asked;
answers pass in the pieces in which they arrive. `hits` counts how often each fault struck. A fault that meets requests
does not meet a watch that is open already: `break_connections` ends those.

| mode                | what happens                                                                             |
|---------------------|------------------------------------------------------------------------------------------|
| `delay`             | each request waits for up to two seconds                                                 |
| `reset`, `truncate` | one piece of an answer in ten is not sent, or half of it, and the connection ends         |
| `garble`            | in one piece of an answer in ten three bytes become ones that no JSON has                |
| `410`, `503`        | a watch is too old; every other request is refused                                       |
| `retry-after-a-day` | each request is refused with 429, and a day to wait                                      |
| `lose-answers`      | bindings are carried out, and the connection ends before the answer                      |
| `html`              | each request is answered with 200 and a page, as by the login page of a network          |
| `lie`               | a binding is answered with success and not carried out                                   |
| `blackhole`         | requests are read and never answered                                                     |
| `dribble`           | the first bytes of each piece arrive one by one                                          |
| `shut`              | connections end, and no new one is accepted                                              |
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

FINE = "fine"
MODES = (
    "delay", "reset", "truncate", "garble", "410", "503", "retry-after-a-day", "lose-answers", "html", "lie",
    "blackhole", "dribble", "shut",
)  # fmt: skip
PIECE = 65536
LONGEST_REQUEST = 16 << 20
LONGEST_DELAY = 2.0  # seconds
SHARE = 0.1  # of the pieces of answers that are hit
CLOSING = 0.02  # seconds until closed connections are gone
DRIBBLED = 400  # bytes of each piece

_EXPIRED = {
    "type": "ERROR",
    "object": {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
        "message": "too old resource version",
    },
}  # fmt: skip
_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class ProxiedRequest:
    """One request, as it arrived."""

    def __init__(self, head: bytes, body: bytes) -> None:
        self.raw = head + body
        self.line = head.split(b"\r\n", 1)[0].decode("latin-1")

    @property
    def is_watch(self) -> bool:
        return "watch=1" in self.line

    @property
    def is_binding(self) -> bool:
        return self.line.startswith("POST ") and self.line.split(" ")[1].endswith("/binding")


class _Meeting:
    """A connection of the program, and the one to the server that belongs to it."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.near, self.far = near, far
        self.lose_next = False  # the next answer is not passed on

    def end(self) -> None:
        self.near.transport.abort()
        self.far.transport.abort()


class Proxy:
    """`to`: the address of the server. `tls`: what the program is served with; without it, it is plain HTTP."""

    def __init__(self, to: str, *, tls: ssl.SSLContext | None = None, seed: int = 1) -> None:
        parts = urlsplit(to)
        self._host, self._port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        self._far_tls = _trusting() if parts.scheme == "https" else None
        self._tls, self._generator = tls, random.Random(seed)
        self._mode = FINE
        self._meetings: set[_Meeting] = set()
        self._begun, self._loop = threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="misbehaving-proxy", daemon=True)
        self.hits: Counter[str] = Counter()
        self.url = ""

    @property
    def mode(self) -> str:
        """What goes wrong just now."""
        return self._mode

    @mode.setter
    def mode(self, mode: str) -> None:
        assert mode in (FINE, *MODES), f"there is no mode {mode}"
        self._mode = mode
        if mode == "shut":
            self.break_connections()

    def kubeconfig(self, like: Path, file: Path) -> Path:
        """A kubeconfig as another one (in JSON), with the address of the proxy."""
        document = json.loads(like.read_text(encoding="utf-8"))
        for each in document["clusters"]:
            each["cluster"] = {"server": self.url} | ({"insecure-skip-tls-verify": True} if self._tls else {})
        file.touch(mode=0o600)
        file.write_text(json.dumps(document), encoding="utf-8")
        return file

    def break_connections(self) -> None:
        """End all connections that are open now."""
        self._loop.call_soon_threadsafe(self._end_all)

    def _end_all(self) -> None:
        for each in list(self._meetings):
            each.end()

    # -- its life

    def __enter__(self) -> Self:
        self._thread.start()
        self._begun.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(self._meet, "127.0.0.1", 0, ssl=self._tls))
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._begun.set()
        loop.run_forever()
        server.close()
        loop.run_until_complete(asyncio.sleep(CLOSING))  # who was accepted just now is met
        for each in list(self._meetings):
            each.end()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(asyncio.sleep(CLOSING))
        loop.close()

    # -- one connection

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._mode == "shut":
                self._hit()
                writer.transport.abort()
                return
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port, ssl=self._far_tls)
        except BaseException as error:
            writer.transport.abort()
            if isinstance(error, OSError):
                return
            raise
        meeting = _Meeting(writer, far_writer)
        self._meetings.add(meeting)
        there = asyncio.ensure_future(self._there(reader, meeting))
        back = asyncio.ensure_future(self._back(far_reader, meeting))
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            writer.close()  # what was written is sent first
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._meetings.discard(meeting)
            far_writer.transport.abort()
            there.cancel()
            back.cancel()

    async def _there(self, reader: asyncio.StreamReader, meeting: _Meeting) -> None:
        """Requests: passed on, answered here, or swallowed."""
        async for request in _requests(reader):
            answer = self._answer_instead(request)
            if answer:
                self._hit()
                meeting.near.write(answer)
                await meeting.near.drain()
                if b"\r\nConnection: close\r\n" in answer:
                    return
                continue
            if self._mode == "blackhole":
                self._hit()
                continue
            if self._mode == "delay":
                self._hit()
                await asyncio.sleep(self._generator.uniform(0, LONGEST_DELAY))
            meeting.lose_next = self._mode == "lose-answers" and request.is_binding
            meeting.far.write(request.raw)
            await meeting.far.drain()

    def _answer_instead(self, request: ProxiedRequest) -> bytes:
        """The answer of the proxy itself; empty if the request is for the server."""
        mode = self._mode
        if mode == "html":
            return _answer("200 OK", b"<html>Please log in</html>\r\n", "text/html; charset=utf-8")
        if mode == "retry-after-a-day":
            return _answer("429 Too Many Requests", b"busy", "text/plain", "Retry-After: 86400")
        if mode == "503" and self._generator.random() < 0.5:
            return _answer("503 Service Unavailable", b"busy", "text/plain", "Retry-After: 1")
        if mode == "410" and request.is_watch:
            return _answer("200 OK", json.dumps(_EXPIRED).encode() + b"\n", "application/json", "Connection: close")
        if mode == "lie" and request.is_binding:
            return _answer("201 Created", json.dumps(_SUCCESS).encode(), "application/json")
        return b""

    async def _back(self, reader: asyncio.StreamReader, meeting: _Meeting) -> None:
        """Answers, piece by piece."""
        while piece := await reader.read(PIECE):
            mode, struck = self._mode, self._generator.random() < SHARE
            if meeting.lose_next:
                self._hit()
                meeting.end()
                return
            if mode == "reset" and struck:
                self._hit()
                meeting.end()
                return
            if mode == "truncate" and struck:
                self._hit()
                meeting.near.write(piece[: len(piece) // 2])
                return
            if mode == "garble" and struck:
                self._hit()
                piece = self._garbled(piece)
            if mode == "dribble":
                self._hit()
                piece = await self._dribbled(piece, meeting.near)
            meeting.near.write(piece)
            await meeting.near.drain()

    def _garbled(self, piece: bytes) -> bytes:
        """Other bytes would be JSON of another object now and then, which nobody can tell without TLS."""
        damaged = bytearray(piece)
        for _ in range(3):
            damaged[self._generator.randrange(len(damaged))] = 0xFF
        return bytes(damaged)

    async def _dribbled(self, piece: bytes, near: asyncio.StreamWriter) -> bytes:
        for at in range(min(len(piece), DRIBBLED)):
            near.write(piece[at : at + 1])
            await asyncio.sleep(0)  # each byte is a packet of its own
        return piece[DRIBBLED:]

    def _hit(self) -> None:
        self.hits[self._mode] += 1


async def _requests(reader: asyncio.StreamReader) -> AsyncIterator[ProxiedRequest]:
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            yield ProxiedRequest(head, await reader.readexactly(_length(head)))
        except (asyncio.IncompleteReadError, OSError):
            return


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return min(int(value), LONGEST_REQUEST)
    return 0


def _answer(status: str, body: bytes, kind: str, *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *more, "", ""]
    return "\r\n".join(lines).encode() + body


def _trusting() -> ssl.SSLContext:
    """Whatever the server's certificate is: it is our own one."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context
