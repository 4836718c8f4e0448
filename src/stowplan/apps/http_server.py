"""An HTTP(S) server for the pages of a program: health, metrics, and what the engine knows.

The server has a thread and an event loop of its own. A slow plugin does not make the program look dead, and a slow
client does not delay a binding. On the secure port every page but the health pages is authorized by the API server: by
a review of the client's token, and of its right to read that path.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from stowplan.apps import certificates
from stowplan.apps.authorization import Authorizer, ResourceAttributes
from stowplan.kube.client import Client
from stowplan.objects.errors import ConfigError

Page = Callable[[web.Request], Awaitable[web.Response]]
Check = Callable[[], str]  # returns what is wrong; empty if nothing is
ResourceOf = Callable[[web.Request], Awaitable[ResourceAttributes | None]]
Runner = tuple[web.AppRunner, Authorizer | None]
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")


@dataclass
class Listener:
    """Where to listen. Without TLS it is on the loopback only, and nothing is authorized."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    authorizer: Callable[[], Authorizer] | None = None


@dataclass
class Pages:
    """`health` and `readiness`: checks by name. `get` and `post`: pages by path.

    `resource_of` returns the resource that a client needs a right to; None if a right to the path is enough.
    """

    health: dict[str, Check] = field(default_factory=dict)
    readiness: dict[str, Check] = field(default_factory=dict)
    get: dict[str, Page] = field(default_factory=dict)
    post: dict[str, Page] = field(default_factory=dict)
    resource_of: ResourceOf | None = None


class ListenOptions(Protocol):
    """The options of a command that serves pages."""

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


def listeners(options: ListenOptions, client_of: Callable[[str], Client]) -> list[Listener]:
    """Return the secure port and the plain port, as far as the options name them."""
    found = []
    if options.secure_port:
        context = certificates.server_context(options.tls_cert_file, options.tls_private_key_file)

        def authorizer() -> Authorizer:
            return Authorizer(client_of(options.authentication_kubeconfig), client_of(options.authorization_kubeconfig))

        found.append(Listener(options.bind_address, options.secure_port, context, authorizer))
    if options.plain_port:
        found.append(Listener("127.0.0.1", options.plain_port))
    return found


class HttpServer:
    def __init__(self, pages: Pages, listeners: list[Listener]) -> None:
        self._pages, self._listeners = pages, listeners
        self._thread = threading.Thread(target=self._work, name="serving", daemon=True)
        self._loop = asyncio.new_event_loop()
        self._started: threading.Event = threading.Event()
        self._failure: Exception | None = None
        self.ports: list[int] = []

    def start(self) -> None:
        """Listen. Raises ConfigError if a port cannot be opened."""
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
        runners: list[Runner] = []
        try:
            for listener in self._listeners:
                runners.append(self._loop.run_until_complete(self._listen(listener)))
        except Exception as error:
            self._failure = error
        self._started.set()
        if self._failure is None:
            self._loop.run_forever()
        self._loop.run_until_complete(self._close(runners))
        self._loop.close()

    async def _listen(self, listener: Listener) -> Runner:
        try:
            return await self._open(listener)
        except OSError as error:
            raise ConfigError(f"cannot listen on port {listener.port}: {error.strerror or error}") from None

    async def _open(self, listener: Listener) -> Runner:
        pages = self._pages
        authorizer = None if listener.authorizer is None else listener.authorizer()
        app = web.Application(middlewares=[] if authorizer is None else [authorized(authorizer, pages.resource_of)])
        for path in ("/healthz", "/livez"):
            self._route_health(app, path, pages.health)
        self._route_health(app, "/readyz", {**pages.health, **pages.readiness})
        for path, page in pages.get.items():
            app.router.add_get(path, page)
        for path, page in pages.post.items():
            app.router.add_post(path, page)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, listener.host, listener.port, ssl_context=listener.tls)
        await site.start()
        self.ports.append(runner.addresses[0][1])
        return runner, authorizer

    @staticmethod
    def _route_health(app: web.Application, path: str, checks: dict[str, Check]) -> None:
        async def health(request: web.Request) -> web.Response:
            return health_response(checks, path, verbose="verbose" in request.query)

        async def one(request: web.Request) -> web.Response:
            name = request.match_info["name"]
            if name not in checks:
                raise web.HTTPNotFound
            return health_response({name: checks[name]}, path, verbose=False)

        app.router.add_get(path, health)
        app.router.add_get(path + "/{name}", one)

    @staticmethod
    async def _close(runners: list[Runner]) -> None:
        for runner, authorizer in runners:
            await runner.cleanup()
            if authorizer is not None:
                await authorizer.close()


def health_response(checks: dict[str, Check], path: str, *, verbose: bool) -> web.Response:
    """ "ok", or which check failed, as the components of Kubernetes print it."""
    problems = {name: check() for name, check in checks.items()}
    failed = any(problems.values())
    if not failed and not verbose:
        return web.Response(text="ok")
    lines = [f"[-]{name} failed: {wrong}" if wrong else f"[+]{name} ok" for name, wrong in problems.items()]
    end = f"{path.strip('/')} check {'failed' if failed else 'passed'}"
    return web.Response(text="\n".join([*lines, end, ""]), status=500 if failed else 200)


def authorized(authorizer: Authorizer, resource_of: ResourceOf | None = None) -> Middleware:
    """Return middleware that refuses a client that may not read the page."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not request.path.startswith(HEALTH_PATHS):
            resource = None if resource_of is None else await resource_of(request)
            refused = await authorizer.refusal(request.headers.get("Authorization", ""), request.path, resource)
            if refused is not None:
                status, message = refused
                return web.json_response(
                    {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status},
                    status=status,
                )
        return await handler(request)

    return check
