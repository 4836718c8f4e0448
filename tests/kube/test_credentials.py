"""Which credentials are used, and when they are looked at again."""

from __future__ import annotations

import asyncio
import json
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.responses import UnreachableError
from stowplan.kube.transport import Transport
from stowplan.objects.errors import ConfigError
from tests.kube.fakes import answered, refused, serving
from tests.kube.test_kubeconfig import written

V1 = "client.authentication.k8s.io/v1"


def a_kubeconfig(folder: Path, server: str = "https://here", cluster: Any = None, **user: Any) -> Path:
    return written(
        folder / "config",
        current_context="dev",
        contexts={"dev": {"cluster": "here", "user": "me"}},
        clusters={"here": {"server": server, **(cluster or {})}},
        users={"me": user},
    )


def load(file: Path, now: list[float] | None = None) -> credentials.Access:
    clock = [1_000_000.0] if now is None else now
    return credentials.load(str(file), environ={"PATH": "/usr/bin:/bin"}, now=lambda: clock[0])


def a_plugin(folder: Path, text: str) -> Path:
    """A program that runs these lines of Python."""
    file = folder / "plugin"
    file.write_text(f"#!{sys.executable}\nimport json, os, pathlib\nhere = pathlib.Path(__file__).parent\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def prints(status: object, version: str = V1) -> str:
    return f"print(json.dumps({{'apiVersion': {version!r}, 'kind': 'ExecCredential', 'status': {status!r}}}))"


# Each run is counted, and the token contains the number of the run.
COUNTING = (
    "count = len(list(here.glob('ran-*'))) + 1\n(here / f'ran-{count}').touch()\n"
    "(here / 'info').write_text(os.environ['KUBERNETES_EXEC_INFO'] + os.environ['EXTRA'])\n"
    "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
    " 'status': {'token': f'token-{count}', 'expirationTimestamp': '1970-01-12T13:48:20Z'}}))"  # 1,000,100
)


def exec_user(command: str = "./plugin", **more: Any) -> dict[str, Any]:
    return {"exec": {"apiVersion": V1, "command": command, "env": [{"name": "EXTRA", "value": "!"}], **more}}


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        pytest.param({}, (), id="no credentials"),
        pytest.param({"token": "abc\n"}, (("Authorization", "Bearer abc"),), id="a token, without its line end"),
        pytest.param(
            {"username": "me", "password": "secret"}, (("Authorization", "Basic bWU6c2VjcmV0"),), id="a password"
        ),
        pytest.param(
            {"token": "x", "as": "you", "as-groups": ["a", "b"], "as-user-extra": {"why": ["c"]}},
            (
                ("Authorization", "Bearer x"),
                ("Impersonate-User", "you"),
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Extra-why", "c"),
            ),
            id="impersonation",
        ),
    ],
)
async def test_headers_carry_the_credentials(tmp_path: Path, user: Any, headers: Any) -> None:
    access = load(a_kubeconfig(tmp_path, **user))
    assert await access.headers() == headers
    assert await access.headers() is await access.headers()


async def test_a_token_cannot_bring_headers_of_its_own(tmp_path: Path) -> None:
    access = load(a_kubeconfig(tmp_path, token="abc\r\nImpersonate-User: admin"))
    with pytest.raises(UnreachableError, match="line break"):
        await access.headers()


async def test_a_token_file_is_read_again_each_minute_and_when_it_was_refused(tmp_path: Path) -> None:
    now, token = [0.0], tmp_path / "token"
    token.write_text("one\n")
    access = load(a_kubeconfig(tmp_path, tokenFile="token", token="not this one"), now)
    first = await access.headers()
    token.write_text("two\n")
    assert await access.headers() is first
    second = await access.headers(refused=first)
    token.write_text("three\n")
    assert await access.headers(refused=first) is second, "another request has looked already"
    now[0] = 61
    assert [first, second, await access.headers()] == [
        (("Authorization", f"Bearer {word}"),) for word in ("one", "two", "three")
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"\n", "is empty", id="an empty line"),
        pytest.param(None, "cannot be read: .*No such file", id="gone"),
        pytest.param(b"\xff\xfe", "cannot be read", id="not a text"),
        pytest.param(b"two\nlines", "holds no token", id="more than a token"),
    ],
)
async def test_the_last_good_token_stays_in_use(tmp_path: Path, content: bytes | None, problem: str) -> None:
    now, token, problems = [0.0], tmp_path / "token", list[str]()
    token.write_text("one")
    access = load(a_kubeconfig(tmp_path, tokenFile="token"), now)
    access.on_problem = problems.append
    headers = await access.headers()
    token.unlink() if content is None else token.write_bytes(content)
    for now[0] in (61, 63, 65):
        assert await access.headers() == (("Authorization", "Bearer one"),)
    headers = await access.headers(refused=headers)
    assert headers == (("Authorization", "Bearer one"),)
    assert len(problems) == 1 and re.search(f"token: {problem}.*; the last token stays in use", problems[0])
    token.write_text("two")
    now[0] = 67
    assert await access.headers() == (("Authorization", "Bearer two"),)
    token.write_text("")
    now[0] = 130
    await access.headers()
    assert len(problems) == 2, "it is a new one"


async def test_without_a_token_nothing_is_sent(tmp_path: Path) -> None:
    now, token = [0.0], tmp_path / "token"
    token.write_text("")
    access = load(a_kubeconfig(tmp_path, tokenFile="token"), now)
    with pytest.raises(UnreachableError, match="token: is empty") as raised:
        await access.headers()
    assert raised.value.unsent
    token.write_text("one")
    assert await access.headers() == (("Authorization", "Bearer one"),)


async def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of the pod")
    (tmp_path / "namespace").write_text("kube-system\n")
    (tmp_path / "ca.crt").write_text("")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"ca.crt: not usable"):
        credentials.load(environ=environ, service_account=tmp_path)
    resolved = credentials.in_cluster("fd00::1", "443", tmp_path)
    assert (resolved.cluster.server, resolved.namespace) == ("https://[fd00::1]:443", "kube-system")
    assert resolved.user.token_file == str(tmp_path / "token")


def test_what_is_named_first_wins(tmp_path: Path) -> None:
    """A file that is given, then KUBECONFIG, then the home folder."""
    given, listed, home = (
        a_kubeconfig(tmp_path / name, server=f"http://{name}") for name in ("given", "listed", ".kube")
    )
    environ = {"KUBECONFIG": f"{tmp_path / 'nowhere'}:{listed}", "HOME": str(tmp_path)}
    assert credentials.load(str(given), environ=environ).server == "http://given"
    assert credentials.load(environ=environ).server == "http://listed"
    assert credentials.load(environ={"HOME": str(tmp_path)}).server == "http://.kube"
    assert home.parent.name == ".kube"
    with pytest.raises(ConfigError, match=r"no cluster to connect to; name a file \(--kubeconfig\), set KUBECONFIG"):
        credentials.load(environ={"HOME": str(tmp_path / "nowhere")})


async def test_an_exec_plugin_is_run_again_when_its_token_expires_or_was_refused(tmp_path: Path) -> None:
    now = [1_000_000.0]
    a_plugin(tmp_path, COUNTING)
    access = load(a_kubeconfig(tmp_path, **exec_user()), now)
    first = await access.headers()
    assert first == (("Authorization", "Bearer token-1"),)
    assert await access.headers() is first
    now[0] = 1_000_091  # ten seconds before it expires
    second = await access.headers()
    assert second == (("Authorization", "Bearer token-2"),)
    now[0] = 1_000_000
    third = await asyncio.gather(*(access.headers(refused=second) for _ in range(5)))
    assert set(third) == {(("Authorization", "Bearer token-3"),)}


async def test_an_exec_plugin_gets_the_cluster_on_request(tmp_path: Path) -> None:
    a_plugin(tmp_path, COUNTING)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "us"}}
    cluster = {"tls-server-name": "k8s", "extensions": [extension]}
    await load(a_kubeconfig(tmp_path, cluster=cluster, **exec_user(provideClusterInfo=True))).headers()
    about = json.loads((tmp_path / "info").read_text().removesuffix("!"))
    assert about["spec"] == {
        "interactive": False,
        "cluster": {"server": "https://here", "tls-server-name": "k8s", "config": {"audience": "us"}},
    }


@pytest.mark.parametrize(
    ("program", "user", "problem"),
    [
        pytest.param("exit(3)", {}, "plugin: ended with 3", id="it fails"),
        pytest.param("print('hello')", {}, "did not print an ExecCredential", id="it prints something else"),
        pytest.param(prints({}), {}, "neither a token nor a certificate", id="it prints nothing of use"),
        pytest.param(prints({"token": "x"}, f"{V1}beta1"), {}, f"expected {V1}$", id="another version than requested"),
        pytest.param(
            "", exec_user("./nowhere", installHint="get it\nthere"), "cannot be run: .*; get it there", id="not there"
        ),
    ],
)
async def test_a_plugin_without_credentials(tmp_path: Path, program: str, user: Any, problem: str) -> None:
    a_plugin(tmp_path, program)
    access = load(a_kubeconfig(tmp_path, **(user or exec_user())))
    with pytest.raises(UnreachableError, match=problem):
        await access.headers()


@pytest.mark.parametrize(
    ("user", "problem"),
    [
        pytest.param(
            {"exec": {"apiVersion": f"{V1}alpha1", "command": "x"}},
            f'user.exec.apiVersion: found "{V1}alpha1", expected {V1} or {V1}beta1',
            id="an exec plugin of a version that is gone",
        ),
        pytest.param(exec_user(interactiveMode="Always"), "no terminal for a prompt", id="an interactive plugin"),
        pytest.param({"auth-provider": {"name": "gcp"}}, "use an exec plugin instead", id="an auth provider"),
    ],
)
def test_unusable_settings_are_reported_at_once(tmp_path: Path, user: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load(a_kubeconfig(tmp_path, **user))


@pytest.mark.parametrize("stream", [False, True], ids=["a request", "a watch"])
async def test_a_401_has_the_token_read_again_once(tmp_path: Path, stream: bool) -> None:
    async def handler(request: web.Request) -> web.Response:
        good = request.headers["Authorization"] == "Bearer two"
        return answered({"items": []}) if good else refused(401, "Unauthorized")

    (tmp_path / "token").write_text("one")
    async with serving(handler) as fake:
        access = load(a_kubeconfig(tmp_path, fake.url, tokenFile="token"))
        client = Client(Transport(access))
        assert (await client.transport.request("GET", "/")).status == 401
        (tmp_path / "token").write_text("two")
        if stream:
            async with client.transport.stream("/") as body:
                assert b'"items": []' in await body.read(10)
        else:
            assert (await client.transport.request("GET", "/")).ok
        await client.close()
        assert [headers["Authorization"][-3:] for headers in fake.headers] == ["one", "one", "one", "two"]
