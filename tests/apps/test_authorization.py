"""Authorization of a client of the pages: what the API server is asked, what follows, and for how long it is cached."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from typing import Any

import pytest
from aiohttp import web

from stowplan.apps import reviews
from stowplan.apps.authorization import CACHED_FOR, Authorizer, Refusal, ResourceAttributes
from tests.kube.fakes import Fake, a_client, serving

PLACEMENT = {"verb": "get", "group": "cluster.open-cluster-management.io", "resource": "placements", "namespace": "ns"}


class ApiServer:
    """Knows one token, and allows what a test lets it."""

    def __init__(self) -> None:
        self.allowed, self.status = True, 201
        self.user: dict[str, Any] = {"username": "jane", "groups": ["dev"], "uid": "7", "extra": {"scopes": ["a"]}}

    async def answer(self, request: web.BaseRequest) -> web.Response:
        asked = json.loads(await request.read())
        if asked["kind"] == "TokenReview":
            known = asked["spec"]["token"] == "secret"
            status: dict[str, Any] = {"authenticated": known, "user": self.user if known else {}}
        else:
            status = {"allowed": self.allowed}
        return web.json_response({"kind": "Review", "status": status}, status=self.status)


class Scene:
    def __init__(self) -> None:
        self.server, self.now = ApiServer(), 0.0
        self.fake: Fake

    def ask(self, *questions: tuple[str, ResourceAttributes | None, float]) -> list[Refusal | None]:
        """Ask for /metrics with each Authorization header, about a resource, at a time."""

        async def story() -> list[Refusal | None]:
            async with serving(self.server.answer) as self.fake, a_client(self.fake) as client:
                authorizer = Authorizer(client, client, clock=lambda: self.now)
                answers = []
                for header, resource, self.now in questions:
                    answers.append(await authorizer.refusal(header, "/metrics", resource))
                return answers

        return asyncio.run(story())

    @property
    def specs(self) -> list[dict[str, Any]]:
        return [body["spec"] for _, _, body in self.fake.asked]


def test_a_user_with_the_right_to_the_path() -> None:
    scene = Scene()
    assert scene.ask(("Bearer secret", None, 0.0)) == [None]
    token, access = scene.specs
    assert token == {"token": "secret"}
    user = {"user": "jane", "groups": ["dev"], "uid": "7", "extra": {"scopes": ["a"]}}
    assert access == user | {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}


def test_a_user_with_few_attributes() -> None:
    scene = Scene()
    scene.server.user = {"username": "jane", "groups": None}
    assert scene.ask(("bearer secret", PLACEMENT, 0.0)) == [None]
    user = {"user": "jane", "groups": [], "uid": "", "extra": {}}
    assert scene.specs[1] == user | {"resourceAttributes": PLACEMENT}


def test_a_user_without_the_right() -> None:
    scene = Scene()
    scene.server.allowed = False
    path, resource = scene.ask(("Bearer secret", None, 0.0), ("Bearer secret", PLACEMENT, 0.0))
    assert path == (403, 'forbidden: User "jane" cannot get path "/metrics"')
    assert resource is not None and resource[0] == 403 and 'get resource "placements" in API group' in resource[1]


def test_an_unknown_token_and_none() -> None:
    scene = Scene()
    assert scene.ask(("Bearer other", None, 0.0), ("", None, 0.0)) == [(401, "Unauthorized"), None]
    assert scene.specs[-1]["user"] == "system:anonymous" and scene.specs[-1]["groups"] == ["system:unauthenticated"]


def test_answers_are_cached_for_ten_seconds() -> None:
    scene = Scene()
    scene.ask(*(("Bearer secret", None, at) for at in (0.0, 9.9)))
    assert len(scene.specs) == 2
    scene.ask(*(("Bearer secret", None, at) for at in (0.0, 10.0)))
    assert len(scene.specs) == 4


def test_an_api_server_that_refuses_the_review() -> None:
    scene = Scene()
    scene.server.status = 403
    (refused,) = scene.ask(("Bearer secret", None, 0.0))
    assert refused is not None and refused[0] == 500 and refused[1].startswith("the API server did not answer: Token")


def test_a_known_token_does_not_wait_behind_strangers() -> None:
    server, go = ApiServer(), asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.Response:
        if json.loads(await request.read())["spec"].get("user") == "system:anonymous":
            await go.wait()
        return await server.answer(request)

    async def story() -> None:
        now = 0.0
        async with serving(answer) as fake, a_client(fake, connections=reviews.CONNECTIONS) as client:
            authorizer = Authorizer(client, client, clock=lambda: now)
            assert await authorizer.refusal("Bearer secret", "/metrics") is None
            now = CACHED_FOR
            crowd = [asyncio.create_task(authorizer.refusal("", f"/{number}")) for number in range(100)]
            crowded = await asyncio.gather(*crowd[reviews.AT_ONCE + reviews.MOST_WAITING :])
            assert {each[0] for each in crowded if each is not None} == {503} and len(crowded) == 82
            async with asyncio.timeout(reviews.REVIEW_WITHIN / 2):
                assert await authorizer.refusal("Bearer secret", "/metrics") is None
            go.set()
            assert set(await asyncio.gather(*crowd[: reviews.AT_ONCE + reviews.MOST_WAITING])) == {None}

    asyncio.run(story())


def test_an_api_server_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "REVIEW_WITHIN", 0.1)

    async def story() -> Refusal | None:
        async def hangs(_request: web.BaseRequest) -> web.Response:
            await asyncio.sleep(20)
            raise AssertionError

        async with serving(hangs) as fake, a_client(fake) as client:
            return await Authorizer(client, client).refusal("", "/metrics")

    refused = asyncio.run(story())
    assert refused is not None and refused[0] == 500 and "no review within" in refused[1]


def test_the_cache_holds_neither_paths_nor_tokens() -> None:
    async def story() -> None:
        server = ApiServer()
        server.allowed = False
        async with serving(server.answer) as fake, a_client(fake) as client:
            authorizer = Authorizer(client, client)
            tracemalloc.start()
            for number in range(50):
                refused = await authorizer.refusal("", f"/{number}" + "a" * 100_000)
                assert refused is not None and refused[0] == 403 and refused[1].endswith('a"')
            fake.asked.clear()
            gc.collect()
            kept = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            assert kept < 1_000_000

    asyncio.run(story())
