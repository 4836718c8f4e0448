"""Watches: events, their order, shared encoding."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from stowplan.embedded.cluster import Embedded
from stowplan.embedded.errors import ApiError
from stowplan.embedded.http.handlers import Handlers
from stowplan.embedded.http.requests import Request
from stowplan.embedded.http.watches import EmbeddedWatch
from stowplan.kube.resources import FINISHED, UNFINISHED
from stowplan.objects.applications import POD_GROUP
from tests.embedded.kubectl_manifests import DEFINITION
from tests.embedded.virtual_cluster import VirtualCluster

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


@pytest.fixture
def world() -> VirtualCluster:
    return VirtualCluster(controllers=False, keep=10)


def watch(
    world: VirtualCluster, path: str = MAPS, accept: str = "", **query: str
) -> tuple[EmbeddedWatch, list[dict[str, Any]]]:
    handlers = Handlers(world.api, lambda: world.now)
    found = handlers.answer(Request("GET", path, {"watch": "1", **query}, accept))
    assert isinstance(found, tuple)
    return found[0], lines(found[1])


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def told(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def test_a_watch_begins_after_the_version_it_names(world: VirtualCluster) -> None:
    world.create(config_map("before"))
    started, first = watch(world, resourceVersion=str(world.store.version))
    world.create(config_map("after"))
    assert first == []
    assert told(lines(started.take())) == [("ADDED", "after")]
    assert started.take() == b""


@pytest.mark.parametrize("version", ["", "0"])
def test_without_a_version_it_begins_with_what_there_is(world: VirtualCluster, version: str) -> None:
    world.create(config_map("there"))
    _, first = watch(world, resourceVersion=version)
    assert told(first) == [("ADDED", "there")]


def test_a_selector_turns_changes_into_arrivals_and_departures(world: VirtualCluster) -> None:
    started, _ = watch(world, labelSelector="a=b", resourceVersion=str(world.store.version))
    made = world.create(config_map("x"))
    made = world.update({**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}})
    made = world.update({**made, "data": {"k": "v"}})
    world.update({**made, "metadata": {**made["metadata"], "labels": {"a": "c"}}})
    world.delete("configmaps", "default/x")
    assert told(lines(started.take())) == [("ADDED", "x"), ("MODIFIED", "x"), ("DELETED", "x")]


def test_a_pod_that_ends_goes_from_one_watch_to_another(world: VirtualCluster) -> None:
    """The watch that it leaves is told of the version before, at the resource version of now."""
    version, every = str(world.store.version), "/api/v1/pods"
    going, _ = watch(world, every, fieldSelector=UNFINISHED, resourceVersion=version)
    ended, _ = watch(world, every, fieldSelector=FINISHED, labelSelector=POD_GROUP, resourceVersion=version)
    spec = {"containers": [{"name": "c", "image": "x"}]}
    for name, labels in (("of-a-group", {POD_GROUP: "g"}), ("alone", {})):
        made = world.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
        )
        for phase in ("Running", "Succeeded"):
            made = world.update({**made, "status": {**made["status"], "phase": phase}}, "status")
    left = [event for event in lines(going.take()) if event["type"] == "DELETED"]
    assert [(event["object"]["metadata"]["name"], event["object"]["status"]["phase"]) for event in left] == [
        ("of-a-group", "Running"),
        ("alone", "Running"),
    ]
    (came,) = lines(ended.take())
    assert (came["type"], came["object"]["status"]["phase"]) == ("ADDED", "Succeeded")
    assert came["object"]["metadata"]["resourceVersion"] == left[0]["object"]["metadata"]["resourceVersion"]


def test_other_namespaces_are_left_out(world: VirtualCluster) -> None:
    started, _ = watch(world, resourceVersion=str(world.store.version))
    everywhere, _ = watch(world, "/api/v1/configmaps", resourceVersion=str(world.store.version))
    world.create({**config_map("x"), "metadata": {"name": "x", "namespace": "kube-system"}})
    assert started.take() == b""
    assert told(lines(everywhere.take())) == [("ADDED", "x")]


def test_one_object_can_be_watched(world: VirtualCluster) -> None:
    started, _ = watch(world, fieldSelector="metadata.name=x", resourceVersion=str(world.store.version))
    world.create(config_map("y"))
    world.create(config_map("x"))
    assert told(lines(started.take())) == [("ADDED", "x")]


def test_what_is_forgotten_cannot_be_watched(world: VirtualCluster) -> None:
    for number in range(25):
        world.create(config_map(f"c{number}"))
    with pytest.raises(ApiError) as refused:
        watch(world, resourceVersion="8")
    assert (refused.value.code, refused.value.reason) == (410, "Expired")
    assert refused.value.message.startswith("too old resource version: 8")


def test_a_watch_that_is_too_slow_gets_410(world: VirtualCluster) -> None:
    started, _ = watch(world, resourceVersion=str(world.store.version))
    for number in range(25):
        world.create(config_map(f"c{number}"))
    with pytest.raises(ApiError) as refused:
        started.take()
    assert refused.value.code == 410


def test_initial_events_end_with_a_bookmark(world: VirtualCluster) -> None:
    world.create(config_map("x"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    _, first = watch(world, **query)
    assert told(first) == [("ADDED", "x"), ("BOOKMARK", "")]
    assert first[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert first[1]["object"]["metadata"]["resourceVersion"] == str(world.store.version)


def test_rows_of_a_table_have_their_headings_once(world: VirtualCluster) -> None:
    started, _ = watch(world, accept=TABLE, resourceVersion=str(world.store.version))
    world.create(config_map("x"))
    world.create(config_map("y"))
    first, second = lines(started.take())
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["cells"][0] == "y"


def test_events_are_encoded_once_for_all_watchers(world: VirtualCluster) -> None:
    watches = [watch(world, resourceVersion=str(world.store.version))[0] for _ in range(3)]
    world.create(config_map("x"))
    assert len({one.take() for one in watches}) == 1
    stored = world.store.stored("configmaps", "default/x")
    assert stored is not None
    assert list(stored.json) == ["v1"]


def test_a_hundred_watchers_lose_no_event() -> None:
    wanted = [f"c{number:03}" for number in range(300)]

    async def collect(session: aiohttp.ClientSession, url: str) -> list[str]:
        names: list[str] = []
        async with session.get(f"{url}{MAPS}?watch=1&resourceVersion=0&labelSelector=w") as response:
            async for line in response.content:
                names.append(json.loads(line)["object"]["metadata"]["name"])
                if len(names) == len(wanted):
                    break
        return names

    async def run() -> None:
        connector = aiohttp.TCPConnector(limit=0)
        async with Embedded() as cluster, aiohttp.ClientSession(connector=connector) as session:
            watchers = [asyncio.create_task(collect(session, cluster.url)) for _ in range(100)]
            for name in wanted:  # some of them before all watchers are connected
                body = config_map(name, w="x")
                async with session.post(cluster.url + MAPS, json=body) as answer:
                    assert answer.status == 201
            async with asyncio.timeout(120):
                found = await asyncio.gather(*watchers)
            assert all(names == wanted for names in found)
            assert cluster.problems == []

    asyncio.run(run())


def test_a_watch_ends_in_time_with_a_last_bookmark() -> None:
    async def run() -> list[dict[str, Any]]:
        async with Embedded() as cluster, aiohttp.ClientSession() as session:
            query = "watch=1&resourceVersion=0&timeoutSeconds=1&allowWatchBookmarks=true"
            async with session.get(f"{cluster.url}{MAPS}?{query}") as response:
                return lines(await response.read())

    assert [event["type"] for event in asyncio.run(run())] == ["BOOKMARK"]


def test_a_watch_ends_with_its_kind() -> None:
    async def run() -> bytes:
        async with Embedded(with_controllers=False) as cluster, aiohttp.ClientSession() as session:
            definitions = f"{cluster.url}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            headers = {"Content-Type": "application/yaml"}
            async with session.post(definitions, data=DEFINITION, headers=headers) as answer:
                assert answer.status == 201
            async with session.get(f"{cluster.url}/apis/example.io/v1/widgets?watch=1") as response:
                async with session.delete(f"{definitions}/widgets.example.io") as answer:
                    assert answer.status == 200
                async with asyncio.timeout(60):
                    return await response.read()

    assert asyncio.run(run()) == b""
