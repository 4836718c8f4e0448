"""Tokens of service accounts: whose they are, how long they live, and new ones by TokenRequests.

A token is read for its claims and not verified: the API server does that. It is time for a new one when half of its
life is over, so that a hub which is away for a while costs nothing.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime

import msgspec

from stowplan.kube.client import Client
from stowplan.kube.resources import ApiResource
from stowplan.objects.errors import ConfigError

ACCOUNTS = ApiResource("ServiceAccount", "serviceaccounts")
SHORTEST_LIFE = 600.0  # seconds; API servers refuse less
_PREFIX = "system:serviceaccount:"


class TokenClaims(msgspec.Struct, frozen=True):
    """`account` is NAMESPACE/NAME. Times are seconds since the epoch; a token without an expiry has none."""

    account: str
    issued_at: float = 0.0
    expires_at: float | None = None

    def due_at(self, lifetime: float, *, requested: bool = False) -> float:
        """Return when it is time for a new token that lives so long. A token that lives far longer is due at once.

        `requested`: it is the answer to such a request. A server may give longer ones, and would do so again.
        """
        if not requested and (self.expires_at is None or self.expires_at - self.issued_at > 2 * lifetime):
            return 0.0
        if self.expires_at is None:
            return float("inf")
        return self.issued_at + (self.expires_at - self.issued_at) / 2


class _Payload(msgspec.Struct):
    sub: str = ""
    iat: float = 0.0
    exp: float | None = None


class _IssuedToken(msgspec.Struct, rename="camel"):
    token: str = ""


class _TokenAnswer(msgspec.Struct):
    status: _IssuedToken = msgspec.field(default_factory=_IssuedToken)


def claims(token: str) -> TokenClaims:
    """Return the claims of a service account's token. Raises ConfigError if it is another token."""
    remedy = "expected the token of a service account: kubectl create token"
    parts = token.split(".")
    if len(parts) != 3:
        raise ConfigError("found no JSON web token", remedy=remedy)
    try:
        payload = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Payload)
    except (binascii.Error, ValueError, RecursionError):
        raise ConfigError("found a token whose claims cannot be read", remedy=remedy) from None
    namespace, _, name = payload.sub.removeprefix(_PREFIX).partition(":")
    if not payload.sub.startswith(_PREFIX) or not namespace or not name:
        raise ConfigError(f"found a token of {payload.sub[:100]!r}", remedy=remedy)
    return TokenClaims(f"{namespace}/{name}", payload.iat, payload.exp)


async def request(client: Client, account: str, lifetime: float) -> str:
    """Return a new token of an account. Raises WireError if the server does not give one."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": int(lifetime)},
    }
    path = ACCOUNTS.path(account, "token")
    answer = await client.transport.request("POST", path, body=msgspec.json.encode(body))
    try:
        found = msgspec.json.decode(answer.checked(f"POST {path}").body, type=_TokenAnswer).status.token
    except msgspec.DecodeError as error:
        raise ConfigError(f"found no token: {error}", path=path) from None
    if not found:
        raise ConfigError("found a TokenRequest without a token", path=path)
    return found


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
