"""HTTP: authorization, limits, watches."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
import yaml

from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.cluster import Embedded
from stowplan.embedded.http.server import MAX_BODY_BYTES
from stowplan.objects.errors import ConfigError

MAPS = "/api/v1/namespaces/default/configmaps"
JSON = {"Content-Type": "application/json"}


def with_cluster(work: Callable[[Embedded, aiohttp.ClientSession], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with Embedded() as cluster, aiohttp.ClientSession() as session:
            result = await work(cluster, session)
            assert cluster.problems == []
            return result

    return asyncio.run(run())


def test_nothing_but_loopback_without_a_token() -> None:
    async def run() -> None:
        with pytest.raises(ConfigError, match="without a token"):
            await Embedded().start("0.0.0.0")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("header", "status"),
    [
        pytest.param({}, 401, id="no token"),
        pytest.param({"Authorization": "Bearer wrong"}, 401, id="a wrong token"),
        pytest.param({"Authorization": "Bearer secret"}, 200, id="the right token"),
    ],
)
def test_a_token_is_required(header: dict[str, str], status: int) -> None:
    async def run() -> None:
        cluster = Embedded()
        url = await cluster.start(token="secret")
        try:
            config = yaml.safe_load(cluster.kubeconfig())
            assert config["users"][0]["user"] == {"token": "secret"}
            async with aiohttp.ClientSession() as session, session.get(f"{url}/api/v1/pods", headers=header) as answer:
                assert answer.status == status
                assert (await answer.json())["kind"] in ("Status", "PodList")
        finally:
            await cluster.stop()

    asyncio.run(run())


@pytest.mark.parametrize("chunked", [False, True], ids=["with its length told", "in chunks"])
def test_a_body_can_be_too_large(chunked: bool) -> None:
    async def work(cluster: Embedded, session: aiohttp.ClientSession) -> None:
        async def chunks() -> Any:
            for _ in range(4):
                yield b"x" * (MAX_BODY_BYTES // 3)

        body: Any = chunks() if chunked else io.BytesIO(b"x" * (MAX_BODY_BYTES + 1))
        async with session.post(cluster.url + MAPS, data=body, headers=JSON) as answer:
            found = await answer.json()
        assert (answer.status, found["reason"]) == (413, "RequestEntityTooLarge")

    with_cluster(work)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a":' * 5000 + b"1" + b"}" * 5000, id="too deep"),
        pytest.param(
            b'{"metadata": {"name": "x"}, "data": {"a": 123456789012345678901234567890}}', id="too large a number"
        ),
        pytest.param(b'{"metadata": {"name": "\xff"}}', id="no UTF-8"),
        pytest.param(b'{"metadata": {"name": "\\ud800"}}', id="half a character"),
    ],
)
def test_odd_bodies_are_the_clients_mistake(body: bytes) -> None:
    async def work(cluster: Embedded, session: aiohttp.ClientSession) -> None:
        async with session.post(cluster.url + MAPS, data=body, headers=JSON) as answer:
            assert answer.status == 400
            assert (await answer.json())["kind"] == "Status"

    with_cluster(work)


def test_warnings_are_headers() -> None:
    async def work(cluster: Embedded, session: aiohttp.ClientSession) -> list[str]:
        body = {"metadata": {"name": "x"}, "odd": 1}
        async with session.post(cluster.url + MAPS, data=json.dumps(body), headers=JSON) as answer:
            return answer.headers.getall("Warning")

    assert with_cluster(work) == ['299 - "unknown field \\"odd\\""']


def test_a_deployment_comes_to_life() -> None:
    """Controllers run with the server: pods are created, although there is no scheduler."""

    async def work(cluster: Embedded, session: aiohttp.ClientSession) -> int:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        deployment = {"metadata": {"name": "d"}, "spec": spec}
        path = "/apis/apps/v1/namespaces/default/deployments"
        async with session.post(cluster.url + path, data=json.dumps(deployment), headers=JSON) as answer:
            assert answer.status == 201
        seen = 0
        query = "watch=1&resourceVersion=0&timeoutSeconds=60"
        async with session.get(f"{cluster.url}/api/v1/pods?{query}") as response:
            async for _ in response.content:
                seen += 1
                if seen == 3:
                    break
        return seen

    assert with_cluster(work) == 3


def test_it_can_be_started_again() -> None:
    async def run() -> None:
        cluster = Embedded()
        for _ in range(2):
            await cluster.start()
            async with aiohttp.ClientSession() as session, session.get(f"{cluster.url}/readyz") as answer:
                assert await answer.text() == "ok"
            await cluster.stop()

    asyncio.run(run())


def test_a_change_in_the_moment_it_is_stopped_does_not_keep_it_running() -> None:
    async def run() -> None:
        cluster = Embedded(start_seconds=60.0)
        pods = cluster.api.catalogue.find("", "v1", "pods")
        assert pods is not None
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
        now = RequestOptions(time.time(), "Ignore")
        await cluster.start()
        cluster.api.create(pods, "default", {"metadata": {"name": "first"}, "spec": spec}, now)
        async with asyncio.timeout(60):
            # Until the controllers are idle, with something to do in a minute.
            while cluster.controllers.next_deadline() is None:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        cluster.api.create(
            pods, "default", {"metadata": {"name": "second"}, "spec": spec}, RequestOptions(time.time(), "Ignore")
        )
        async with asyncio.timeout(30):  # less than that minute
            await cluster.stop()

    asyncio.run(run())
