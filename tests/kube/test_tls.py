"""Server and client certificates, as the kubeconfig configures them."""

from __future__ import annotations

import base64
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
        assert answer.body == b'{"you": ["schedulers", "us"]}'


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
