"""What a scheduler serves over HTTP(S): health, metrics, its configuration, why pods went where they went.

It runs in a thread with an event loop of its own, so that a plugin that takes its time does not make the program look
dead, and a slow reader of metrics does not hold up a binding. On the secure port all but the health pages are for those
whom the API server lets: their token is reviewed, and whether they may read that path.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web

from stowplan.apps import certificates
from stowplan.apps.authorization import Attributes, Authorizer
from stowplan.kube.client import Client
from stowplan.objects.errors import ConfigError

Page = Callable[[web.Request], Awaitable[web.Response]]
OPEN_PATHS = ("/healthz", "/livez", "/readyz")


@dataclass
class Listener:
    """Where to listen; without TLS on the loopback only, and without asking who comes."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    guard: Callable[[], Authorizer] | None = None


@dataclass
class Pages:
    """`checks` by name: each says what is wrong, or nothing. `others` by path; those who send something are `posts`.

    `about` says which object a request is about, where it takes a right to that; None: the right to the path will do.
    """

    checks: dict[str, Callable[[], str]] = field(default_factory=dict)
    ready: dict[str, Callable[[], str]] = field(default_factory=dict)
    others: dict[str, Page] = field(default_factory=dict)
    posts: dict[str, Page] = field(default_factory=dict)
    about: Callable[[web.Request], Awaitable[Attributes | None]] | None = None


class Listening(Protocol):
    """The options that say where to listen."""

    @property
    def secure_port(self) -> int: ...
    @property
    def plain_port(self) -> int: ...
    @property
    def bind_address(self) -> str: ...
    @property
    def tls_cert_file(self) -> str: ...
    @property
    def tls_private_key_file(self) -> str: ...
    @property
    def authentication_kubeconfig(self) -> str: ...
    @property
    def authorization_kubeconfig(self) -> str: ...


def doors(options: Listening, client_of: Callable[[str], Client]) -> list[Listener]:
    found = []
    if options.secure_port:
        context = certificates.server_context(options.tls_cert_file, options.tls_private_key_file)

        def guard() -> Authorizer:
            return Authorizer(client_of(options.authentication_kubeconfig), client_of(options.authorization_kubeconfig))

        found.append(Listener(options.bind_address, options.secure_port, context, guard))
    if options.plain_port:
        found.append(Listener("127.0.0.1", options.plain_port))
    return found


class HttpServer:
    def __init__(self, pages: Pages, doors: list[Listener]) -> None:
        self._pages, self._doors = pages, doors
        self._thread = threading.Thread(target=self._work, name="serving", daemon=True)
        self._loop = asyncio.new_event_loop()
        self._started: threading.Event = threading.Event()
        self._failure: Exception | None = None
        self.ports: list[int] = []

    def start(self) -> None:
        """Listen; a ConfigError says where that cannot be."""
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        runners: list[tuple[web.AppRunner, Authorizer | None]] = []
        try:
            for door in self._doors:
                runners.append(self._loop.run_until_complete(self._listen(door)))
        except Exception as error:
            self._failure = error
        self._started.set()
        if self._failure is None:
            self._loop.run_forever()
        self._loop.run_until_complete(self._close(runners))
        self._loop.close()

    async def _listen(self, door: Listener) -> tuple[web.AppRunner, Authorizer | None]:
        try:
            return await self._open(door)
        except OSError as error:
            raise ConfigError(f"cannot listen on port {door.port}: {error.strerror or error}") from None

    async def _open(self, door: Listener) -> tuple[web.AppRunner, Authorizer | None]:
        guard = door.guard() if door.guard is not None else None
        app = web.Application(middlewares=[guarded(guard, self._pages.about)] if guard is not None else [])
        for path, checks in (("/healthz", self._pages.checks), ("/livez", self._pages.checks)):
            self._route_health(app, path, checks)
        self._route_health(app, "/readyz", {**self._pages.checks, **self._pages.ready})
        for path, page in self._pages.others.items():
            app.router.add_get(path, page)
        for path, page in self._pages.posts.items():
            app.router.add_post(path, page)
        runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await runner.setup()
        site = web.TCPSite(runner, door.host, door.port, ssl_context=door.tls, shutdown_timeout=1.0)
        await site.start()
        server: Any = site._server
        self.ports.append(server.sockets[0].getsockname()[1])
        return runner, guard

    @staticmethod
    def _route_health(app: web.Application, path: str, checks: dict[str, Callable[[], str]]) -> None:
        async def health(request: web.Request) -> web.Response:
            return healthy(checks, path, verbose="verbose" in request.query)

        async def one(request: web.Request) -> web.Response:
            name = request.match_info["name"]
            if name not in checks:
                raise web.HTTPNotFound
            return healthy({name: checks[name]}, path, verbose=False)

        app.router.add_get(path, health)
        app.router.add_get(path + "/{name}", one)

    @staticmethod
    async def _close(runners: list[tuple[web.AppRunner, Authorizer | None]]) -> None:
        for runner, guard in runners:
            await runner.cleanup()
            if guard is not None:
                await guard.close()


def healthy(checks: dict[str, Callable[[], str]], path: str, *, verbose: bool) -> web.Response:
    """ "ok", or which check failed, in kube's words."""
    problems = {name: check() for name, check in checks.items()}
    failed = any(problems.values())
    if not failed and not verbose:
        return web.Response(text="ok")
    lines = [f"[-]{name} failed: {wrong}" if wrong else f"[+]{name} ok" for name, wrong in problems.items()]
    end = f"{path.strip('/')} check {'failed' if failed else 'passed'}"
    return web.Response(text="\n".join([*lines, end, ""]), status=500 if failed else 200)


def guarded(guard: Authorizer, about: Callable[[web.Request], Awaitable[Attributes | None]] | None = None) -> Any:
    @web.middleware
    async def check(request: web.Request, handler: Any) -> web.StreamResponse:
        if not request.path.startswith(OPEN_PATHS):
            wanted = None if about is None else await about(request)
            refused = await guard.refusal(request.headers.get("Authorization", ""), request.path, wanted)
            if refused is not None:
                status, message = refused
                return web.json_response(
                    {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status},
                    status=status,
                )
        response: web.StreamResponse = await handler(request)
        return response

    return check
