"""The token for the hub is renewed in time, and stored before anything depends on it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stowplan.apps.logging import Log
from stowplan.apps.score_agent.hub_token import HubToken, TokenFile, TokenSecret
from stowplan.kube.client import Client
from stowplan.kube.responses import Response, UnreachableError
from tests.kube.test_service_account_tokens import a_token

ACCOUNT = "system:serviceaccount:cluster1:stowplan-scores"
HOUR = 3600.0


@dataclass
class FakeServer:
    """The hub's answer to TokenRequests; it takes patches of Secrets, too."""

    clock: Callable[[], float]
    status: int = 201
    life: float = HOUR
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    expects_objects = False

    async def request(self, method: str, path: str, *, body: bytes = b"", **_: Any) -> Response:
        self.asked.append((method, path, json.loads(body)))
        if self.status == 0:
            raise UnreachableError("no answer")
        document: dict[str, Any] = {"kind": "Status", "message": "no"}
        if self.status < 300:
            token = a_token(sub=ACCOUNT, iat=self.clock(), exp=self.clock() + self.life, n=len(self.asked))
            document = {"kind": "TokenRequest", "status": {"token": token}}
        return Response(self.status, [], json.dumps(document).encode())


class World:
    def __init__(self, folder: Path) -> None:
        self.now, self.file, self.said = 1000.0, folder / "token", io.StringIO()
        self.server = FakeServer(lambda: self.now)
        self.renewals: list[bool] = []
        client = Client(self.server)  # type: ignore[arg-type]
        self.token = HubToken(
            client, self.file, HOUR, TokenFile(self.file), Log(stream=self.said), lambda: self.now, self.renewals.append
        )

    def give(self, *, issued: float, expires: float, sub: str = ACCOUNT) -> None:
        self.file.write_text(a_token(sub=sub, iat=issued, exp=expires) + "\n")

    def look(self) -> bool:
        return asyncio.run(self.token.look())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_young_token_stays(world: World) -> None:
    world.give(issued=0, expires=HOUR)
    assert not world.look() and world.server.asked == [] and world.token.problem == ""
    assert world.token.expires_at == HOUR


def test_half_of_its_life_is_over(world: World) -> None:
    world.give(issued=0, expires=HOUR)
    world.now = HOUR / 2
    assert world.look() and world.renewals == [True]
    ((method, path, body),) = world.server.asked
    assert (method, path) == ("POST", "/api/v1/namespaces/cluster1/serviceaccounts/stowplan-scores/token")
    assert (body["kind"], body["spec"]) == ("TokenRequest", {"expirationSeconds": 3600})
    assert world.token.expires_at == HOUR / 2 + HOUR
    assert oct(world.file.stat().st_mode & 0o777) == "0o600" and len(list(world.file.parent.iterdir())) == 1
    assert not world.look(), "the new one is young"
    world.now += HOUR / 2
    assert world.look(), "and is renewed in its turn"


def test_a_token_for_a_year_is_replaced_at_once(world: World) -> None:
    world.give(issued=0, expires=8760 * HOUR)
    assert world.look()
    assert world.token.expires_at == 1000 + HOUR


@pytest.mark.parametrize("status", [0, 403, 500])
def test_a_hub_that_gives_none_is_asked_again(world: World, status: int) -> None:
    world.give(issued=0, expires=HOUR)
    world.now, world.server.status = HOUR / 2, status
    assert not world.look() and world.renewals == [False]
    assert world.token.problem.startswith("the token for the hub is not renewed: ")
    assert "kubectl" not in world.token.problem, "it is still valid"
    world.server.status = 201
    assert world.look() and world.token.problem == ""


def test_a_token_that_has_expired_needs_somebody(world: World) -> None:
    world.give(issued=0, expires=HOUR)
    world.now, world.server.status = 2 * HOUR, 401
    world.look()
    assert world.token.problem.endswith("make a new one: kubectl create token")
    assert '"The token for the hub is not renewed"' in world.said.getvalue()


@pytest.mark.parametrize("content", [None, "", "no token at all", a_token(sub="jane", iat=0, exp=1)])
def test_files_that_cannot_be_used(world: World, content: str | None) -> None:
    if content is not None:
        world.file.write_text(content)
    assert not world.look() and world.token.problem and world.server.asked == []


def test_a_file_that_cannot_be_written(world: World, tmp_path: Path) -> None:
    world.give(issued=0, expires=HOUR)
    world.token.store = TokenFile(tmp_path / "nowhere" / "token")
    world.now = HOUR / 2
    assert not world.look()
    assert "cannot be written: No such file or directory" in world.token.problem


def test_a_secret_is_patched_and_its_file_may_come_later(world: World) -> None:
    """The kubelet takes its time. Until then the old token is used, and no other one is asked for."""
    world.give(issued=0, expires=HOUR)
    own = FakeServer(lambda: world.now)
    world.token.store = TokenSecret(Client(own), "stowplan-scores/hub-kubeconfig", "token")  # type: ignore[arg-type]
    world.now = HOUR / 2
    assert world.look()
    ((method, path, body),) = own.asked
    assert (method, path) == ("PATCH", "/api/v1/namespaces/stowplan-scores/secrets/hub-kubeconfig")
    assert list(body["data"]) == ["token"]
    world.now += 60
    assert not world.look() and len(world.server.asked) == 1
    own.status = 403
    world.now += HOUR / 2
    assert not world.look() and "403" in world.token.problem
    own.status = 200
    assert world.look()


def test_a_server_may_give_longer_tokens_than_it_is_asked_for(world: World) -> None:
    world.give(issued=0, expires=HOUR)
    world.now, world.server.life = HOUR / 2, 24 * HOUR
    assert world.look()
    for _ in range(11 * 60):
        world.now += 60
        assert not world.look()
    world.now += 2 * HOUR
    assert world.look(), "half of the life that it has"


def test_a_new_token_that_does_not_come_into_the_file(world: World) -> None:
    """The Secret is mounted by subPath, say. What is in use is the token of the file."""
    world.give(issued=0, expires=HOUR)
    old, own = world.file.read_text(), FakeServer(lambda: world.now)
    world.token.store = TokenSecret(Client(own), "stowplan-scores/hub-kubeconfig", "token")  # type: ignore[arg-type]
    world.now = HOUR / 2
    assert world.look() and world.token.problem == "" and world.token.expires_at == HOUR
    world.now += 180
    assert not world.look() and world.token.problem == "", "the kubelet takes its time"
    world.now += 1
    assert not world.look() and len(world.server.asked) == 1
    assert world.token.problem == (
        f"{world.file}: a new token was stored at 1970-01-01T00:30:00Z, and the file has the old one, which is valid"
        " until 1970-01-01T01:00:00Z; mount the Secret of --hub-token-secret as a folder, without subPath"
    )
    assert world.token.expires_at == HOUR
    world.now += HOUR / 2
    assert world.look() and world.token.problem, "another new one helps nothing"
    assert world.said.getvalue().count("is not in its file") == 1
    world.give(issued=world.now, expires=world.now + HOUR)
    assert not world.look() and world.token.problem == "" and world.file.read_text() != old
