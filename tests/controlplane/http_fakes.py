"""Small HTTP servers for tests: one with Prometheus' API, one that scores clusters."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Server(ThreadingHTTPServer):
    """`answer(method, path, asked)` gives status and document; what was asked is the query, or the JSON of the body."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[Any] = []
        self.tokens: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, method: str, path: str, asked: Any) -> tuple[int, Any]:
        raise NotImplementedError


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self._answer(parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()})

    def do_POST(self) -> None:
        self._answer(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, path: str, asked: Any) -> None:
        self.server.asked.append(asked)
        self.server.tokens.append(self.headers.get("Authorization", ""))
        status, document = self.server.answer(self.command, path, asked)
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        return


class Prometheus(Server):
    """Knows one metric, `free_memory_bytes`, by cluster; anything else is a query that cannot be parsed."""

    METRIC = "free_memory_bytes"

    def __init__(self, **values: float | str) -> None:
        super().__init__()
        self.values = dict(values)

    def answer(self, method: str, path: str, asked: Any) -> tuple[int, Any]:
        if (method, path) != ("GET", "/api/v1/query"):
            return 404, {"status": "error", "errorType": "not_found", "error": path}
        if asked.get("query") != self.METRIC:
            return 400, {"status": "error", "errorType": "bad_data", "error": "parse error: unexpected identifier"}
        result = [
            {"metric": {"__name__": self.METRIC, "cluster": name}, "value": [1763200000.781, str(value)]}
            for name, value in self.values.items()
        ]
        return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}


class ThirdParty(Server):
    """A scorer: what it thinks of each cluster, by score."""

    def __init__(self, **scores: dict[str, float]) -> None:
        super().__init__()
        self.scores = dict(scores)

    def answer(self, method: str, path: str, asked: Any) -> tuple[int, Any]:
        if (method, path) != ("POST", "/score"):
            return 404, {"message": path}
        names = [each["name"] for each in asked["clusters"]]
        return 200, {"scores": {name: self.scores[name] for name in names if name in self.scores}}


@contextmanager
def answering(server: Server) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
