"""Request lines and headers that no HTTP library sends: the client's mistake, never a 500, whoever may send them."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest

from stowplan.embedded.cluster import Embedded
from tests.embedded.authorization.guarded import ROOT, GuardedCluster

PODS = b"GET /api/v1/pods HTTP/1.1"
MAPS = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1"
BODY = b'{"metadata":{"name":"x"}}'
TOKEN = b"Authorization: Bearer tok"
# What is sent, with the status that the administrator gets.
SENT = [
    ("no path, but all of the server", b"OPTIONS * HTTP/1.1", (TOKEN,), 404),
    ("another method without a path", b"GET * HTTP/1.1", (TOKEN,), None),
    ("a whole URL without a path", b"GET http://x HTTP/1.1", (TOKEN,), 200),
    ("a whole URL", b"GET http://x/api/v1/pods HTTP/1.1", (TOKEN,), 200),
    ("a query without a path", b"GET ?watch=1 HTTP/1.1", (TOKEN,), None),
    ("a host to connect to", b"CONNECT example.com:443 HTTP/1.1", (TOKEN,), None),
    ("nothing but slashes", b"GET /// HTTP/1.1", (TOKEN,), None),
    ("bytes that are no text in the path", b"GET /api/v1/pods/\xff HTTP/1.1", (TOKEN,), None),
    ("bytes that are no text in the query", b"GET /api/v1/pods?labelSelector=\xff HTTP/1.1", (TOKEN,), None),
    ("an escape that is no text in the path", b"GET /api/v1/namespaces/default/pods/%ff HTTP/1.1", (TOKEN,), 404),
    ("an escape that is no text in the query", b"GET /api/v1/pods?fieldSelector=%ff HTTP/1.1", (TOKEN,), 400),
    ("a program whose name is no text", MAPS, (TOKEN, b"User-Agent: \xff\xfe/1"), 201),
    ("an Accept that is no text", PODS, (TOKEN, b"Accept: \xff"), 406),
    ("a Content-Type that is no text", MAPS, (TOKEN, b"Content-Type: \xff"), 415),
    ("a user that is no text", PODS, (TOKEN, b"Impersonate-User: \xff"), None),
    ("an extra field that is no text", PODS, (TOKEN, b"Impersonate-User: a", b"Impersonate-Extra-%ff: \xff"), None),
    ("a page that is no text", PODS, (TOKEN, b"Origin: \xff"), None),
    ("a site that is no text", PODS, (TOKEN, b"Sec-Fetch-Site: \xff"), None),
]  # fmt: skip
STRANGERS = [
    ("a token that is no text", PODS, (b"Authorization: Bearer \xff\xfe",)),
    ("a password that is no text", PODS, (b"Authorization: Basic \xff\xfe",)),
    ("a scheme that is no text", PODS, (b"Authorization: \xff",)),
    ("no path and no token", b"OPTIONS * HTTP/1.1", ()),
    ("a whole URL and no token", b"GET http://x HTTP/1.1", ()),
]


async def status(cluster: Embedded, line: bytes, headers: tuple[bytes, ...]) -> int:
    """The status of the answer."""
    tls = ssl.create_default_context(cadata=cluster.certificate.decode()) if cluster.rbac else None
    address = cluster.url.split("//")[1]
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    body = BODY if line.startswith(b"POST") else b""
    sent = [line, b"Host: " + address.encode(), b"Connection: close", b"Content-Length: %d" % len(body), *headers]
    if body and not any(header.startswith(b"Content-Type") for header in headers):
        sent.append(b"Content-Type: application/json")
    writer.write(b"\r\n".join(sent) + b"\r\n\r\n" + body)
    async with asyncio.timeout(60):
        answer = await reader.readline()
    writer.close()
    return int(answer.split()[1])


async def ask_all(sent: list[Any], **options: Any) -> dict[str, int]:
    """The statuses of all requests of a table."""
    token = options.pop("token", "tok")
    cluster = Embedded(with_controllers=False, **options)
    await cluster.start(token=token)
    try:
        found = {name: await status(cluster, line, headers) for name, line, headers, *_ in sent}
        assert cluster.problems == []
        return found
    finally:
        await cluster.stop()


KINDS = [
    pytest.param({"token": None}, id="without a token"),
    pytest.param({}, id="with a token"),
    pytest.param({"rbac": True}, id="with RBAC"),
]


@pytest.mark.parametrize("options", KINDS)
def test_odd_requests_of_the_administrator(options: dict[str, Any]) -> None:
    found = asyncio.run(ask_all(SENT, **options))
    wanted = {name: code for name, *_, code in SENT if code is not None}
    assert {name: found[name] for name in wanted} == wanted
    assert all(code < 500 for code in found.values())


@pytest.mark.parametrize("options", KINDS[1:])
def test_odd_requests_of_strangers(options: dict[str, Any]) -> None:
    found = asyncio.run(ask_all(STRANGERS, **options))
    assert found == dict.fromkeys(found, 401) | ({} if not options else dict.fromkeys(list(found)[1:], 403))


def test_no_path_is_the_path_of_the_root() -> None:
    """It is no resource: who may do everything with resources need not read paths."""
    cluster = GuardedCluster()
    cluster.grant("resources", "bob", {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})
    for path in ("", "/"):
        code, found = cluster.as_user("bob", "PUT", path)
        assert (code, found["message"]) == (403, 'forbidden: User "bob" cannot put path "/"')
        assert cluster.ask("GET", path, token=ROOT)[0] == 200
