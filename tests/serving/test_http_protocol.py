"""The pages' own HTTP server over real sockets: what clients send, what they get, and where it ends."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from stowplan.serving import http_protocol, web

MOST = 1000  # bytes of a body


async def echo(request: web.PageRequest) -> web.PageResponse:
    body = await request.read()
    return web.PageResponse(text=f"{request.method} {request.path} {request.match_info} {request.query} {len(body)}")


async def deaf(_request: web.PageRequest) -> web.PageResponse:
    return web.PageResponse(text="not read")


async def fails(_request: web.PageRequest) -> web.PageResponse:
    raise ZeroDivisionError


async def slow(_request: web.PageRequest) -> web.PageResponse:
    await asyncio.sleep(0.05)
    return web.PageResponse(text="slow")


async def endless(_request: web.PageRequest) -> web.PageResponse:
    await asyncio.sleep(1000)
    raise AssertionError


async def headers(request: web.PageRequest) -> web.PageResponse:
    await request.read()
    return web.PageResponse(text=" ".join(sorted(request.headers)))


def an_application(large: web.Handler) -> web.Application:
    app = web.Application(client_max_size=MOST)
    app.router.add_get("/echo", echo)
    app.router.add_get("/echo/{one}/{two}", echo)
    app.router.add_post("/echo", echo)
    app.router.add_post("/deaf", deaf)
    app.router.add_get("/fails", fails)
    app.router.add_get("/endless", endless)
    app.router.add_get("/slow", slow)
    app.router.add_get("/large", large)
    app.router.add_post("/headers", headers)
    return app


class Server:
    """In a thread of its own, on a free port."""

    def __init__(self) -> None:
        self._loop, self._ready = asyncio.new_event_loop(), threading.Event()
        self.runner = web.AppRunner(an_application(self._large), lingering_time=0.1, body_within=1.0)
        self.made = 0  # large answers
        self.port = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait()

    async def _large(self, _request: web.PageRequest) -> web.PageResponse:
        self.made += 1
        return web.PageResponse(body=b"x" * 8_000_000)

    def _run(self) -> None:
        listening = self._loop.run_until_complete(self._loop.create_server(self.runner.server, "127.0.0.1", 0))
        self.port = listening.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        listening.close()
        self._loop.run_until_complete(self.runner.cleanup())
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.stop()


@pytest.fixture
def client(server: Server) -> Iterator[socket.socket]:
    with ExitStack() as stack:
        yield stack.enter_context(server.connect())


def all_of(client: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    return b"".join(iter(lambda: client.recv(65536), b""))


def asked(client: socket.socket, text: bytes) -> tuple[int, bytes, bytes]:
    """Status, headers and body of the last answer, after which the connection ends."""
    client.sendall(text)
    head, _, body = all_of(client).rpartition(b"\r\n\r\n")
    head = head[head.rfind(b"HTTP/1.1 ") :]
    return int(head.split()[1]), head, body


END = b"Host: x\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("text", "status", "body"),
    [
        pytest.param(b"GET /echo HTTP/1.1\r\n" + END, 200, b"GET /echo {} {} 0", id="a page"),
        pytest.param(
            b"GET /echo/a%20b/c%2Fd?x=1&y HTTP/1.1\r\n" + END,
            200,
            b"GET /echo/a b/c/d {'one': 'a b', 'two': 'c/d'} {'x': '1', 'y': ''} 0",
            id="parts of a path and a query, decoded",
        ),
        pytest.param(b"GET http://x/echo?z=2 HTTP/1.1\r\n" + END, 200, b"GET /echo {} {'z': '2'} 0", id="a whole URL"),
        pytest.param(b"GET /echo HTTP/1.0\r\n\r\n", 200, b"GET /echo {} {} 0", id="HTTP 1.0"),
        pytest.param(b"HEAD /echo HTTP/1.1\r\n" + END, 200, b"", id="the head alone"),
        pytest.param(b"GET /echo/../fails HTTP/1.1\r\n" + END, 200, None, id="dots are names like any other"),
        pytest.param(b"GET /other HTTP/1.1\r\n" + END, 404, b"404: Not Found", id="no such page"),
        pytest.param(b"GET /echo/ HTTP/1.1\r\n" + END, 404, b"404: Not Found", id="a slash more"),
        pytest.param(b"DELETE /echo HTTP/1.1\r\n" + END, 405, b"405: Method Not Allowed", id="another method"),
        pytest.param(b"GET /fails HTTP/1.1\r\n" + END, 500, None, id="a page that fails"),
        pytest.param(
            b"POST /echo HTTP/1.1\r\nContent-Length: 3\r\n" + END + b"abc", 200, b"POST /echo {} {} 3", id="a body"
        ),
        pytest.param(
            b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + END + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            200,
            b"POST /echo {} {} 5",
            id="a body in chunks",
        ),
        pytest.param(
            b"POST /echo HTTP/1.1\r\nContent-Length: 2000\r\n" + END + b"a" * 2000,
            413,
            b"413: Request Entity Too Large",
            id="a body too large",
        ),
        pytest.param(
            b"POST /deaf HTTP/1.1\r\nContent-Length: 1000000000\r\nHost: x\r\n\r\n" + b"a" * 500_000,
            200,
            b"not read",
            id="a body that nobody reads",
        ),
        pytest.param(
            b"GET /echo HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nHost: x\r\n\r\n",
            200,
            b"GET /echo {} {} 0",
            id="the wish for another protocol",
        ),
        pytest.param(b"rubbish\r\n\r\n", 400, b"400: Bad Request", id="no HTTP"),
        pytest.param(b"GET /echo HTTP/1.1\r\nA: " + b"a" * 20_000, 400, b"400: Bad Request", id="an endless header"),
        pytest.param(
            b"GET /echo HTTP/1.1\r\n" + b"".join(b"%d:\r\n" % each for each in range(200)) + END,
            400,
            b"400: Bad Request",
            id="too many headers",
        ),
        pytest.param(b"GET /" + b"a" * 20_000, 400, b"400: Bad Request", id="an endless path"),
        pytest.param(
            b"POST /echo HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + END, 400, None, id="two lengths"
        ),
    ],
)
def test_an_answer(client: socket.socket, text: bytes, status: int, body: bytes | None) -> None:
    found, head, said = asked(client, text)
    assert found == status and (body is None or said.replace(b"Content Too Large", b"Request Entity Too Large") == body)
    assert b"Content-Length: " in head and b"Date: " in head


def test_the_methods_that_a_page_has_are_named(client: socket.socket) -> None:
    assert b"Allow: GET,HEAD,POST" in asked(client, b"PUT /echo HTTP/1.1\r\n" + END)[1]


def test_one_connection_answers_many_requests(client: socket.socket) -> None:
    for _ in range(3):
        client.sendall(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = client.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200 OK") and b"Connection: keep-alive" in answer


def test_requests_that_are_sent_ahead_are_answered_in_order(client: socket.socket) -> None:
    ahead = b"".join(b"GET /echo?n=%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(5))
    client.sendall(ahead + b"GET /echo?n=5 HTTP/1.1\r\n" + END)
    assert [each[:1] for each in all_of(client).split(b"{'n': '")[1:]] == [b"%d" % number for number in range(6)]


def test_all_requests_that_are_sent_ahead_are_answered(client: socket.socket) -> None:
    client.sendall(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n" * 300 + b"GET /echo HTTP/1.1\r\n" + END)
    assert all_of(client).count(b"HTTP/1.1 200") == 301


@pytest.mark.parametrize("rubbish", [b"\x00\x01rubbish\r\n\r\n", b"GET /echo HTTP/1.1\r\nA: " + b"a" * 20_000])
def test_requests_before_rubbish_are_answered(client: socket.socket, rubbish: bytes) -> None:
    client.sendall(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n" * 3 + rubbish)
    assert [each[:3] for each in all_of(client).split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"200", b"400"]


def test_requests_before_a_half_close_are_answered(client: socket.socket) -> None:
    client.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
    client.shutdown(socket.SHUT_WR)
    assert all_of(client).count(b"HTTP/1.1 200") == 3


def test_few_requests_are_parsed_ahead(server: Server, client: socket.socket) -> None:
    reset_at_the_end(client)
    client.sendall((b"GET /endless HTTP/1.1\r\n" + b"A: " + b"a" * 2000 + b"\r\n\r\n") * 20)
    wait_until(lambda: any(each.ahead for each in server.runner.connections))
    time.sleep(0.1)
    assert max(each.ahead for each in server.runner.connections) == http_protocol.MOST_AHEAD


def test_no_answer_is_made_while_the_client_does_not_read(server: Server, client: socket.socket) -> None:
    made = server.made
    client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n" * 5 + b"GET /echo HTTP/1.1\r\n" + END)
    wait_until(lambda: server.made > made)
    time.sleep(0.2)
    assert server.made == made + 1
    assert all_of(client).count(b"HTTP/1.1 200") == 6 and server.made == made + 5


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"1\r\nx\r\nzz\r\n", id="a chunk without a size"),
        pytest.param(b"1\r\nxyz\r\n0\r\n\r\n", id="a chunk that is too long"),
        pytest.param(b"1\r\nx\r\n0\r\n" + b"T: v\r\n" * 20_000, id="endless trailers"),
        pytest.param(b"1\r\nx\r\n0\r\nT: " + b"v" * 100_000, id="an endless trailer"),
        pytest.param(b"1;a=" + b"b" * 100_000, id="an endless extension of a chunk"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_at_once(client: socket.socket, rest: bytes) -> None:
    client.sendall(b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: x\r\n\r\n")
    time.sleep(0.05)  # the page waits for the body
    assert asked(client, rest)[0] == 400


def test_trailers_are_no_headers(client: socket.socket) -> None:
    client.sendall(b"POST /headers HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + END)
    time.sleep(0.05)
    assert asked(client, b"1\r\nx\r\n0\r\nTrailing: y\r\n\r\n")[2] == b"connection host transfer-encoding"


def test_a_body_in_small_chunks(client: socket.socket) -> None:
    chunks = (b"1;ext=" + b"e" * 100 + b"\r\nx\r\n") * 900 + b"0\r\n\r\n"
    text = b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + END + chunks
    assert asked(client, text)[2] == b"POST /echo {} {} 900"


def test_a_body_has_its_time(client: socket.socket) -> None:
    assert asked(client, b"POST /echo HTTP/1.1\r\nContent-Length: 9\r\n" + END + b"abc")[0] == 408


def test_a_head_in_pieces(client: socket.socket) -> None:
    for piece in (b"GE", b"T /ec", b"ho HTTP/1.1\r\nHo", b"st: x\r\nConnection: clo", b"se\r\n", b"\r\n"):
        client.sendall(piece)
    assert all_of(client).endswith(b"GET /echo {} {} 0")


def test_a_client_that_waits_for_leave_to_send_its_body(client: socket.socket) -> None:
    client.sendall(b"POST /echo HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n" + END)
    assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert asked(client, b"abc")[2] == b"POST /echo {} {} 3"


def test_a_client_that_sends_no_more_gets_its_answer(client: socket.socket) -> None:
    client.sendall(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
    client.shutdown(socket.SHUT_WR)
    assert all_of(client).endswith(b"GET /echo {} {} 0")


def test_a_client_that_goes_in_the_middle_of_its_body(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    with server.connect() as gone:
        gone.sendall(b"POST /echo HTTP/1.1\r\nContent-Length: 30\r\nHost: x\r\n\r\nabc")
    with server.connect() as client:
        assert asked(client, b"GET /echo HTTP/1.1\r\n" + END)[0] == 200
    assert capfd.readouterr().err == ""


def test_headers_have_no_case_and_repeated_ones_are_joined() -> None:
    headers = web.Headers()
    headers.add("Accept", "a")
    headers.add("ACCEPT", "b")
    assert headers.get("aCCept") == "a, b" == headers["Accept"] and "accept" in headers
    assert headers.get("Authorization", "") == ""


def test_a_page_ends_when_its_client_goes(server: Server) -> None:
    wait_until(lambda: not server.runner.answering)
    with server.connect() as gone:
        reset_at_the_end(gone)
        gone.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        wait_until(lambda: len(server.runner.answering) == 1)
    wait_until(lambda: not server.runner.answering)


def reset_at_the_end(client: socket.socket) -> None:
    """Without TLS, who merely closes could still be reading."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_body_that_is_on_its_way_is_read_although_the_server_stops() -> None:
    stopping = Server()
    with stopping.connect() as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nContent-Length: 6\r\nHost: x\r\n\r\nabc")
        wait_until(lambda: len(stopping.runner.answering) == 1)
        ending = threading.Thread(target=stopping.stop)
        ending.start()
        for rest in (b"d", b"e"):
            time.sleep(0.05)
            client.sendall(rest)
        assert asked(client, b"f")[2] == b"POST /echo {} {} 6"
        ending.join()
