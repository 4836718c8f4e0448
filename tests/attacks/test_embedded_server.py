"""`stowplan up` as a process: what a web page, a smuggler or a bomb sends does not harm it; kubectl goes on working."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.survivor import memory, wait_until_small
from tests.controlplane.fixtures import kubectl as kubectl_of
from tests.controlplane.flags import LOOPBACK, free_port
from tests.controlplane.process import Program, until

pytestmark = pytest.mark.controlplane

PODS = "/api/v1/namespaces/default/pods"
POD = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "i"}]}}
HEAD = "Host: 127.0.0.1\r\nConnection: close\r\n"


class Up(Program):
    """`stowplan up`, and the real kubectl for it."""

    def __init__(self, folder: Path, kubectl: Path, *arguments: str) -> None:
        self.port, self.kubeconfig, self._kubectl = free_port(), folder / "kubeconfig", kubectl
        command = ["-m", "stowplan.apps.cli", "up", "--nodes=1", f"--port={self.port}"]
        command += [f"--kubeconfig={self.kubeconfig}", *arguments]
        super().__init__(Path(sys.executable), command, folder / "up.log")

    def kubectl(self, *arguments: str, text: str = "") -> str:
        command = [str(self._kubectl), f"--kubeconfig={self.kubeconfig}", *arguments]
        environment = {**os.environ, "KUBERC": "off", "KUBECACHEDIR": str(self.kubeconfig.parent / "cache")}
        done = subprocess.run(
            command, input=text, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def send(self, data: bytes | str) -> bytes:
        """Send this on a connection of its own, and return all that comes back."""
        with socket.create_connection((LOOPBACK, self.port), timeout=20) as connection:
            found = b""
            with contextlib.suppress(ConnectionError):  # it need not read all of it
                connection.sendall(data.encode() if isinstance(data, str) else data)
            with contextlib.suppress(ConnectionError):
                while more := connection.recv(65536):
                    found += more
        return found

    def pods(self) -> list[str]:
        return self.kubectl("get", "pods", "-o", "name").split()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("up"), kubectl_of(pytestconfig)) as program:
        program.wait_until(program.kubeconfig.exists, 60)
        yield program
    assert not program.kubeconfig.exists()


@contextlib.contextmanager
def kept_well(up: Up) -> Iterator[None]:
    """Afterwards kubectl creates a pod, which runs soon; the program has not grown, and no other pod was created."""
    run_pod(up, "before")
    size = memory(up)
    yield
    run_pod(up, "after")
    wait_until_small(up, size)
    assert up.pods() == []


def run_pod(up: Up, name: str) -> None:
    up.kubectl("run", name, "--image=nginx")
    until("the pod runs", lambda: "Running" in up.kubectl("get", "pod", name, "--no-headers"), 5, up.tail)
    up.kubectl("delete", "pod", name, "--now")


def post(name: str, *headers: str, host: str = LOOPBACK) -> str:
    body = json.dumps({**POD, "metadata": {"name": name}})
    lines = [f"POST {PODS} HTTP/1.1", f"Host: {host}", "Connection: close", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", body])


def yaml_bomb(levels: int = 8) -> str:
    lines = ["apiVersion: v1", "kind: Pod", "metadata: {name: bomb}", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    body = "\n".join(lines)
    return f"POST {PODS} HTTP/1.1\r\n{HEAD}Content-Type: application/yaml\r\nContent-Length: {len(body)}\r\n\r\n{body}"


JSON = "Content-Type: application/json"
CHUNK = b"10000\r\n" + b"a" * 65536 + b"\r\n"
ATTACKS: list[Any] = [
    pytest.param(f"GET {PODS} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403, id="DNS rebinding"),
    pytest.param(post("a", "Origin: http://evil.example"), 403, id="a page's POST without a type"),
    pytest.param(post("a", "Sec-Fetch-Site: cross-site", JSON), 403, id="a page's POST with Sec-Fetch-Site"),
    pytest.param(post("a"), 415, id="a POST without a type"),
    pytest.param(post("a", "Content-Type: text/plain"), 415, id="a POST of a form"),
    pytest.param(post("a", JSON, host="evil.example"), 403, id="a POST by DNS rebinding"),
    pytest.param(yaml_bomb(), 400, id="a YAML bomb"),
    pytest.param(
        f"POST {PODS} HTTP/1.1\r\n{HEAD}{JSON}\r\nContent-Length: 200000\r\n\r\n" + "[" * 100_000 + "]" * 100_000,
        400,
        id="deep JSON",
    ),
    pytest.param(
        f"POST {PODS} HTTP/1.1\r\n{HEAD}{JSON}\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + CHUNK * 60,
        413,
        id="a body without an end",
    ),
    pytest.param(
        f"GET /version HTTP/1.1\r\n{HEAD}" + "".join(f"A{n}: b\r\n" for n in range(100_000)) + "\r\n",
        400,
        id="100,000 headers",
    ),
    pytest.param(f"GET /version HTTP/1.1\r\n{HEAD}A: {'a' * 100_000}\r\n\r\n", 400, id="a long header"),
    pytest.param(
        f"POST {PODS} HTTP/1.1\r\n{HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        id="a length and chunks",
    ),
    pytest.param(
        f"POST /version HTTP/1.1\r\n{HEAD}Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", 400, id="two lengths"
    ),
    pytest.param("GET /version HTTP/1.1\r\nConnection: close\r\n\r\n", 400, id="no host"),
    pytest.param(f"GET /api/v1/../../etc/passwd HTTP/1.1\r\n{HEAD}\r\n", 404, id="a path to a file"),
    pytest.param(f"OPTIONS {PODS} HTTP/1.1\r\n{HEAD}Origin: http://evil.example\r\n\r\n", 403, id="asking first"),
]  # fmt: skip


def test_requests_that_mean_harm(up: Up) -> None:
    with kept_well(up):
        for attack in ATTACKS:
            text, status = attack.values
            answer = up.send(text)
            assert answer.split(b" ")[1:2] == [str(status).encode()], (attack.id, answer[:300])
            assert answer.count(b"HTTP/1.") == 1, attack.id
            assert b"Access-Control" not in answer, attack.id
        assert up.log.read_text().count("Traceback") == 0


def test_kubectl_does_what_it_did(up: Up) -> None:
    """All kinds of bodies that kubectl sends."""
    up.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2")
    up.kubectl("scale", "deployment", "web", "--replicas=3")
    up.kubectl("label", "deployment", "web", "a=b")
    up.kubectl("patch", "deployment", "web", "--type=merge", "-p", '{"metadata":{"labels":{"c":"d"}}}')
    up.kubectl("patch", "deployment", "web", "--type=json", "-p", '[{"op":"remove","path":"/metadata/labels/c"}]')
    until("three run", lambda: up.kubectl("get", "pods", "--no-headers").count("Running") == 3, 20, up.tail)
    up.kubectl("apply", "-f", "-", text="{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}")
    up.kubectl("delete", "configmap", "a")
    up.kubectl("delete", "deployment", "web")
    until("none is left", lambda: up.pods() == [], 20, up.tail)
    up.kubectl("config", "set-context", "--current", "--namespace=default")  # it rewrites the file, and the mark stays


def test_it_does_not_touch_a_kubeconfig_that_is_not_its_own(tmp_path: Path, up: Up) -> None:
    file = tmp_path / "config"
    file.write_text("apiVersion: v1\nkind: Config\n")
    command = [sys.executable, "-m", "stowplan.apps.cli", "up", f"--kubeconfig={file}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "was not written by stowplan up" in done.stderr
    assert file.read_text() == "apiVersion: v1\nkind: Config\n"
