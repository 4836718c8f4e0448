"""The writer with an embedded hub: requests, conflicts, refusals."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from stowplan.embedded.cluster import Embedded
from stowplan.kube import action_requests, credentials
from stowplan.kube.client import Client
from stowplan.kube.resources import RESOURCES
from stowplan.kube.responses import RefusedError, Response
from stowplan.kube.transport import Transport
from stowplan.objects.clusters import AddOnPlacementScore
from stowplan.objects.errors import ConfigError
from stowplan.scores import Outcome, ScoreWriter, Validity

SCORES = RESOURCES["AddOnPlacementScore"].at("v1alpha1")
BEGINNING = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
FOREIGN = {
    "type": "Reviewed", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
}  # fmt: skip


class Recording(Transport):
    """Notes what is sent."""

    def __init__(self, access: credentials.Access) -> None:
        super().__init__(access, generator=random.Random(1))
        self.sent: list[str] = []

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if not path.endswith("/v1alpha1"):  # what is served
            self.sent.append(f"{method} {path.rpartition('/')[2]}")
        return await super().request(method, path, **options)


class Hub:
    """An embedded cluster with the namespace of one managed cluster, a clock, and a writer."""

    def __init__(self, client: Client, transport: Recording) -> None:
        self.client, self.transport = client, transport
        self.now = BEGINNING
        self.writer = self.a_writer()

    def a_writer(self, **options: Any) -> ScoreWriter:
        return ScoreWriter(self.client, validity=Validity(600, 180, 0.1), now=lambda: self.now, **options)

    async def status(self) -> Any:
        return json.loads((await self.client.get(SCORES, "cluster1/default")).body).get("status")

    async def meddle(self, **status: Any) -> None:
        """Somebody else writes."""
        await self.client.patch(SCORES, "cluster1/default", {"status": status}, subresource="status")

    def take_sent(self) -> list[str]:
        sent, self.transport.sent = self.transport.sent, []
        return sent


@asynccontextmanager
async def a_hub(folder: Path) -> AsyncIterator[Hub]:
    async with Embedded(with_controllers=False) as cluster:
        (folder / "kubeconfig").write_text(cluster.kubeconfig())
        transport = Recording(credentials.load(str(folder / "kubeconfig")))
        client = Client(transport)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cluster1"}}
        assert (await client.create(RESOURCES["Namespace"], "", namespace)).status == 201
        transport.sent.clear()
        yield Hub(client, transport)
        await client.close()
        assert cluster.problems == []


def story(told: Callable[[Hub], Awaitable[None]]) -> Callable[[Path], None]:
    """A coroutine about a hub as a test."""

    def test(tmp_path: Path) -> None:
        async def run() -> None:
            async with asyncio.timeout(60), a_hub(tmp_path) as hub:
                await told(hub)

        asyncio.run(run())

    return test


@story
async def test_an_object_is_made_and_then_its_status(hub: Hub) -> None:
    assert await hub.writer.publish("cluster1", {"cpu": 66, "mem": 0}) is Outcome.WRITTEN
    assert hub.take_sent() == ["GET default", "POST addonplacementscores", "PATCH status"]
    status = await hub.status()
    assert status["scores"] == [{"name": "cpu", "value": 66}, {"name": "mem", "value": 0}]
    until = datetime.fromisoformat(status["validUntil"])
    assert BEGINNING + timedelta(seconds=540) <= until <= BEGINNING + timedelta(seconds=600)
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == ("AddOnPlacementScoreUpdated", "True")


@story
async def test_what_did_not_change_is_not_sent_until_it_would_expire(hub: Hub) -> None:
    await hub.writer.publish("cluster1", {"cpu": 1})
    first = (await hub.status())["validUntil"]
    hub.take_sent()
    hub.now += timedelta(seconds=300)
    assert await hub.writer.publish("cluster1", {"cpu": 1}) is Outcome.UNCHANGED
    assert hub.take_sent() == ["GET default"], "and with a watch not even that"
    hub.now += timedelta(seconds=150)
    assert await hub.writer.publish("cluster1", {"cpu": 1}) is Outcome.REFRESHED
    status = await hub.status()
    assert status["validUntil"] > first
    assert status["conditions"][0]["lastTransitionTime"] == "2026-01-01T12:00:00Z"


@story
async def test_with_a_watch_nothing_is_read(hub: Hub) -> None:
    await hub.writer.publish("cluster1", {"cpu": 1})
    found = await hub.writer.read("cluster1")
    hub.take_sent()
    watched = hub.a_writer(known=lambda _: found)
    assert await watched.publish("cluster1", {"cpu": 1}) is Outcome.UNCHANGED
    assert hub.take_sent() == []
    assert await watched.publish("cluster1", {"cpu": 2}) is Outcome.WRITTEN
    assert hub.take_sent() == ["PATCH status"]


@story
async def test_who_was_overtaken_looks_again(hub: Hub) -> None:
    await hub.writer.publish("cluster1", {"cpu": 1})
    stale = await hub.writer.read("cluster1")
    await hub.meddle(conditions=[FOREIGN])
    hub.take_sent()
    assert await hub.a_writer(known=lambda _: stale).publish("cluster1", {"cpu": 2}) is Outcome.WRITTEN
    assert hub.take_sent() == ["PATCH status", "GET default", "PATCH status"]
    status = await hub.status()
    assert status["scores"] == [{"name": "cpu", "value": 2}]
    assert [each["type"] for each in status["conditions"]] == ["Reviewed", "AddOnPlacementScoreUpdated"]


@story
async def test_scores_that_another_writer_wrote_are_not_written_again(hub: Hub) -> None:
    await hub.writer.publish("cluster1", {"cpu": 1})
    stale = await hub.writer.read("cluster1")
    await hub.writer.publish("cluster1", {"cpu": 2})
    hub.take_sent()
    assert await hub.a_writer(known=lambda _: stale).publish("cluster1", {"cpu": 2}) is Outcome.UNCHANGED
    assert hub.take_sent() == ["PATCH status", "GET default"]


@story
async def test_an_object_that_came_or_went_meanwhile(hub: Hub) -> None:
    await hub.writer.publish("cluster1", {"cpu": 1})
    stale = await hub.writer.read("cluster1")
    hub.take_sent()
    assert await hub.a_writer(known=lambda _: None).publish("cluster1", {"cpu": 2}) is Outcome.WRITTEN
    assert hub.take_sent() == ["POST addonplacementscores", "GET default", "PATCH status"]
    await hub.client.send(action_requests.delete(SCORES, "cluster1/default"))
    hub.take_sent()
    assert await hub.a_writer(known=lambda _: stale).publish("cluster1", {"cpu": 3}) is Outcome.WRITTEN
    assert hub.take_sent() == ["PATCH status", "GET default", "POST addonplacementscores", "PATCH status"]


@story
async def test_repeated_conflicts_are_reported(hub: Hub) -> None:
    await hub.writer.publish("cluster1", {"cpu": 1})
    numbers = iter(range(100))
    read = hub.writer.read

    async def meddled(cluster: str) -> AddOnPlacementScore | None:
        found = await read(cluster)
        await hub.meddle(scores=[{"name": "cpu", "value": next(numbers)}])
        return found

    hub.writer.read = meddled  # type: ignore[method-assign]
    with pytest.raises(RefusedError, match=r"cluster1/default: 409 still a conflict after 5 attempts"):
        await hub.writer.publish("cluster1", {"cpu": -1})


@story
async def test_for_ever_takes_the_end_away(hub: Hub) -> None:
    await hub.writer.publish("cluster1", {"cpu": 1})
    forever = ScoreWriter(hub.client, validity=Validity(None), now=lambda: hub.now)
    assert await forever.publish("cluster1", {"cpu": 1}) is Outcome.REFRESHED
    assert "validUntil" not in await hub.status()
    assert await forever.publish("cluster1", {"cpu": 1}) is Outcome.UNCHANGED


@story
async def test_a_failure_is_written_once(hub: Hub) -> None:
    assert await hub.writer.fail("cluster1", "NoValue", "nothing") is Outcome.UNCHANGED
    assert await hub.writer.read("cluster1") is None, "for that alone no object is made"
    await hub.writer.publish("cluster1", {"cpu": 1})
    before = await hub.status()
    assert await hub.writer.fail("cluster1", "NoValue", "nothing") is Outcome.REFRESHED
    status = await hub.status()
    assert (status["scores"], status["validUntil"]) == (before["scores"], before["validUntil"])
    assert (status["conditions"][0]["status"], status["conditions"][0]["message"]) == ("False", "nothing")
    assert await hub.writer.fail("cluster1", "NoValue", "nothing") is Outcome.UNCHANGED


@story
async def test_refusals_are_raised(hub: Hub) -> None:
    with pytest.raises(RefusedError, match='namespaces "elsewhere" not found'):
        await hub.writer.publish("elsewhere", {"cpu": 1})
    with pytest.raises(RefusedError, match=r"422 .*status\.scores\[0\]\.value"):
        await hub.writer.publish("cluster1", {"cpu": 101})


@story
async def test_a_hub_without_the_definition(hub: Hub) -> None:
    definitions = RESOURCES["Node"].__class__(
        "CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io", namespaced=False
    )
    name = "addonplacementscores.cluster.open-cluster-management.io"
    await hub.client.send(action_requests.delete(definitions, name))
    with pytest.raises(
        ConfigError, match=r"the hub has no AddOnPlacementScore .* kubectl apply -k deploy/crds/placement/"
    ):
        await hub.writer.publish("cluster1", {"cpu": 1})
