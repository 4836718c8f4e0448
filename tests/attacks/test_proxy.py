"""The misbehaving proxy does what it says; else the tests of the wire would say nothing."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.attacks.proxy import FINE, Proxy

BINDING = "/api/v1/namespaces/n/pods/p/binding"


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(f"http://127.0.0.1:{server.server_port}") as found:
        yield found


def ask(proxy: Proxy, method: str = "GET", path: str = "/", seconds: float = 30) -> tuple[int, str, bytes]:
    """Status, content type and body; status 0 if there is no answer."""
    connection = http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=seconds)
    try:
        connection.request(method, path, b"{}" if method == "POST" else None)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read()
    except (OSError, http.client.HTTPException):
        return 0, "", b""
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("mode", "request_", "expected", "carried_out"),
    [
        pytest.param(FINE, ("GET", "/"), (200, "application/json", b"{}"), True, id="nothing"),
        pytest.param("delay", ("GET", "/"), (200, "application/json", b"{}"), True, id="a delay"),
        pytest.param("dribble", ("GET", "/"), (200, "application/json", b"{}"), True, id="byte by byte"),
        pytest.param("html", ("GET", "/"), (200, "text/html; charset=utf-8", None), False, id="a page"),
        pytest.param("retry-after-a-day", ("GET", "/"), (429, "text/plain", b"busy"), False, id="a day to wait"),
        pytest.param("410", ("GET", "/?watch=1"), (200, "application/json", None), False, id="a watch is too old"),
        pytest.param("410", ("GET", "/"), (200, "application/json", b"{}"), True, id="but not a list"),
        pytest.param("lie", ("POST", BINDING), (201, "application/json", None), False, id="a binding that is none"),
        pytest.param("lose-answers", ("POST", BINDING), (0, "", b""), True, id="a binding, and no answer"),
        pytest.param("lose-answers", ("GET", "/"), (200, "application/json", b"{}"), True, id="but to other requests"),
        pytest.param("shut", ("GET", "/"), (0, "", b""), False, id="no connection"),
    ],
)
def test_a_mode_does_what_it_says(
    server: Server,
    proxy: Proxy,
    mode: str,
    request_: tuple[str, str],
    expected: tuple[int, str, bytes | None],
    carried_out: bool,
) -> None:
    proxy.mode = mode
    status, kind, body = ask(proxy, *request_)
    assert (status, kind) == expected[:2]
    assert expected[2] in (None, body)
    assert server.asked == ([" ".join(request_)] if carried_out else [])
    proxy.mode = FINE
    assert ask(proxy)[0] == 200


@pytest.mark.parametrize("mode", ["reset", "truncate", "garble", "503"])
def test_some_answers_are_hit_and_some_are_not(proxy: Proxy, mode: str) -> None:
    proxy.mode = mode
    answers = {ask(proxy, seconds=0.5) for _ in range(60)}
    assert (200, "application/json", b"{}") in answers
    assert len(answers) > 1 and proxy.hits[mode]


def test_a_black_hole_does_not_answer(proxy: Proxy) -> None:
    proxy.mode = "blackhole"
    assert ask(proxy, seconds=0.2)[0] == 0
    assert proxy.hits["blackhole"] == 1
