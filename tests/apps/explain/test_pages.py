"""`--pages`: what a running Stowplan says of a pod's place in the queue."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.testing.builders import a_node, a_pod
from tests.apps.explain.test_explain import dump

QUEUE = {"stage": "backoff", "attempts": 3, "waitingSeconds": 9.0, "backoffSeconds": 4.0}


class Page(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []
    body: ClassVar[bytes] = b""

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def pages() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_attempts_and_backoff_are_shown(tmp_path: Path, pages: str) -> None:
    Page.body = json.dumps({"waiting": {"queue": QUEUE}}).encode()
    file = dump(tmp_path, a_node("a", cpu=1), a_pod("web", cpu="9"))
    answer = CliRunner().invoke(main, ["explain", "web", "--pages", pages, "--from", file])
    assert Page.asked == ["/debug/explain/default/web"]
    assert "In its queue: backoff, 3 attempts, next in 4 s." in answer.output


def test_a_page_that_cannot_be_read_is_told_and_the_rest_goes_on(tmp_path: Path, pages: str) -> None:
    Page.body = b"<html>"
    file = dump(tmp_path, a_node("a", cpu=1), a_pod("web", cpu="9"))
    answer = CliRunner().invoke(main, ["explain", "web", "--pages", pages, "--from", file])
    assert answer.exit_code == 1 and "warning: " in answer.stderr and "default/web has no node" in answer.stdout
    answer = CliRunner().invoke(main, ["explain", "web", "--pages", "ftp://x", "--from", file])
    assert answer.exit_code == 2 and "--pages: 'ftp://x' is no URL of pages" in answer.stderr
