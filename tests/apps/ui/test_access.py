"""Who may read the pages: the token, Host and Origin, and the headers of each answer."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from stowplan.apps.logging import Log
from stowplan.apps.ui import service
from stowplan.apps.ui.access import POLICY, BrowserAccess
from stowplan.apps.ui.simulated_runs import SimulatedRuns
from stowplan.apps.ui.site import Site

TOKEN = "0123456789abcdef-token"
RIGHT = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    access = BrowserAccess(TOKEN)
    with service.serving(Site(None, SimulatedRuns((Path("runs"),)), access), access, 0, Log(0)):
        yield access.port


def asked(
    port: int, path: str = "/simulations", method: str = "GET", **headers: str
) -> tuple[int, http.client.HTTPMessage, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.putrequest(method, path, skip_host="Host" in named)
        for name, value in named.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("given", "status"),
    [
        pytest.param({"Authorization": f"Bearer {TOKEN}"}, 200, id="a program with the token"),
        pytest.param({"Authorization": f"Bearer {TOKEN}x"}, 403, id="a wrong token"),
        pytest.param({"Authorization": "Bearer é"}, 403, id="a token of other letters"),
        pytest.param({}, 403, id="no token"),
        pytest.param({"Cookie": "stowplan-ui-PORT=" + TOKEN}, 200, id="the cookie"),
        pytest.param({"Cookie": 'a={"x": 1}; b; stowplan-ui-PORT=' + TOKEN}, 200, id="beside a strange cookie"),
        pytest.param({"Cookie": "stowplan-ui-1=" + TOKEN}, 403, id="the cookie of another port"),
        pytest.param({"Cookie": "stowplan-ui-PORT=x"}, 403, id="a wrong cookie"),
        pytest.param({"Cookie": "=;;\\\\"}, 403, id="no cookie at all"),
        pytest.param({**RIGHT, "Host": "localhost:PORT"}, 200, id="localhost"),
        pytest.param({**RIGHT, "Host": "[::1]:PORT"}, 200, id="the loopback of IPv6"),
        pytest.param({**RIGHT, "Host": "evil.example:PORT"}, 403, id="a name that resolves to the loopback"),
        pytest.param({**RIGHT, "Host": "127.0.0.1:1"}, 403, id="another port"),
        pytest.param({**RIGHT, "Host": "127.0.0.1"}, 403, id="no port"),
        pytest.param({**RIGHT, "Origin": "http://127.0.0.1:PORT"}, 200, id="a page of ours"),
        pytest.param({**RIGHT, "Origin": "http://evil.example"}, 403, id="a page of another server"),
        pytest.param({**RIGHT, "Origin": "http://127.0.0.1:1"}, 403, id="a page of another port"),
        pytest.param({**RIGHT, "Origin": "null"}, 403, id="a page of nobody"),
        pytest.param({**RIGHT, "Sec_Fetch_Site": "same-origin"}, 200, id="the browser says: our own page"),
        pytest.param({**RIGHT, "Sec_Fetch_Site": "cross-site"}, 403, id="the browser says: another site"),
        pytest.param({**RIGHT, "Sec_Fetch_Site": "same-site"}, 403, id="the browser says: another port of this host"),
    ],
)
def test_only_who_may_is_answered(port: int, given: dict[str, str], status: int) -> None:
    found, headers, _ = asked(port, **{name: value.replace("PORT", str(port)) for name, value in given.items()})
    assert found == status
    assert headers["Content-Security-Policy"] == POLICY
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path", ["/", "/api/simulations", "/events/", "/static/ui.css", "/healthz", "/nothing", "/readyz/x"]
)
def test_nothing_is_answered_without_the_token(port: int, path: str) -> None:
    assert asked(port, path)[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"])
@pytest.mark.parametrize("path", ["/", "/simulations", "/static/ui.css", "/nothing"])
def test_nothing_but_reading_is_answered(port: int, method: str, path: str) -> None:
    status, headers, _ = asked(port, path, method, **RIGHT)
    assert status in (400, 405)
    assert status == 400 or headers["Allow"] == "GET, HEAD"


def test_the_token_leaves_the_address_and_becomes_a_cookie(port: int) -> None:
    status, headers, body = asked(port, f"/simulations?runs=a%26b&token={TOKEN}&x=%2F")
    assert (status, body) == (303, "")
    assert headers["Location"] == "/simulations?runs=a%26b&x=%2F"
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert asked(port, headers["Location"], Cookie=cookie.partition(";")[0])[0] == 200


def test_the_address_that_brings_the_token_leads_nowhere_else(port: int) -> None:
    for path in ("//evil.example/x", "/%2F%2Fevil.example", "/\\evil.example"):
        location = asked(port, f"{path}?token={TOKEN}")[1]["Location"]
        assert location.startswith("/") and not location.startswith(("//", "/\\"))
