"""Server and client certificates, as the kubeconfig configures them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from stowplan.kube import credentials
from stowplan.kube.responses import Response, UnreachableError
from stowplan.kube.transport import Transport
from stowplan.objects.errors import ConfigError
from tests.kube.certificates import Authority
from tests.kube.fakes import answered, serving
from tests.kube.test_credentials import V1, a_kubeconfig, a_plugin, exec_user


async def hello(request: web.Request) -> web.Response:
    assert request.transport is not None
    shown = request.transport.get_extra_info("peercert") or {}
    names = [value for part in shown.get("subject", ()) for _, value in part]
    return answered({"you": names})


async def ask(server: str, folder: Path, cluster: dict[str, Any], **user: Any) -> Response:
    transport = Transport(credentials.load(str(a_kubeconfig(folder, server, cluster, **user)), environ={}))
    try:
        return await transport.request("GET", "/")
    finally:
        await transport.close()


async def test_a_server_is_checked(authority: Authority, tmp_path: Path) -> None:
    by_file: dict[str, Any] = {"certificate-authority": str(authority.ca)}
    by_data = {"certificate-authority-data": base64.b64encode(authority.ca.read_bytes()).decode()}
    async with serving(hello, authority.server("127.0.0.1")) as fake:
        for cluster in (by_file, by_data, {"insecure-skip-tls-verify": True}):
            assert (await ask(fake.url, tmp_path, cluster)).ok
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            await ask(fake.url, tmp_path, {})
    async with serving(hello, authority.server("k8s.example")) as fake:
        with pytest.raises(UnreachableError, match="IP address mismatch"):
            await ask(fake.url, tmp_path, by_file)
        assert (await ask(fake.url, tmp_path, {**by_file, "tls-server-name": "k8s.example"})).ok


@pytest.mark.parametrize("way", ["files", "data", "plugin"])
async def test_we_show_our_certificate(authority: Authority, tmp_path: Path, way: str) -> None:
    file, key = authority.issue("us", group="schedulers")
    data = {"client-certificate-data": file.read_bytes(), "client-key-data": key.read_bytes()}
    status = {"clientCertificateData": file.read_text(), "clientKeyData": key.read_text()}
    a_plugin(tmp_path, f"print(json.dumps({{'apiVersion': {V1!r}, 'status': {status!r}}}))")
    user = {
        "files": {"client-certificate": str(file), "client-key": str(key)},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
        "plugin": exec_user(),
    }[way]
    async with serving(hello, authority.server("127.0.0.1", asks_for_certificates=True)) as fake:
        answer = await ask(fake.url, tmp_path, {"certificate-authority": str(authority.ca)}, **user)
        assert json.loads(answer.body)["you"] == ["schedulers", "us"]


@pytest.mark.parametrize(
    ("cluster", "user", "problem"),
    [
        pytest.param(
            {"certificate-authority": "nowhere.crt"}, {}, r"nowhere.crt: not usable: .*No such file", id="no such CA"
        ),
        pytest.param(
            {"certificate-authority-data": "aGVsbG8="}, {}, "certificate-authority-data: not usable", id="no PEM"
        ),
        pytest.param(
            {}, {"client-certificate": "a", "client-key": "b"}, "/a: not usable: .*; expected a PEM", id="no such file"
        ),
    ],
)
def test_a_certificate_that_cannot_be_used(tmp_path: Path, cluster: Any, user: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        credentials.load(str(a_kubeconfig(tmp_path, "https://here", cluster, **user)), environ={})


class Renewal:
    """A client whose certificate is in two files, at a server that asks for one."""

    def __init__(self, authority: Authority, folder: Path) -> None:
        self._authority, self._certificate, self._key = authority, folder / "c.crt", folder / "c.key"
        self.problems: list[str] = []
        self.now = 1_000.0
        self.write("first")

    def write(self, name: str, *, certificate: bytes | None = None, key: bytes | None = None) -> None:
        pair = [file.read_bytes() for file in self._authority.issue(name)]
        self._certificate.write_bytes(pair[0] if certificate is None else certificate)
        self._key.write_bytes(pair[1] if key is None else key)

    def access(self, server: str, folder: Path) -> credentials.Access:
        files = {"client-certificate": str(self._certificate), "client-key": str(self._key)}
        file = a_kubeconfig(folder, server, {"certificate-authority": str(self._authority.ca)}, **files)
        access = credentials.load(str(file), environ={}, now=lambda: self.now)
        access.on_problem = self.problems.append
        return access


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"certificate": b"-----BEGIN CERTIFICATE-----\nhalf writ"}, id="half a certificate"),
        pytest.param({"certificate": b""}, id="an empty one"),
        pytest.param({"key": b""}, id="an empty key"),
        pytest.param({"key": b"-----BEGIN PRIVATE KEY-----\nhalf"}, id="half a key"),
        pytest.param({"key": None}, id="a certificate whose key is still the old one"),
    ],
)
async def test_the_last_good_certificate_stays_in_use(authority: Authority, tmp_path: Path, broken: Any) -> None:
    renewal = Renewal(authority, tmp_path)
    old_key = (tmp_path / "c.key").read_bytes()

    async def who(transport: Transport) -> list[str]:
        transport._pool.close_idle()  # a certificate belongs to its connection
        found: list[str] = json.loads((await transport.request("GET", "/")).body)["you"]
        return found

    async with serving(hello, authority.server("127.0.0.1", asks_for_certificates=True)) as fake:
        access = renewal.access(fake.url, tmp_path)
        transport = Transport(access)
        first = await access.headers()
        assert await who(transport) == ["first"]
        renewal.write("second", **({"key": old_key} if broken == {"key": None} else broken))
        for _ in range(3):
            first = await access.headers(refused=first)
            assert await who(transport) == ["first"]
        assert len(renewal.problems) == 1 and "the last certificate stays in use" in renewal.problems[0]
        renewal.write("third")
        renewal.now += 2
        assert await who(transport) == ["third"], "it is looked at again soon, even if nobody is refused"
        renewal.write("fourth")
        assert await who(transport) == ["third"]
        renewal.now += 61
        assert await who(transport) == ["fourth"], "and each minute"
        await transport.close()
