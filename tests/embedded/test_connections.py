"""Who connects without a right to: a few connections, and none that somebody else needs."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import pytest

from stowplan.embedded.cluster import Embedded
from stowplan.embedded.http import server

FEW = 2


class Connection:
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def status(self, path: str = "/version", token: str = "") -> int:
        """The status of an answer; 0 if the server has closed the connection."""
        sent = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n" + (f"Authorization: Bearer {token}\r\n" if token else "")
        try:
            self._writer.write(f"{sent}\r\n".encode())
            async with asyncio.timeout(60):
                head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
                await self._reader.readexactly(int(head.partition("content-length: ")[2].partition("\r\n")[0]))
        except (ConnectionError, asyncio.IncompleteReadError):
            return 0
        return int(head.split()[1])

    def close(self) -> None:
        self._writer.close()


@contextlib.asynccontextmanager
async def connections(cluster: Embedded, count: int) -> AsyncIterator[list[Connection]]:
    tls = ssl.create_default_context(cadata=cluster.certificate.decode()) if cluster.rbac else None
    host, _, port = cluster.url.split("//")[1].rpartition(":")
    found: list[Connection] = []
    for _ in range(count):
        found.append(Connection(*await asyncio.open_connection(host, int(port), ssl=tls)))
        await found[-1].status()
    yield found
    for each in found:
        each.close()


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_UNPROVEN", FEW)


def test_strangers_lose_their_oldest_connections() -> None:
    """They are strangers although everybody may read the version."""

    async def run() -> None:
        cluster = Embedded(rbac=True, with_controllers=False)
        await cluster.start(token="secret")
        async with connections(cluster, 1) as (administrator,):
            assert await administrator.status("/api/v1/pods", "secret") == 200
            async with connections(cluster, FEW + 2) as strangers:
                assert [await each.status() for each in strangers] == [0, 0, *[200] * FEW]
                assert await administrator.status("/api/v1/pods", "secret") == 200
        await cluster.stop()

    asyncio.run(run())


def test_there_are_no_strangers_on_loopback_without_rbac() -> None:
    async def run() -> None:
        async with Embedded(with_controllers=False) as cluster, connections(cluster, FEW + 2) as clients:
            assert [await each.status() for each in clients] == [200] * (FEW + 2)

    asyncio.run(run())


@pytest.mark.parametrize(("host", "strangers"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_where_a_token_is_needed_there_are_strangers(host: str, strangers: bool) -> None:
    async def run() -> int:
        cluster = Embedded(with_controllers=False)
        await cluster.start(host, token="secret")
        async with connections(cluster, FEW + 2) as clients:
            found = [await each.status() for each in clients]
        await cluster.stop()
        return found.count(0)

    assert asyncio.run(run()) == (2 if strangers else 0)
