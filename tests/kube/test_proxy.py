"""Which proxy is used, and the way through it."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from stowplan.kube import proxy
from stowplan.kube.credentials import Access
from stowplan.kube.kubeconfig import KubeconfigCluster, KubeconfigUser, ResolvedContext
from stowplan.kube.responses import UnreachableError
from stowplan.kube.transport import Transport
from stowplan.objects.errors import ConfigError
from tests.kube.certificates import Authority
from tests.kube.fakes import answered, serving
from tests.kube.gate import pump

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environ", "used"),
    [
        pytest.param("https://a.example", {}, False, id="none is named"),
        pytest.param("https://a.example", {"HTTPS_PROXY": PROXY}, True, id="one for https"),
        pytest.param("https://a.example", {"https_proxy": PROXY}, True, id="in small letters"),
        pytest.param("https://a.example", {"HTTP_PROXY": PROXY}, False, id="one for http only"),
        pytest.param("https://127.0.0.2:6443", {"HTTPS_PROXY": PROXY}, False, id="loopback needs none"),
        pytest.param("https://a.example", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, False, id="nothing needs one"),
        pytest.param("https://a.example", {"HTTPS_PROXY": PROXY, "NO_PROXY": "b,example"}, False, id="a domain"),
        pytest.param("https://example", {"HTTPS_PROXY": PROXY, "NO_PROXY": ".example"}, True, id="only below a domain"),
        pytest.param("https://anexample", {"HTTPS_PROXY": PROXY, "NO_PROXY": "example"}, True, id="only whole labels"),
        pytest.param("https://10.1.2.3", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, False, id="a network"),
        pytest.param("https://10.1.2.3", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.1.2.4"}, True, id="another address"),
        pytest.param("https://[fd00::1]", {"HTTPS_PROXY": PROXY, "NO_PROXY": "fd00::/8"}, False, id="an IPv6 network"),
    ],
)
def test_the_environment_names_a_proxy(server: str, environ: dict[str, str], used: bool) -> None:
    assert (proxy.from_environment(server, environ) is not None) == used


def test_the_kubeconfig_takes_precedence_over_the_environment() -> None:
    cluster = KubeconfigCluster(server="https://127.0.0.1", proxy_url="http://me:p%40ss@other:1")
    access = Access(ResolvedContext("", cluster, KubeconfigUser(), ""), environ={"HTTPS_PROXY": PROXY})
    assert access.proxy == proxy.Proxy("other", 1, False, "Basic bWU6cEBzcw==")


@pytest.mark.parametrize("url", ["socks5://proxy:1080", "os:system", "http://[", "http://a:99999999", ""])
def test_what_is_no_address_of_a_proxy_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"config: found the proxy .* expected an address such as http://"):
        proxy.parse(url, "config")


class Tunnel:
    """A proxy of a few lines: CONNECT, then all data in both directions."""

    def __init__(self, permit: str = "") -> None:
        self._permit, self.seen = permit, list[str]()

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.seen.append(head.splitlines()[0])
        if self._permit not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        host, _, port = head.split()[1].rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()


async def hello(request: web.Request) -> web.Response:
    return answered({"path": request.path_qs})


async def test_tls_uses_a_tunnel(authority: Authority) -> None:
    tunnel = Tunnel("Proxy-Authorization: Basic bWU6c2VjcmV0")
    async with serving(hello, authority.server("127.0.0.1")) as fake, tunnel as address:
        cluster = KubeconfigCluster(
            server=fake.url, certificate_authority=str(authority.ca), proxy_url=f"http://me:secret@{address}"
        )
        transport = Transport(Access(ResolvedContext("", cluster, KubeconfigUser(), ""), environ={}))
        answers = [await transport.request("GET", f"/{number}") for number in range(3)]
        await transport.close()
        assert [json.loads(answer.body)["path"] for answer in answers] == [f"/{number}" for number in range(3)]
        assert tunnel.seen == [f"CONNECT {fake.url.removeprefix('https://')} HTTP/1.1"]


async def test_a_proxy_that_refuses_is_named(authority: Authority) -> None:
    async with Tunnel("Proxy-Authorization") as address:
        cluster = KubeconfigCluster(
            server="https://10.0.0.1", certificate_authority=str(authority.ca), proxy_url=f"http://{address}"
        )
        transport = Transport(Access(ResolvedContext("", cluster, KubeconfigUser(), ""), environ={}))
        with pytest.raises(UnreachableError, match=r"the proxy refused to connect to 10.0.0.1:443: 407"):
            await transport.request("GET", "/")
        await transport.close()


async def test_without_tls_the_proxy_gets_the_whole_url() -> None:
    async with serving(hello) as fake:
        cluster = KubeconfigCluster(server="http://10.0.0.1:8080/prefix", proxy_url=fake.url)
        transport = Transport(Access(ResolvedContext("", cluster, KubeconfigUser(), ""), environ={}))
        await transport.request("GET", "/api")
        await transport.close()
        assert fake.asked[0][1] == "http://10.0.0.1:8080/prefix/api"
