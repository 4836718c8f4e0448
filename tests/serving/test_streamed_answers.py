"""Answers that go on: each part arrives as it is made, and the one who makes them learns that the client is gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from stowplan.serving import web
from stowplan.serving.web import StreamedResponse


class Parts:
    """What is sent, and whether the generator came to its end."""

    def __init__(self, number: int = 1000, size: int = 0, fails_at: int = -1) -> None:
        self.made, self.closed = 0, asyncio.Event()
        self.go_on = asyncio.Event()
        self._number, self._size, self._fails_at = number, size, fails_at

    async def parts(self) -> AsyncGenerator[bytes, None]:
        try:
            for at in range(self._number):
                if at == self._fails_at:
                    raise ZeroDivisionError
                self.made += 1
                yield f"part {at};".encode() + b"x" * self._size
                if not self._size:
                    await self.go_on.wait()
                    self.go_on.clear()
        finally:
            self.closed.set()


class Client:
    """A client of a page that sends these parts, and the server."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, runner: web.AppRunner, server: asyncio.Server
    ) -> None:
        self.reader, self.writer, self._runner, self._server = reader, writer, runner, server

    async def until(self, mark: bytes) -> bytes:
        async with asyncio.timeout(20):
            return await self.reader.readuntil(mark)

    async def rest(self) -> bytes:
        async with asyncio.timeout(20):
            return await self.reader.read()

    async def end(self) -> None:
        self.writer.close()
        await self._runner.cleanup()
        self._server.close()
        await asyncio.sleep(0.01)  # closed transports are let go in the next turn of the loop


async def opened(given: Parts, method: str = "GET", patience: float = 30.0) -> Client:
    async def page(_request: web.PageRequest) -> web.PageResponse:
        found = StreamedResponse(given.parts(), content_type="text/event-stream")
        found.patience = patience
        return found

    app = web.Application()
    app.router.add_get("/events", page)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    server = await asyncio.get_running_loop().create_server(runner.server, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2], limit=1 << 26)
    writer.write(f"{method} /events HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return Client(reader, writer, runner, server)


async def closed(given: Parts) -> None:
    async with asyncio.timeout(20):
        await given.closed.wait()


def test_parts_arrive_one_by_one_until_the_end() -> None:
    async def story() -> None:
        given = Parts(number=2)
        client = await opened(given)
        head = (await client.until(b"\r\n\r\n")).decode()
        assert "200 OK" in head and "Connection: close" in head and "Content-Length" not in head
        assert await client.until(b";") == b"part 0;"
        assert given.made == 1
        given.go_on.set()
        assert await client.until(b";") == b"part 1;"
        given.go_on.set()
        assert await client.rest() == b""
        await client.end()

    asyncio.run(story())


def test_who_makes_the_parts_learns_that_the_client_is_gone() -> None:
    async def story() -> None:
        given = Parts()
        client = await opened(given)
        await client.until(b"part 0;")
        client.writer.close()
        await closed(given)
        await client.end()

    asyncio.run(story())


def test_the_end_of_the_server_ends_the_answer() -> None:
    async def story() -> None:
        given = Parts()
        client = await opened(given)
        await client.until(b"part 0;")
        await client.end()
        await closed(given)

    asyncio.run(story())


def test_no_more_is_made_than_the_client_reads() -> None:
    async def story() -> None:
        given = Parts(number=10_000, size=100_000)
        client = await opened(given)
        await client.until(b"part 0;")
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]
        before = -1
        while given.made != before:
            before = given.made
            await asyncio.sleep(0.05)
        assert given.made < 2000
        await client.end()

    asyncio.run(story())


def test_a_client_that_reads_nothing_is_let_go() -> None:
    async def story() -> None:
        given = Parts(number=100_000, size=100_000)
        client = await opened(given, patience=0.05)
        await client.until(b"part 0;")
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]
        await closed(given)
        await client.end()

    asyncio.run(story())


def test_a_part_that_cannot_be_made_breaks_the_connection() -> None:
    async def story() -> None:
        given = Parts(fails_at=1)
        client = await opened(given)
        await client.until(b"part 0;")
        given.go_on.set()
        with contextlib.suppress(ConnectionResetError):
            assert await client.rest() == b""
        await client.end()

    asyncio.run(story())


def test_the_head_alone_makes_no_parts() -> None:
    async def story() -> None:
        given = Parts()
        client = await opened(given, method="HEAD")
        assert b"200 OK" in await client.rest()
        assert given.made == 0
        await client.end()

    asyncio.run(story())
