"""`stowplan ui` as a process of its own, and its pages in a browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.simulation.report.chromium import BrowserTab, Chromium

TOKEN = "a-token-of-tests-0123456789"
ADDRESS = re.compile(r"(http://127\.0\.0\.1:(\d+)/)\?token=\S+")
PAGES = {
    "overview": "/", "overview-zone": "/?by=zone", "pending": "/pending", "pod": "/pods/data/trainer-0",
    "pod-scores": "/pods/shop/web-0", "node": "/nodes/node-03", "groups": "/groups", "placements": "/placements",
    "placement": "/placements/shop/front", "decisions": "/decisions", "simulations": "/simulations",
    "find": "/find?q=web",
}  # fmt: skip


class ServedPages:
    """`root`: "http://127.0.0.1:PORT"."""

    def __init__(self, root: str, token: str = TOKEN) -> None:
        self.root, self.token = root.rstrip("/"), token

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """Return the status and the body of a page, asked for by a program."""
        given = {"Authorization": f"Bearer {self.token}"} if headers is None else dict(headers)
        request = urllib.request.Request(f"{self.root}{path}", headers=given)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def wait_until_read(self) -> None:
        """Wait until the cluster is read: from then on pages show it."""
        until = time.monotonic() + 120
        while self.get("/api/")[0] == 503:
            assert time.monotonic() < until, "the cluster was not read"
            time.sleep(0.1)

    def json(self, path: str) -> Any:
        status, body = self.get(f"/api{path}")
        assert status == 200, (path, status, body[:300])
        return json.loads(body)

    def open(self, browser: Chromium, path: str, **given: Any) -> BrowserTab:
        """Open a page as a person does: with the token in the address."""
        mark = "&" if "?" in path else "?"
        return browser.open(f"{self.root}{path}{mark}token={self.token}", **given)

    def foreign(self, tab: BrowserTab) -> list[str]:
        """Return the requests of a page that did not go to its own server."""
        return [each for each in tab.requests if not each.startswith((f"{self.root}/", "data:"))]


class EmbeddedServer:
    """The API server of `stowplan up`, asked by plain requests."""

    def __init__(self, url: str, kubeconfig: Path) -> None:
        self.url, self.kubeconfig = url, kubeconfig

    def ask(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> Any:
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"{self.url}{path}", body, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def create_pod(self, name: str, namespace: str = "default", cpu: str = "1", **spec: Any) -> Any:
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
        document = {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        return self.ask("POST", f"/api/v1/namespaces/{namespace}/pods", document)

    def delete_pod(self, name: str, namespace: str = "default") -> None:
        self.ask("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}")


@contextmanager
def up(folder: Path, *arguments: str) -> Iterator[tuple[ServedPages, EmbeddedServer]]:
    """Run `stowplan up`; yield its pages and its API server."""
    kubeconfig = folder / "up.kubeconfig"
    command = [sys.executable, "-m", "stowplan.apps.cli", "up", "--kubeconfig", str(kubeconfig), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    url = ""
    try:
        for line in process.stdout:
            if "A cluster is up at" in line:
                url = line.split()[5].rstrip(".")
            if found := ADDRESS.search(line):
                pages = ServedPages(found[1], line.strip().rpartition("token=")[2])
                pages.wait_until_read()
                yield pages, EmbeddedServer(url, kubeconfig)
                break
        else:
            raise AssertionError(f"stowplan up ended with {process.wait(30)}")
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


@contextmanager
def served(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> Iterator[ServedPages]:
    """Run `stowplan ui` with these arguments, and yield its pages once it has printed its address."""
    command = [sys.executable, "-m", "stowplan.apps.cli", "ui", "--no-browser", "--token", TOKEN, *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    )
    said: list[str] = []
    assert process.stdout is not None and process.stderr is not None
    problems = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
    problems.start()
    try:
        for line in process.stdout:
            if found := ADDRESS.search(line):
                yield ServedPages(found[1])
                break
        else:
            problems.join(5)
            raise AssertionError(f"stowplan ui ended: {''.join(said)}")
    finally:
        process.terminate()
        process.wait(30)
        problems.join(5)
        process.stdout.close()
        process.stderr.close()
    assert not any("Traceback" in each or "A page failed" in each for each in said), "".join(said)
