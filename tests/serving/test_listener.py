"""Listening: connections come and go within the limits, and a system without room is not asked again and again."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

import pytest

from stowplan.serving.connections import ConnectionLimits, ConnectionTable
from stowplan.serving.listener import SocketListener

LIMITS = ConnectionLimits(total=8, per_peer=4, unproven=2, opening_within=0.3, headers_within=0.3, idle_within=0.3)


class Echo(asyncio.Protocol):
    """Answers each line."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert isinstance(self._transport, asyncio.Transport)
        if data.endswith(b"\n"):
            with self._scene.listener.serving(self._transport) as prove:
                if data == b"secret\n":
                    prove()
                self._transport.write(data)


class Scene:
    def __init__(self) -> None:
        self.table = ConnectionTable(LIMITS)
        self.listener = SocketListener(lambda: Echo(self), self.table)
        self.stack, self.port = ExitStack(), 0

    async def connected(self) -> socket.socket:
        made = self.stack.enter_context(socket.socket())
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", self.port))
        return made

    async def ask(self, one: socket.socket, line: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(one, line)
        return await self.heard(one)

    async def heard(self, one: socket.socket) -> bytes:
        """What arrives; nothing if it was closed."""
        async with asyncio.timeout(10):
            try:
                return await asyncio.get_running_loop().sock_recv(one, 100)
            except ConnectionError:
                return b""


def play(story: Callable[[Scene], Awaitable[None]]) -> None:
    async def run() -> None:
        scene = Scene()
        with scene.stack:
            addresses = await scene.listener.listen("127.0.0.1", 0)
            scene.port = addresses[0][1]
            await story(scene)
            scene.listener.close()

    asyncio.run(run())


def test_a_connection_is_served_while_others_are_held() -> None:
    async def story(scene: Scene) -> None:
        held = [await scene.connected() for _ in range(50)]
        assert await scene.ask(await scene.connected(), b"hello\n") == b"hello\n"
        assert len(scene.table) <= LIMITS.per_peer
        assert await scene.heard(held[0]) == b"", "the oldest went first"

    play(story)


@pytest.mark.parametrize("said", [b"", b"half a line"])
def test_who_says_too_little_is_closed_in_time(said: bytes) -> None:
    async def story(scene: Scene) -> None:
        one = await scene.connected()
        assert await scene.ask(one, said) == b""
        assert len(scene.table) == 0

    play(story)


def test_an_idle_connection_is_closed_in_time() -> None:
    async def story(scene: Scene) -> None:
        one = await scene.connected()
        assert await scene.ask(one, b"a\n") == b"a\n"
        assert await scene.ask(one, b"b\n") == b"b\n"
        assert await scene.heard(one) == b""

    play(story)


def test_who_has_spoken_makes_room_for_the_next_unless_it_is_proven() -> None:
    async def story(scene: Scene) -> None:
        proven, first, second, third = [await scene.connected() for _ in range(4)]
        assert await scene.ask(proven, b"secret\n") == b"secret\n"
        for one in (first, second, third):
            assert await scene.ask(one, b"a\n") == b"a\n"
        assert await scene.heard(first) == b""
        assert await scene.ask(proven, b"again\n") == b"again\n"

    play(story)


def test_without_descriptors_it_pauses_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    accept, asked = socket.socket.accept, list[int]()

    def no_room(listening: socket.socket) -> object:
        asked.append(1)
        if len(asked) <= 2:
            raise OSError(errno.EMFILE, "too many open files")
        return accept(listening)

    async def story(scene: Scene) -> None:
        monkeypatch.setattr(socket.socket, "accept", no_room)
        assert await scene.ask(await scene.connected(), b"a\n") == b"a\n"
        assert len(asked) < 10

    play(story)


def test_a_port_that_is_taken() -> None:
    async def story(scene: Scene) -> None:
        with pytest.raises(OSError):
            await SocketListener(lambda: Echo(scene), scene.table).listen("127.0.0.1", scene.port)

    play(story)


def test_it_closes_who_is_quiet_when_it_ends() -> None:
    async def story(scene: Scene) -> None:
        quiet = await scene.connected()
        served = await scene.connected()
        assert await scene.ask(served, b"a\n") == b"a\n"
        scene.listener.close()
        assert await scene.heard(quiet) == b""
        assert await scene.ask(served, b"b\n") == b"b\n", "what is served is the server's to end"

    play(story)
