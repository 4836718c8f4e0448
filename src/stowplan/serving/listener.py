"""Accepts connections within limits, and serves each with a protocol: aiohttp's, or that of `http_protocol`.

A connection that says nothing is a socket and a line in the table: TLS begins with its first bytes. What the limits
mean is in `connections`; here is what they need of the event loop: a reader for the listening sockets, and one timer
per connection. A handler tells the listener that it answers a request (`serving`), since only then its headers are
complete, and that the client is authorized.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import cast

from stowplan.serving.connections import ConnectionPhase, ConnectionTable, ServedConnection, peer_of

BACKLOG = 128
ACCEPTED_AT_ONCE = 16  # then what was closed for them is given back, and requests have their turn
PAUSE = 0.1  # seconds without accepting when the system has no more descriptors or memory
SHUTDOWN_WITHIN = 2.0  # seconds for a client to confirm the end of TLS
LINGER = 1.0  # seconds for a client that sends a body which nobody reads to see the answer
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

# aiohttp's logger of requests that are no HTTP. Anybody can send one, so there is nothing to tell an operator.
SILENT = logging.getLogger("stowplan.serving")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False

ContextOf = Callable[[], ssl.SSLContext]


class SocketListener:
    """Serves on one port. `context` returns the TLS context for a new connection; None: no TLS."""

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        table: ConnectionTable,
        context: ContextOf | None = None,
    ) -> None:
        self._protocol, self._table, self._context = protocol, table, context
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._timers: dict[ServedConnection, asyncio.TimerHandle] = {}
        self._by_transport: dict[asyncio.BaseTransport, ServedConnection] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._resuming: asyncio.TimerHandle | None = None

    # -- from start to end

    async def listen(self, host: str, port: int) -> list[tuple[str, int]]:
        """Open the port on each address of the host; return the addresses. Raises OSError if one cannot be opened."""
        found = await self._loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, kind, number, _, address in dict.fromkeys(found):
                self._sockets.append(_bound(family, kind, number, address))
        except OSError:
            self.close()
            raise
        self._accept_more()
        return [each.getsockname()[:2] for each in self._sockets]

    def close(self) -> None:
        """Accept nothing more; who is quiet or in a handshake is closed. What is served is the server's to end."""
        if self._resuming is not None:
            self._resuming.cancel()
        for each in self._sockets:
            self._loop.remove_reader(each)
            each.close()
        self._sockets.clear()
        for one in list(self._timers):
            if one.phase in (ConnectionPhase.QUIET, ConnectionPhase.OPENING):
                self._table.leave(one)
                one.end()

    # -- accepting

    def _accept_more(self) -> None:
        self._resuming = None
        for each in self._sockets:
            self._loop.add_reader(each, self._accept, each)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in NO_ROOM:
                    self._table.close_one()
                    self._pause()
                return  # any other error is of that connection: the next one is accepted in the next turn
            self._admit(accepted, address)

    def _pause(self) -> None:
        """Leave the connections in the backlog for a moment: to ask again at once would keep the processor busy."""
        for each in self._sockets:
            self._loop.remove_reader(each)
        self._resuming = self._loop.call_later(PAUSE, self._accept_more)

    def _admit(self, accepted: socket.socket, address: tuple[object, ...]) -> None:
        one = self._table.arrive(peer_of(str(address[0])), self._loop.time())
        if one is None:
            accepted.close()
            return
        accepted.setblocking(False)
        one.end = partial(self._close_quiet, one, accepted)
        self._set_timer(one)
        self._loop.add_reader(accepted, self._speaks, one, accepted)

    def _close_quiet(self, one: ServedConnection, accepted: socket.socket) -> None:
        self._loop.remove_reader(accepted)
        accepted.close()
        self._forget(one)

    # -- serving

    def _speaks(self, one: ServedConnection, accepted: socket.socket) -> None:
        self._loop.remove_reader(accepted)
        self._table.speaks(one)
        task = self._loop.create_task(self._open(one, accepted))
        self._opening.add(task)
        task.add_done_callback(partial(self._opening_ended, one, accepted))

        def end() -> None:
            task.cancel()

        one.end = end

    async def _open(self, one: ServedConnection, accepted: socket.socket) -> None:
        protocol = partial(_TimedProtocol, self, one, self._protocol)
        if self._context is None:
            await self._loop.connect_accepted_socket(protocol, accepted)
            return
        within = self._table.limits.opening_within
        await self._loop.connect_accepted_socket(
            protocol,
            accepted,
            ssl=self._context(),
            ssl_handshake_timeout=within,
            ssl_shutdown_timeout=SHUTDOWN_WITHIN,
        )

    def _opening_ended(self, one: ServedConnection, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        """Close what could not be opened: it spoke no TLS, went away, was too slow, or had to make room."""
        self._opening.discard(task)
        if task.cancelled() or task.exception() is not None:
            accepted.close()
            self._forget(one)

    def opened(self, one: ServedConnection, transport: asyncio.Transport) -> None:
        one.end = transport.abort
        self._by_transport[transport] = one
        self._table.opened(one, self._loop.time())
        self._set_timer(one)

    def received(self, one: ServedConnection) -> None:
        if self._table.received(one, self._loop.time()):
            self._set_timer(one)

    def lost(self, one: ServedConnection, transport: asyncio.BaseTransport | None) -> None:
        if transport is not None:
            self._by_transport.pop(transport, None)
        self._forget(one)

    @contextmanager
    def serving(self, transport: asyncio.BaseTransport | None) -> Iterator[Callable[..., None]]:
        """A request of this connection is being answered. Yields what a handler calls when it knows the client.

        It calls that with `known` False if the client is to be no better than others any more.
        """
        one = None if transport is None else self._by_transport.get(transport)
        if one is None:
            yield lambda **_: None
            return

        def prove(*, known: bool = True) -> None:
            one.proven = known

        self._table.request_begins(one)
        self._set_timer(one)
        try:
            yield prove
        finally:
            self._table.request_ends(one, self._loop.time())
            if transport in self._by_transport:
                self._set_timer(one)

    # -- time

    def _set_timer(self, one: ServedConnection) -> None:
        if (timer := self._timers.pop(one, None)) is not None:
            timer.cancel()
        if one.until is not None:
            self._timers[one] = self._loop.call_at(one.until, self._too_late, one)

    def _too_late(self, one: ServedConnection) -> None:
        self._timers.pop(one, None)
        self._table.leave(one)
        one.end()

    def _forget(self, one: ServedConnection) -> None:
        self._table.leave(one)
        if (timer := self._timers.pop(one, None)) is not None:
            timer.cancel()


class _TimedProtocol(asyncio.Protocol):
    """A server's protocol; the listener hears of what arrives, before it."""

    def __init__(
        self, listener: SocketListener, one: ServedConnection, protocol: Callable[[], asyncio.Protocol]
    ) -> None:
        self._listener, self._one, self._inner = listener, one, protocol()
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._listener.opened(self._one, cast("asyncio.Transport", transport))  # uvloop's is no subclass
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._listener.received(self._one)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._listener.lost(self._one, self._transport)
        self._inner.connection_lost(error)


def _bound(family: int, kind: int, number: int, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, kind, number)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
    except BaseException:
        with suppress(OSError):
            made.close()
        raise
    return made
