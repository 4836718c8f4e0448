"""Keeps the token for the hub young: a TokenRequest when half of its life is over.

    tokenFile of the hub's kubeconfig ─► claims ─► due? ─► TokenRequest on the hub ─► the Secret, or the file itself
            ▲                                                                              │
            └────────── the kubelet writes the file of a Secret, within about a minute ────┘

The present token stays valid, so a crash at any moment loses nothing: whatever was stored is used. If the hub is away
until the token has expired, somebody has to make one again; readiness and log say so. They also say if a new token does
not come into the file: it is another Secret, or a mount by subPath, which the kubelet never updates.
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
FILE_WITHIN = 180.0  # seconds from the Secret to the file


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
    """`hub` sends the requests with the token itself. `problem`: why the token is not as it should be, or "".

    `expires_at` is that of the token in the file, the one that is in use.
    """

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
    _behind_since: float | None = field(default=None, repr=False)  # a newer token than the file's was stored

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(min(LOOK_EVERY, self.lifetime / 20))

    async def look(self) -> bool:
        """Renew the token if it is time. True if it was renewed."""
        try:
            in_file = self._in_file()
            newest = in_file if self._stored is None or not self._is_behind(in_file) else self._stored
            if self.now() < newest.due_at(self.lifetime, requested=newest == self._stored):
                self._say(self._lag(in_file))
                return False
            new = await tokens.request(self.hub, newest.account, self.lifetime)
            given = tokens.claims(new)
            await self.store.store(new)
            self._stored = given
            in_file = self._in_file()
        except StowplanError as error:
            self._failed(error)
            return False
        self._say(self._lag(in_file))
        self.on_renewal(True)
        until = "" if given.expires_at is None else tokens.moment(given.expires_at)
        self.log.info("The token for the hub is renewed", account=newest.account, until=until)
        return True

    def _in_file(self) -> TokenClaims:
        """Return the claims of the token that is in use."""
        try:
            found = tokens.claims(self.file.read_text(encoding="ascii").strip())
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot be read: {error}", file=str(self.file)) from None
        self.expires_at = found.expires_at
        return found

    def _is_behind(self, in_file: TokenClaims) -> bool:
        return self._stored is not None and in_file.issued_at < self._stored.issued_at

    def _lag(self, in_file: TokenClaims) -> str:
        """Return what is wrong if the file still has an old token, long after a new one was stored; else ""."""
        if not self._is_behind(in_file):
            self._behind_since = None
            return ""
        if self._behind_since is None:
            self._behind_since = self.now()
        if self.now() - self._behind_since <= FILE_WITHIN:
            return ""
        since = tokens.moment(self._behind_since)
        until = "" if in_file.expires_at is None else f", which is valid until {tokens.moment(in_file.expires_at)}"
        remedy = "mount the Secret of --hub-token-secret as a folder, without subPath"
        return f"{self.file}: a new token was stored at {since}, and the file has the old one{until}; {remedy}"

    def _say(self, problem: str) -> None:
        """Set the problem; a new one is logged."""
        if problem and problem != self.problem:
            self.log.error("The new token for the hub is not in its file", problem=problem)
        self.problem = problem

    def _failed(self, error: StowplanError) -> None:
        self.on_renewal(False)
        expired = self.expires_at is not None and self.now() >= self.expires_at
        remedy = "make a new one: kubectl create token" if expired and isinstance(error, WireError) else ""
        self.problem = f"the token for the hub is not renewed: {error}" + (f"; {remedy}" if remedy else "")
        self.log.error(
            "The token for the hub is not renewed", problem=str(error), **({"remedy": remedy} if remedy else {})
        )
