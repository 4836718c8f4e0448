"""A way to a server that can be shut and opened again, for partitions."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit


class Gate:
    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self._scheme, self._host, self._port = parts.scheme, parts.hostname, parts.port
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = True

    async def __aenter__(self) -> Gate:
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.url = f"{self._scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.shut()
        self._server.close()
        await self._server.wait_closed()

    def shut(self) -> None:
        """Break open connections and refuse new ones; from any thread."""
        self._open = False
        self._loop.call_soon_threadsafe(self._break)

    def _is_shut(self) -> bool:
        return not self._open

    def _break(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def open(self) -> None:
        self._open = True

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._open:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        if self._is_shut():  # meanwhile
            self._break()
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        self._writers -= {writer, far_writer}


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except ConnectionError:
        pass
    writer.close()
