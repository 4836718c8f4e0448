"""A server of a few lines for each test, on loopback, and clients for it."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from stowplan.kube.client import Client
from stowplan.kube.credentials import Access
from stowplan.kube.kubeconfig import KubeconfigCluster, KubeconfigUser, ResolvedContext
from stowplan.kube.transport import Transport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Fake:
    """A fake server: its URL and the requests that it got."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, str, Any]] = []  # method, path with query, JSON of the body
        self.headers: list[dict[str, str]] = []
        self.connections = set[Any]()


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Fake]:
    """A server that answers as `handler` does."""
    fake = Fake()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        fake.asked.append((request.method, request.raw_path, json.loads(body) if body else None))
        fake.headers.append(dict(request.headers))
        fake.connections.add(request.transport)
        return await handler(request)  # type: ignore[arg-type]

    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    fake.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield fake
    finally:
        await runner.cleanup()


def an_access(server: str, **user: Any) -> Access:
    return Access(
        ResolvedContext("test", KubeconfigCluster(server=server), KubeconfigUser(**user), "default"), environ={}
    )


@asynccontextmanager
async def a_client(fake: Fake, **options: Any) -> AsyncIterator[Client]:
    client = Client(Transport(an_access(fake.url), generator=random.Random(1), **options))
    try:
        yield client
    finally:
        await client.close()


def answered(document: object, status: int = 200, **headers: str) -> web.Response:
    """A Kubernetes object of any kind, if a mapping names none."""
    if isinstance(document, dict):
        document = {"kind": "Whatever", **document}
    return web.json_response(document, status=status, headers=headers)


def a_stream() -> web.StreamResponse:
    """An answer that goes on, as to a watch."""
    return web.StreamResponse(headers={"Content-Type": "application/json"})


def refused(status: int, message: str = "no", **headers: str) -> web.Response:
    return answered({"kind": "Status", "code": status, "message": message}, status, **headers)


async def until(condition: Callable[[], Any], seconds: float = 60) -> None:
    """Wait for something to become true, or fail."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)
