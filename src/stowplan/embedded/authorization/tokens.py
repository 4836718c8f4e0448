"""Tokens: those of ServiceAccounts, which say themselves whose they are and until when, and those of users.

A token of a ServiceAccount is a JSON Web Token with the claims of Kubernetes, signed with a secret of the cluster
(HS256; a real cluster has a key pair). It ends when it expires, or when the account, or the object that it is bound to,
is gone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from typing import Any

import msgspec

from stowplan.embedded.authorization.users import ApiUser, account_groups, account_name
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore

ISSUER = "https://kubernetes.default.svc"  # also the audience of tokens for the API server
_CLAIMS = "kubernetes.io"
_CREDENTIAL, _POD = "authentication.kubernetes.io/credential-id", "authentication.kubernetes.io/pod-"
_HEADER = {"alg": "HS256", "typ": "JWT"}
BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}  # the kinds that a token can be bound to


class TokenOwner(msgspec.Struct, frozen=True):
    """Whose token it is, and for which of the audiences in question."""

    user: ApiUser
    audiences: tuple[str, ...]


class ServiceAccountTokens:
    def __init__(self, store: DocumentStore, secret: bytes) -> None:
        self._store, self._secret = store, secret

    def issue(
        self, account: Document, audiences: Iterable[str], now: float, seconds: int, credential: str,
        bound: Document | None = None,
    ) -> str:  # fmt: skip
        """A token of an account. `credential` is its id, `bound` the object without which it is worth nothing."""
        metadata = account["metadata"]
        about: Document = {"namespace": metadata["namespace"], "serviceaccount": _reference(account)}
        if bound is not None:
            about[bound["kind"].lower()] = _reference(bound)
        issued = int(now)
        claims = {
            "aud": list(audiences), "exp": issued + seconds, "iat": issued, "iss": ISSUER, "jti": credential,
            _CLAIMS: about, "nbf": issued, "sub": account_name(metadata["namespace"], metadata["name"]),
        }  # fmt: skip
        signed = f"{_encoded(msgspec.json.encode(_HEADER))}.{_encoded(msgspec.json.encode(claims))}"
        return f"{signed}.{self._signature(signed)}"

    def owner(self, token: str, now: float, audiences: Iterable[str] = (ISSUER,)) -> TokenOwner | None:
        """Whose token it is; None if it is not one of ours, or worth nothing now."""
        signed, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(signed).encode()):
            return None
        claims = msgspec.json.decode(_decoded(signed.partition(".")[2]))
        asked = tuple(each for each in audiences if each in claims["aud"])
        if not claims["nbf"] <= now < claims["exp"] or not asked or not self._exists(claims[_CLAIMS]):
            return None
        return TokenOwner(_user(claims), asked)

    def _exists(self, about: Document) -> bool:
        namespace = about["namespace"]
        wanted = [("serviceaccounts", about["serviceaccount"])]
        wanted += [(plural, about[kind.lower()]) for kind, plural in BOUND.items() if kind.lower() in about]
        for plural, reference in wanted:
            key = reference["name"] if plural == "nodes" else f"{namespace}/{reference['name']}"
            found = self._store.get(plural, key)
            if found is None or found["metadata"]["uid"] != reference["uid"]:
                return False
        return True

    def _signature(self, signed: str) -> str:
        return _encoded(hmac.digest(self._secret, signed.encode(), hashlib.sha256))


class Authenticator:
    """All tokens that the server accepts."""

    def __init__(self, accounts: ServiceAccountTokens) -> None:
        self.accounts = accounts
        self._users: list[tuple[bytes, ApiUser]] = []

    def add(self, token: str, user: ApiUser) -> None:
        self._users.append((token.encode(), user))

    def owner(self, token: str, now: float, audiences: Iterable[str] = (ISSUER,)) -> TokenOwner | None:
        given = token.encode()
        for known, user in self._users:
            if hmac.compare_digest(known, given):
                asked = tuple(each for each in audiences if each == ISSUER)
                return TokenOwner(user, asked) if asked else None
        return self.accounts.owner(token, now, audiences)


def _user(claims: dict[str, Any]) -> ApiUser:
    about = claims[_CLAIMS]
    extra = {_CREDENTIAL: [f"JTI={claims['jti']}"]}
    if "pod" in about:
        extra |= {f"{_POD}{field}": [about["pod"][field]] for field in ("name", "uid")}
    return ApiUser(claims["sub"], account_groups(about["namespace"]), about["serviceaccount"]["uid"], extra)


def _reference(document: Document) -> Document:
    return {"name": document["metadata"]["name"], "uid": document["metadata"]["uid"]}


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
