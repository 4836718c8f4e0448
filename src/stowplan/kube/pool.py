"""Connections to one server, kept open and used again, made through a proxy where there is one."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from urllib.parse import urlsplit

from stowplan.kube.connection import Connection
from stowplan.kube.credentials import Access
from stowplan.kube.responses import UnreachableError

CONNECT_WITHIN = 10.0
# A peer that vanished without a word is noticed after half a minute, on quiet connections, too.
KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000))
TURNS = 100  # of the event loop, at most, until a closed connection is gone


class Pool:
    """Up to `limit` connections for requests; when all are busy one waits. Streams have their own."""

    def __init__(self, access: Access, limit: int) -> None:
        self._access, self._limit = access, limit
        parts = urlsplit(access.server)
        self._host, self._port = parts.hostname or "", parts.port or (443 if access.ssl else 80)
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._busy = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    async def take(self) -> Connection:
        """An idle connection, the one used last, or a new one; give it back afterwards."""
        if self._busy < self._limit:
            self._busy += 1
        else:
            await self._turn()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        try:
            return await self.open()
        except BaseException:
            self._leave()
            raise

    def give_back(self, connection: Connection) -> None:
        if connection.usable and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()
        self._leave()

    def _leave(self) -> None:
        """The place goes to whoever has waited longest."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._busy -= 1

    async def _turn(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():  # the place was ours already
                self._leave()
            raise

    def drop_idle(self) -> None:
        """Close what is not in use: it may show credentials that are no longer good."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def close(self) -> None:
        self._closed = True
        self._idle.clear()
        for connection in list(self._all):
            connection.close()
        for _ in range(TURNS):
            if self._all:
                await asyncio.sleep(0)

    # -- making connections

    async def open(self) -> Connection:
        """A new connection, which is its user's alone."""
        if self._closed:
            raise UnreachableError(f"{self._access.server}: we are done with it", unsent=True)
        try:
            async with asyncio.timeout(CONNECT_WITHIN):
                connection = await self._dial()
        except OSError as error:
            reason = str(error) or f"no connection within {CONNECT_WITHIN:g} s"
            raise UnreachableError(f"{self._access.server}: {reason}", unsent=True) from None
        self._all.add(connection)
        return connection

    async def _dial(self) -> Connection:
        loop, proxy, tls = asyncio.get_running_loop(), self._access.proxy, self._access.ssl
        host, port = (proxy.host, proxy.port) if proxy else (self._host, self._port)
        direct = tls if proxy is None else (ssl.create_default_context() if proxy.tls else None)
        name = None if direct is None else (self._access.server_name if proxy is None else proxy.host)
        transport, connection = await loop.create_connection(
            lambda: Connection(self._all.discard), host, port, ssl=direct, server_hostname=name
        )
        keep_alive(transport)
        if proxy is not None and tls is not None:
            connection = await self._tunnel(transport, connection, tls)
        return connection

    async def _tunnel(self, transport: asyncio.Transport, outer: Connection, tls: ssl.SSLContext) -> Connection:
        """Ask the proxy for a way to the server, and speak TLS with the server through it."""
        assert self._access.proxy is not None
        target = f"{self._host}:{self._port}"
        permit = self._access.proxy.authorization
        lines = [
            f"CONNECT {target} HTTP/1.1",
            f"Host: {target}",
            *([f"Proxy-Authorization: {permit}"] if permit else []),
        ]
        # Nothing tells the parser that this answer has no body, so what follows is taken for a stream.
        answer, way = await outer.stream("\r\n".join([*lines, "", ""]).encode(), CONNECT_WITHIN)
        if way is None:
            outer.close()
            raise UnreachableError(f"the proxy refused the way to {target}: {answer.status}", unsent=True)
        inner = Connection(self._all.discard)
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(transport, inner, tls, server_hostname=self._access.server_name)
        assert secured is not None
        inner.connection_made(secured)
        return inner


def keep_alive(transport: asyncio.BaseTransport) -> None:
    found: socket.socket | None = transport.get_extra_info("socket")
    if found is None or found.family not in (socket.AF_INET, socket.AF_INET6):
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE:
        if hasattr(socket, option):
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
