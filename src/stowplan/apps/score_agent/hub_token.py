"""Keeps the token for the hub young: a TokenRequest when half of its life is over.

    tokenFile of the hub's kubeconfig ─► claims ─► due? ─► TokenRequest on the hub ─► the Secret, or the file itself
            ▲                                                                              │
            └────────── the kubelet writes the file of a Secret, within about a minute ────┘

The present token stays valid, so a crash at any moment loses nothing: whatever was stored is used. If the hub is away
until the token has expired, somebody has to make one again; readiness and log say so.
"""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from stowplan.apps.logging import Log
from stowplan.kube import service_account_tokens as tokens
from stowplan.kube.client import Client
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import WireError
from stowplan.kube.service_account_tokens import TokenClaims
from stowplan.objects.errors import ConfigError, StowplanError

SECRETS = ApiResource("Secret", "secrets")
LOOK_EVERY = 60.0  # seconds


class TokenStore(Protocol):
    async def store(self, token: str) -> None:
        """Keep a new token. Raises StowplanError if that is not possible."""
        ...


@dataclass
class TokenFile:
    """A file that this program may write. It is replaced, so nobody reads half a token."""

    path: Path

    async def store(self, token: str) -> None:
        new = self.path.with_name(f".{self.path.name}.new")
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(token)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        except OSError as error:
            remedy = "make its folder writable, or name a Secret (--hub-token-secret)"
            raise ConfigError(f"cannot be written: {error.strerror}", file=str(self.path), remedy=remedy) from None


@dataclass
class TokenSecret:
    """A Secret of the cluster that the agent runs in, which is mounted as that file."""

    client: Client
    key: str  # NAMESPACE/NAME
    entry: str  # the file's name

    async def store(self, token: str) -> None:
        body = {"data": {self.entry: base64.b64encode(token.encode()).decode()}}
        answer = await self.client.patch(SECRETS, self.key, body)
        answer.checked(f"PATCH secret {self.key}")


@dataclass
class HubToken:
    """`hub` sends the requests with the token itself. `problem`: why the token is not as it should be, or ""."""

    hub: Client
    file: Path
    lifetime: float
    store: TokenStore
    log: Log
    now: Callable[[], float] = time.time
    on_renewal: Callable[[bool], None] = lambda _: None
    problem: str = ""
    expires_at: float | None = None
    _stored: TokenClaims | None = field(default=None, repr=False)  # of the last token that was stored

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(min(LOOK_EVERY, self.lifetime / 20))

    async def look(self) -> bool:
        """Renew the token if it is time. True if it was renewed."""
        try:
            claims = self._claims()
            if self.now() < claims.due_at(self.lifetime):
                self.problem = ""
                return False
            new = await tokens.request(self.hub, claims.account, self.lifetime)
            self._stored = tokens.claims(new)
            await self.store.store(new)
        except StowplanError as error:
            self._failed(error)
            return False
        self.problem, self.expires_at = "", self._stored.expires_at
        self.on_renewal(True)
        until = "" if self.expires_at is None else tokens.moment(self.expires_at)
        self.log.info("The token for the hub is renewed", account=claims.account, until=until)
        return True

    def _claims(self) -> TokenClaims:
        """Return the claims of the newest token: that of the file, or one that will be in the file soon."""
        try:
            found = tokens.claims(self.file.read_text(encoding="ascii").strip())
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot be read: {error}", file=str(self.file)) from None
        if self._stored is not None and self._stored.issued_at > found.issued_at:
            found = self._stored
        self.expires_at = found.expires_at
        return found

    def _failed(self, error: StowplanError) -> None:
        self._stored = None
        self.on_renewal(False)
        expired = self.expires_at is not None and self.now() >= self.expires_at
        remedy = "make a new one: kubectl create token" if expired and isinstance(error, WireError) else ""
        self.problem = f"the token for the hub is not renewed: {error}" + (f"; {remedy}" if remedy else "")
        self.log.error(
            "The token for the hub is not renewed", problem=str(error), **({"remedy": remedy} if remedy else {})
        )
