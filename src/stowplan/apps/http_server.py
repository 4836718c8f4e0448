"""An HTTP(S) server for the pages of a program: health, metrics, and what the engine knows.

The server has a thread and an event loop of its own. A slow plugin does not make the program look dead, and a slow
client does not delay a binding. On the secure port every page but the open ones (by default the health pages) is
authorized by the API server: by a review of the client's token, and of its right to read that path.

Anybody can connect, so connections, their times and the sizes of requests are bounded (`serving`). The numbers here are
generous: a scraper and the kubelet need a handful.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from stowplan.apps import certificates
from stowplan.apps.authorization import ANONYMOUS, Authorizer, Refusal, ResourceAttributes
from stowplan.apps.serving_security import DEFAULT_SECURITY, ServingSecurity
from stowplan.kube.client import Client
from stowplan.objects.errors import ConfigError
from stowplan.serving import descriptors, web
from stowplan.serving.connections import ConnectionLimits, ConnectionTable
from stowplan.serving.listener import LINGER, ContextOf, SocketListener
from stowplan.serving.web import Handler, Middleware

Page = Callable[[web.PageRequest], Awaitable[web.PageResponse]]
Check = Callable[[], str]  # returns what is wrong; empty if nothing is
ResourceOf = Callable[[web.PageRequest], Awaitable[ResourceAttributes | None]]
MOST_CONNECTIONS, MOST_OF_A_PEER = 512, 64
MOST_UNPROVEN = 32  # connections without a token that have spoken: each takes 300 KB with TLS
KEEP_ALIVE = 60.0  # seconds between two requests
MAX_BODY_BYTES = 1024 * 1024
MAX_ANONYMOUS_BYTES = 64 * 1024  # of a body without a token that says which right is needed


@dataclass
class Listener:
    """Where to listen. Without TLS it is on the loopback only, and nothing is authorized."""

    host: str
    port: int
    tls: ContextOf | None = None
    authorizer: Callable[[], Authorizer] | None = None
    security: ServingSecurity = DEFAULT_SECURITY


@dataclass
class Pages:
    """`health` and `readiness`: checks by name. `get` and `post`: pages by path.

    `resource_of` returns the resource that a client needs a right to; None if a right to the path is enough.
    `guard` is asked before any page, health included.
    """

    health: dict[str, Check] = field(default_factory=dict)
    readiness: dict[str, Check] = field(default_factory=dict)
    get: dict[str, Page] = field(default_factory=dict)
    post: dict[str, Page] = field(default_factory=dict)
    resource_of: ResourceOf | None = None
    guard: Middleware | None = None


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


def server_of(
    pages: Pages,
    options: ListenOptions,
    client_of: Callable[[str], Client],
    on_problem: certificates.OnProblem,
    security: ServingSecurity = DEFAULT_SECURITY,
) -> HttpServer:
    """Return a server of these pages on the secure port and the plain port, as far as the options name them."""
    found = []
    if options.secure_port:
        files = options.tls_cert_file, options.tls_private_key_file
        context = certificates.server_context(*files, on_problem, security)

        def authorizer() -> Authorizer:
            return Authorizer(client_of(options.authentication_kubeconfig), client_of(options.authorization_kubeconfig))

        found.append(Listener(options.bind_address, options.secure_port, context, authorizer, security))
    if options.plain_port:
        found.append(Listener("127.0.0.1", options.plain_port))
    return HttpServer(pages, found, on_problem)


def connection_limits() -> ConnectionLimits:
    """Return how many connections the pages of this process may have: the API client always has descriptors left."""
    total = descriptors.for_connections(MOST_CONNECTIONS)
    of_a_peer, unproven = min(MOST_OF_A_PEER, total // 2), min(MOST_UNPROVEN, total // 2)
    return ConnectionLimits(total, of_a_peer, unproven, idle_within=KEEP_ALIVE)


@dataclass
class _Port:
    """A port that is served, and what must be closed at the end."""

    runner: web.AppRunner
    listener: SocketListener
    authorizer: Authorizer | None

    async def close(self) -> None:
        self.listener.close()
        await self.runner.cleanup()
        if self.authorizer is not None:
            await self.authorizer.close()


class HttpServer:
    """`on_problem` logs a page that fails, which is a bug. What a client does wrong is not logged: anybody can."""

    def __init__(
        self,
        pages: Pages,
        listeners: list[Listener],
        on_problem: certificates.OnProblem,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self._pages, self._listeners, self._on_problem = pages, listeners, on_problem
        self.connections = ConnectionTable(limits or connection_limits())
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
        ports: list[_Port] = []
        try:
            for listener in self._listeners:
                self._loop.run_until_complete(self._listen(listener, ports))
        except Exception as error:
            self._failure = error
        self._started.set()
        if self._failure is None:
            self._loop.run_forever()
        for port in ports:
            self._loop.run_until_complete(port.close())
        self._loop.close()

    async def _listen(self, listener: Listener, ports: list[_Port]) -> None:
        port = await self._port(listener)
        ports.append(port)
        try:
            addresses = await port.listener.listen(listener.host, listener.port)
        except OSError as error:
            raise ConfigError(f"cannot listen on port {listener.port}: {error.strerror or error}") from None
        self.ports.append(addresses[0][1])

    async def _port(self, listener: Listener) -> _Port:
        pages = self._pages
        authorizer = None if listener.authorizer is None else listener.authorizer()

        def protocol() -> asyncio.Protocol:
            return runner.server()

        sockets = SocketListener(protocol, self.connections, listener.tls)
        guards = [self._guard(sockets, authorizer, listener.security), *([pages.guard] if pages.guard else [])]
        app = web.Application(middlewares=guards, client_max_size=MAX_BODY_BYTES)
        for path in ("/healthz", "/livez"):
            self._route_health(app, path, pages.health)
        self._route_health(app, "/readyz", {**pages.health, **pages.readiness})
        for path, page in pages.get.items():
            app.router.add_get(path, page)
        for path, page in pages.post.items():
            app.router.add_post(path, page)
        runner = web.AppRunner(app, shutdown_timeout=1.0, lingering_time=LINGER)
        return _Port(runner, sockets, authorizer)

    def _guard(self, sockets: SocketListener, authorizer: Authorizer | None, security: ServingSecurity) -> Middleware:
        """Return middleware that refuses a client that may not read the page, and tells the listener who may."""

        async def guard(request: web.PageRequest, handler: Handler) -> web.PageResponse:
            with sockets.serving(request.transport) as prove:
                try:
                    if authorizer is None:
                        prove(known=request.complete)  # on the loopback nobody needs a token, but all of a request
                    elif not security.is_open(request.path):
                        refused = await self._refused(request, authorizer)
                        if refused is not None:
                            return _refusal(*refused)
                        prove()
                        request.may = partial(_may, authorizer, request)
                    response = await handler(request)
                    if isinstance(response, web.StreamedResponse):
                        response.parts = _served(sockets, request.transport, response.parts)
                    return response
                except (web.HTTPException, ConnectionError):
                    raise
                except Exception as error:
                    self._on_problem("A page failed", path=request.path, error=repr(error))
                    return _refusal(500, "the page failed; the log says why")

        return guard

    async def _refused(self, request: web.PageRequest, authorizer: Authorizer) -> Refusal | None:
        """Return why the client is refused. Nobody's body is read before it is known whose it is."""
        header = request.headers.get("Authorization", "")
        if self._pages.resource_of is None:
            return await authorizer.refusal(header, request.path)
        user = await authorizer.user_of(header)
        if isinstance(user, tuple):
            return user
        most = request.client_max_size
        if user is ANONYMOUS:
            request.client_max_size = min(most, MAX_ANONYMOUS_BYTES)
        resource = await self._pages.resource_of(request)
        request.client_max_size = most
        return await authorizer.refusal(header, request.path, resource)

    @staticmethod
    def _route_health(app: web.Application, path: str, checks: dict[str, Check]) -> None:
        async def health(request: web.PageRequest) -> web.PageResponse:
            return health_response(checks, path, verbose="verbose" in request.query)

        async def one(request: web.PageRequest) -> web.PageResponse:
            name = request.match_info["name"]
            if name not in checks:
                raise web.HTTPNotFound
            return health_response({name: checks[name]}, path, verbose=False)

        app.router.add_get(path, health)
        app.router.add_get(path + "/{name}", one)


async def _may(authorizer: Authorizer, request: web.PageRequest, right: Mapping[str, str]) -> bool:
    """Return whether the client of a request has a right to a resource."""
    return await authorizer.refusal(request.headers.get("Authorization", ""), request.path, dict(right)) is None


async def _served(
    sockets: SocketListener, transport: asyncio.BaseTransport | None, parts: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yield the parts of an answer that goes on; its connection counts as busy as long as it does."""
    with sockets.serving(transport) as prove:
        prove()
        async with aclosing(parts):
            async for part in parts:
                yield part


def health_response(checks: dict[str, Check], path: str, *, verbose: bool) -> web.PageResponse:
    """ "ok", or which check failed, as the components of Kubernetes print it."""
    problems = {name: check() for name, check in checks.items()}
    failed = any(problems.values())
    if not failed and not verbose:
        return web.PageResponse(text="ok")
    lines = [f"[-]{name} failed: {wrong}" if wrong else f"[+]{name} ok" for name, wrong in problems.items()]
    end = f"{path.strip('/')} check {'failed' if failed else 'passed'}"
    return web.PageResponse(text="\n".join([*lines, end, ""]), status=500 if failed else 200)


def _refusal(status: int, message: str) -> web.PageResponse:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status}
    return web.json_response(body, status=status)
