"""Tokens of service accounts: their claims, and when it is time for a new one."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from stowplan.kube.service_account_tokens import TokenClaims, claims
from stowplan.objects.errors import ConfigError


def a_token(**payload: Any) -> str:
    def part(content: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    return f"{part({'alg': 'RS256'})}.{part(payload)}.signature"


def test_claims() -> None:
    found = claims(a_token(sub="system:serviceaccount:cluster1:stowplan-scores", iat=100, exp=700, aud=["x"]))
    assert found == TokenClaims("cluster1/stowplan-scores", 100.0, 700.0)


@pytest.mark.parametrize(
    ("token", "said"),
    [
        pytest.param("", "found no JSON web token", id="nothing"),
        pytest.param("abcdef", "found no JSON web token", id="another kind of token"),
        pytest.param("a.!!!.c", "cannot be read", id="no base64"),
        pytest.param("a.YWJj.c", "cannot be read", id="no JSON"),
        pytest.param(a_token(sub="jane"), "found a token of 'jane'", id="a person's"),
        pytest.param(a_token(sub="system:serviceaccount:x"), "found a token of", id="half an account"),
        pytest.param(a_token(), "found a token of ''", id="nobody's"),
        pytest.param(a_token(sub="system:serviceaccount:a:b", exp="soon"), "cannot be read", id="no time"),
    ],
)
def test_tokens_that_cannot_be_renewed(token: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        claims(token)


@pytest.mark.parametrize(
    ("token", "due"),
    [
        pytest.param(TokenClaims("a/b", 1000.0, 4600.0), 2800.0, id="half of its life"),
        pytest.param(TokenClaims("a/b", 1000.0, 1600.0), 1300.0, id="also of a shorter one"),
        pytest.param(TokenClaims("a/b", 1000.0, 1000.0 + 8760 * 3600), 0.0, id="a year is too long"),
        pytest.param(TokenClaims("a/b", 1000.0, None), 0.0, id="for ever, too"),
    ],
)
def test_when_it_is_time(token: TokenClaims, due: float) -> None:
    assert token.due_at(3600.0) == due


@pytest.mark.parametrize(
    ("token", "due"),
    [
        pytest.param(TokenClaims("a/b", 1000.0, 4600.0), 2800.0, id="half of its life"),
        pytest.param(TokenClaims("a/b", 1000.0, 1000.0 + 86400), 44200.0, id="the server gives a day"),
        pytest.param(TokenClaims("a/b", 1000.0, None), float("inf"), id="for ever"),
    ],
)
def test_when_it_is_time_for_a_token_that_was_requested(token: TokenClaims, due: float) -> None:
    assert token.due_at(3600.0, requested=True) == due
