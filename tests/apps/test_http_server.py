"""The pages of a program over real sockets: TLS, limits, refusals, and pages that fail."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from stowplan.apps import certificates
from stowplan.apps.authorization import ANONYMOUS, Authorizer, Refusal, ResourceAttributes, User
from stowplan.apps.http_server import MAX_ANONYMOUS_BYTES, HttpServer, Listener, Page, Pages, ResourceOf
from stowplan.apps.logging import Log
from stowplan.objects.errors import ConfigError
from stowplan.serving import web
from stowplan.serving.connections import ConnectionLimits

LIMITS = ConnectionLimits(total=20, per_peer=8, unproven=4, opening_within=1.0, headers_within=1.0, idle_within=1.0)
GET = "GET {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n"


class KnowsOneToken:
    async def user_of(self, header: str) -> User | Refusal:
        if not header:
            return ANONYMOUS
        return User("jane") if header == "Bearer secret" else (401, "Unauthorized")

    async def refusal(self, header: str, _path: str, _resource: ResourceAttributes | None = None) -> Refusal | None:
        return None if header == "Bearer secret" else (401, "Unauthorized")

    async def close(self) -> None:
        pass


class Served:
    """A server with a secure port and a plain port."""

    def __init__(self, stack: ExitStack, resource_of: ResourceOf | None = None) -> None:
        self.problems: list[dict[str, object]] = []
        self._stack = stack
        context = certificates.server_context("", "", self._problem)
        listeners = [
            Listener("127.0.0.1", 0, context, lambda: cast("Authorizer", KnowsOneToken())),
            Listener("127.0.0.1", 0),
        ]
        get: dict[str, Page] = {"/metrics": self._metrics, "/fails": self._fails}
        pages = Pages({"ping": lambda: ""}, {}, get, {"/body": self._body}, resource_of)
        self.server = HttpServer(pages, listeners, self._problem, LIMITS)
        self.server.start()
        stack.callback(self.server.stop)

    def _problem(self, message: str, **fields: object) -> None:
        self.problems.append({"message": message, **fields})

    async def _metrics(self, _request: web.PageRequest) -> web.PageResponse:
        return web.PageResponse(text="a 1\n")

    async def _body(self, request: web.PageRequest) -> web.PageResponse:
        return web.PageResponse(text=str(len(await request.read())))

    async def _fails(self, _request: web.PageRequest) -> web.PageResponse:
        raise ZeroDivisionError("of a page")

    def connected(self, port: int = 0) -> socket.socket:
        return self._stack.enter_context(socket.create_connection(("127.0.0.1", self.server.ports[port]), timeout=10))

    def tls(self) -> ssl.SSLSocket:
        asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
        return self._stack.enter_context(asking.wrap_socket(self.connected()))

    def get(self, path: str, *headers: str) -> tuple[int, str]:
        return answer_of(self.tls(), GET.format(path, "".join(f"{each}\r\n" for each in headers)).encode())


def answer_of(connection: socket.socket, request: bytes) -> tuple[int, str]:
    connection.sendall(request)
    found = b"".join(iter(lambda: connection.recv(4096), b""))
    head, _, body = found.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


@pytest.fixture
def served() -> Iterator[Served]:
    with ExitStack() as stack:
        yield Served(stack)


def test_pages_need_a_token_and_health_does_not(served: Served) -> None:
    assert served.get("/livez") == (200, "ok")
    assert served.get("/metrics")[0] == 401
    assert served.get("/metrics", "Authorization: Bearer secret") == (200, "a 1\n")


def test_health_is_answered_while_one_peer_holds_all_that_it_may(served: Served) -> None:
    held: list[Any] = [served.connected() for _ in range(50)]
    held += [served.tls() for _ in range(20)]
    assert served.get("/livez") == (200, "ok")
    assert len(served.server.connections) <= LIMITS.per_peer


@pytest.mark.parametrize("begun", [None, b"", b"GET /livez HTTP/1.1\r\nHost: x\r\nA: "])
def test_who_does_not_finish_a_request_is_closed(served: Served, begun: bytes | None) -> None:
    connection = served.connected() if begun is None else served.tls()
    if begun:
        connection.sendall(begun)
    assert connection.recv(1) == b""


def test_an_idle_connection_is_closed(served: Served) -> None:
    connection = served.tls()
    connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"".join(iter(lambda: connection.recv(4096), b"")).endswith(b"ok")


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        pytest.param(b"\x16\x03rubbish\r\n\r\n", 400, id="no HTTP"),
        pytest.param(b"GET /livez HTTP/1.1\r\nA: " + b"a" * 20_000 + b"\r\n\r\n", 400, id="a header too long"),
        pytest.param(b"GET /livez HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n", 400, id="too many headers"),
        pytest.param(b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 400, id="a path too long"),
        pytest.param(
            b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\nConnection: close\r\n\r\n",
            401,
            id="a gigabyte",
        ),
    ],
)
def test_what_is_too_large_is_refused_and_not_logged(
    served: Served, request_text: bytes, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    connection = served.tls()
    connection.sendall(request_text)
    assert int(connection.recv(4096).split()[1]) == status
    assert served.get("/livez") == (200, "ok")
    assert capfd.readouterr().err == "" and served.problems == []


def test_a_page_that_fails_is_logged(served: Served) -> None:
    status, body = served.get("/fails", "Authorization: Bearer secret")
    assert status == 500 and "ZeroDivisionError" not in body
    assert served.problems == [
        {"message": "A page failed", "path": "/fails", "error": "ZeroDivisionError('of a page')"}
    ]


def test_bodies_that_do_not_come_on_the_plain_port_shut_out_nobody(served: Served) -> None:
    held = [served.connected(1) for _ in range(LIMITS.per_peer)]
    for each in held:
        each.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert each.recv(4096).endswith(b"ok")
        each.sendall(b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
    time.sleep(0.1)
    assert served.get("/livez") == (200, "ok")
    assert answer_of(served.connected(1), GET.format("/livez", "").encode()) == (200, "ok")


POST = b"POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n"


@pytest.mark.parametrize(
    ("header", "sent", "size", "status", "read"),
    [
        pytest.param(b"Authorization: Bearer other\r\n", 0, 10, 401, None, id="a wrong token, and no body"),
        pytest.param(b"Authorization: Bearer other\r\n", 10, 10, 401, None, id="a wrong token, and a body"),
        pytest.param(b"", 10, 10, 401, 10, id="no token"),
        pytest.param(b"", MAX_ANONYMOUS_BYTES + 1, 1_000_000, 413, None, id="no token, and a large body"),
        pytest.param(b"Authorization: Bearer secret\r\n", 1_000_000, 1_000_000, 200, 1_000_000, id="a token"),
    ],
)
def test_a_body_is_read_when_it_is_known_whose_it_is(
    header: bytes, sent: int, size: int, status: int, read: int | None
) -> None:
    found: list[int] = []

    async def resource_of(request: web.PageRequest) -> ResourceAttributes | None:
        found.append(len(await request.read()))
        return {"verb": "create"}

    with ExitStack() as stack:
        served = Served(stack, resource_of)
        assert answer_of(served.tls(), POST % (size, header) + b"a" * sent)[0] == status
    assert found == ([] if read is None else [read])


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = HttpServer(Pages(), [Listener("127.0.0.1", taken.getsockname()[1])], Log().warning)
        with pytest.raises(ConfigError, match="cannot listen on port"):
            server.start()
