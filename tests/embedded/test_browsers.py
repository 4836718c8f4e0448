"""What web pages can make a browser send is refused; what kubectl sends is not."""

from __future__ import annotations

import pytest

from stowplan.embedded.errors import ApiError
from stowplan.embedded.http.browsers import check_not_from_a_page

JSON = "application/json"


def check(headers: dict[str, str], kind: str = "", *, body: bool = False, listens_on: str = "127.0.0.1") -> None:
    check_not_from_a_page({"Host": "127.0.0.1:8001", **headers}, kind, has_body=body, listens_on=listens_on)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="kubectl"),
        pytest.param({"Host": "localhost:8001"}, id="localhost"),
        pytest.param({"Host": "LOCALHOST"}, id="in capitals, and without a port"),
        pytest.param({"Host": "127.8.9.10:80"}, id="another loopback address"),
        pytest.param({"Host": "[::1]:8001"}, id="IPv6"),
        pytest.param({"Host": "my-laptop:8001"}, id="the name that it was told to listen on"),
        pytest.param({"Sec-Fetch-Site": "none"}, id="typed into a browser"),
        pytest.param({"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8001"}, id="a page of ours"),
    ],
)
def test_answers(headers: dict[str, str]) -> None:
    check(headers, JSON, body=True, listens_on="my-laptop")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        pytest.param({"Host": ""}, 400, id="no host"),
        pytest.param({"Host": "evil.example"}, 403, id="a name that resolves to us"),
        pytest.param({"Host": "127.0.0.1.evil.example:8001"}, 403, id="a name that looks like an address"),
        pytest.param({"Host": "localhost.evil.example"}, 403, id="a name that begins like ours"),
        pytest.param({"Host": "10.0.0.7:8001"}, 403, id="an address that is not of the loopback"),
        pytest.param({"Origin": "http://evil.example"}, 403, id="a page elsewhere"),
        pytest.param({"Origin": "null"}, 403, id="a page without an origin"),
        pytest.param({"Origin": "http://127.0.0.1:3000"}, 403, id="a page of another port"),
        pytest.param({"Origin": "https://127.0.0.1:8001"}, 403, id="a page of another scheme"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, 403, id="cross-site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, 403, id="same-site is not same-origin"),
    ],
)
def test_refuses(headers: dict[str, str], code: int) -> None:
    with pytest.raises(ApiError) as caught:
        check(headers, JSON)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "Text/Plain", "multipart/form-data", "application/x-www-form-urlencoded"]
)
def test_a_body_needs_a_type_that_a_page_cannot_send(kind: str) -> None:
    with pytest.raises(ApiError) as caught:
        check({}, kind, body=True)
    assert caught.value.code == 415
    check({}, kind)
