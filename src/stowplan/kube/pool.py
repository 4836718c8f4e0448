"""A pool of connections to one server, opened through a proxy if there is one."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from urllib.parse import urlsplit

from stowplan.kube.connection import Connection
from stowplan.kube.credentials import Access
from stowplan.kube.responses import UnreachableError

CONNECT_TIMEOUT = 10.0
# A peer that disappeared is noticed after half a minute, even on idle connections.
KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000))
CLOSE_ITERATIONS = 100  # iterations of the event loop to wait for closed connections


class Pool:
    """At most `limit` connections for requests; further requests wait. Streams have connections of their own."""

    def __init__(self, access: Access, limit: int) -> None:
        self._access, self._limit = access, limit
        parts = urlsplit(access.server)
        self._host, self._port = parts.hostname or "", parts.port or (443 if access.ssl else 80)
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._busy = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def idle(self) -> Connection | None:
        """The connection that was used last, if it is idle. The caller must release it."""
        if self._busy < self._limit:
            while self._idle:
                connection = self._idle.pop()
                if connection.usable:
                    self._busy += 1
                    return connection
        return None

    def idle_for_stream(self) -> Connection | None:
        """The same for a stream, which keeps it: the one that a list was read over will do for its watch."""
        connection = self.idle()
        if connection is not None:
            self._free_slot()
        return connection

    async def acquire(self) -> Connection:
        """An idle connection, the last used one first, or a new one. The caller must release it."""
        if self._busy < self._limit:
            self._busy += 1
        else:
            await self._wait_for_slot()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        try:
            return await self.open()
        except BaseException:
            self._free_slot()
            raise

    def release(self, connection: Connection) -> None:
        if connection.usable and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()
        self._free_slot()

    def _free_slot(self) -> None:
        """Pass the slot to the request that has waited longest."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._busy -= 1

    async def _wait_for_slot(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():  # the slot was assigned already
                self._free_slot()
            raise

    def close_idle(self) -> None:
        """Close idle connections: they may use outdated credentials."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def close(self) -> None:
        self._closed = True
        self._idle.clear()
        for connection in list(self._all):
            connection.close()
        for _ in range(CLOSE_ITERATIONS):
            if self._all:
                await asyncio.sleep(0)

    # -- opening connections

    async def open(self) -> Connection:
        """A new connection outside of the limit."""
        if self._closed:
            raise UnreachableError(f"{self._access.server}: the client is closed", unsent=True)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                connection = await self._connect()
        except OSError as error:
            reason = str(error) or f"no connection within {CONNECT_TIMEOUT:g} s"
            raise UnreachableError(f"{self._access.server}: {reason}", unsent=True) from None
        self._all.add(connection)
        return connection

    async def _connect(self) -> Connection:
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
        """Open a tunnel through the proxy, with TLS to the server."""
        assert self._access.proxy is not None
        target = f"{self._host}:{self._port}"
        permit = self._access.proxy.authorization
        lines = [
            f"CONNECT {target} HTTP/1.1",
            f"Host: {target}",
            *([f"Proxy-Authorization: {permit}"] if permit else []),
        ]
        # The parser does not know that this response has no body, so it is read as a stream.
        answer, tunnel = await outer.stream("\r\n".join([*lines, "", ""]).encode(), CONNECT_TIMEOUT)
        if tunnel is None:
            outer.close()
            raise UnreachableError(f"the proxy refused to connect to {target}: {answer.status}", unsent=True)
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
