"""Paths, selectors and discovery."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from stowplan.kube.resources import FINISHED, PODS, RESOURCES, UNFINISHED, ApiResource
from stowplan.kube.responses import RefusedError, UnreachableError
from stowplan.objects import kinds
from stowplan.objects.applications import POD_GROUP
from tests.kube.fakes import a_client, a_stream, answered, refused, serving


@pytest.mark.parametrize(
    ("kind", "key", "subresource", "path"),
    [
        pytest.param("Pod", "ns/a", "", "/api/v1/namespaces/ns/pods/a", id="a core object in a namespace"),
        pytest.param("Pod", "ns/a", "binding", "/api/v1/namespaces/ns/pods/a/binding", id="a subresource"),
        pytest.param("Node", "a", "", "/api/v1/nodes/a", id="one without a namespace"),
        pytest.param("Lease", "ns/a", "", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/a", id="of a group"),
        pytest.param("Node", "a?b#c", "", "/api/v1/nodes/a%3Fb%23c", id="a name that would mean something"),
    ],
)
def test_where_an_object_is(kind: str, key: str, subresource: str, path: str) -> None:
    assert RESOURCES[kind].path(key, subresource) == path


def test_every_kind_is_in_the_table() -> None:
    assert kinds.KINDS.keys() <= RESOURCES.keys()


async def test_pods_that_have_ended_are_not_listed() -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.query["fieldSelector"] == "status.phase!=Succeeded,status.phase!=Failed"
        assert request.query["labelSelector"] == "a in (b,c)"
        assert request.query["limit"] == "500"
        return answered({"items": None, "metadata": {"resourceVersion": "5"}})

    async with serving(handler) as fake, a_client(fake) as client:
        pages = [page async for page in client.list_pages(PODS, namespace="ns", labels="a in (b,c)")]
        assert [page.metadata.resource_version for page in pages] == ["5"]
        assert fake.asked[0][1].startswith("/api/v1/namespaces/ns/pods?")


async def test_the_error_of_a_refused_list_has_the_reason() -> None:
    async def handler(request: web.Request) -> web.Response:
        if request.path.endswith("nodes"):
            return refused(403, 'nodes is forbidden: User "me" cannot list resource "nodes"')
        return web.Response(text="<html>welcome</html>", content_type="text/html")

    async with serving(handler) as fake, a_client(fake) as client:
        with pytest.raises(RefusedError, match=r'GET /api/v1/nodes: 403 nodes is forbidden: User "me" cannot list'):
            _ = [page async for page in client.list_pages(RESOURCES["Node"])]
        with pytest.raises(UnreachableError, match=r"GET /api/v1/pods\?.*: found text/html"):
            _ = [page async for page in client.list_pages(PODS)]


@pytest.mark.parametrize(
    ("serves", "resource", "version"),
    [
        pytest.param({"v1alpha2": ["podgroups"], "v1": []}, RESOURCES["PodGroup"], "v1alpha2", id="an older version"),
        pytest.param(
            {"v1beta1": ["podgroups"], "v1alpha2": ["podgroups"]}, RESOURCES["PodGroup"], "v1beta1", id="both"
        ),
        pytest.param({"v1beta1": ["workloads"]}, RESOURCES["PodGroup"], None, id="the group, but not the kind"),
        pytest.param({}, RESOURCES["PodGroup"], None, id="nothing"),
        pytest.param({"v1alpha1": ["workloadpolicies"]}, RESOURCES["WorkloadPolicy"], "v1alpha1", id="a definition"),
        pytest.param({}, RESOURCES["WorkloadPolicy"], None, id="one version, but its definition is missing"),
        pytest.param(
            {"v2": ["policies"], "v1": ["policies"]},
            ApiResource("Policy", "policies", "scheduling.k8s.io", versions=()),
            "v2",
            id="without known versions, the preferred one of the server",
        ),
    ],
)
async def test_the_served_version_is_found(
    serves: dict[str, list[str]], resource: ApiResource, version: str | None
) -> None:
    async def handler(request: web.Request) -> web.Response:
        last = request.path.rpartition("/")[2]
        if last == "scheduling.k8s.io" and serves:
            return answered({"versions": [{"version": each, "groupVersion": f"x/{each}"} for each in serves]})
        if last in serves:
            return answered({"resources": [{"name": name, "kind": "X"} for name in serves[last]]})
        return refused(404)

    async with serving(handler) as fake, a_client(fake) as client:
        found = await client.served(resource)
        assert (found.versions if found else None) == (None if version is None else (version,))


async def test_kinds_that_every_server_has_need_no_discovery() -> None:
    async with serving(refusing) as fake, a_client(fake) as client:
        assert await client.served(PODS) is PODS
        assert fake.asked == []


async def refusing(request: web.Request) -> web.Response:
    return refused(500)


@pytest.mark.parametrize(
    ("kind", "given", "labels", "fields"),
    [
        pytest.param("Pod", "", None, UNFINISHED, id="pods that have not ended"),
        pytest.param("FinishedMember", "", POD_GROUP, FINISHED, id="pods of groups that have ended"),
        pytest.param("FinishedMember", "a=b", f"{POD_GROUP},a=b", FINISHED, id="some of these"),
        pytest.param("Node", "", None, None, id="all"),
    ],
)
async def test_a_resource_says_which_objects_are_listed_and_watched(
    kind: str, given: str, labels: str | None, fields: str | None
) -> None:
    queries: list[tuple[str | None, str | None]] = []

    async def handler(request: web.Request) -> web.Response:
        queries.append((request.query.get("labelSelector"), request.query.get("fieldSelector")))
        return answered({"kind": "List", "items": [], "metadata": {"resourceVersion": "1"}})

    async with serving(handler) as fake, a_client(fake) as client:
        _ = [page async for page in client.list_pages(RESOURCES[kind], labels=given)]
        async with client.watch(RESOURCES[kind], "1", labels=given):
            pass
    assert queries == [(labels, fields)] * 2


async def test_events_may_come_in_pieces_of_any_size() -> None:
    lines = b"".join(b'{"type": "ADDED", "object": {"metadata": {"name": "n%d"}}}\n' % number for number in range(5))

    async def handler(request: web.Request) -> web.StreamResponse:
        response = a_stream()
        await response.prepare(request)
        for start in range(0, len(lines), 7):
            await response.write(lines[start : start + 7])
            await asyncio.sleep(0)
        return response

    async with serving(handler) as fake, a_client(fake) as client:
        async with client.watch(RESOURCES["Node"], "1") as watch:
            events = [event async for batch in watch.batches() for event in batch]
        assert [bytes(event.object) for event in events] == [
            b'{"metadata": {"name": "n%d"}}' % number for number in range(5)
        ]


async def test_an_event_without_end_breaks_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stowplan.kube.client.MAX_EVENT", 1 << 20)

    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=b"{" * (1 << 22), content_type="application/json")

    async with serving(handler) as fake, a_client(fake) as client, client.watch(RESOURCES["Node"], "1") as watch:
        with pytest.raises(UnreachableError, match="an event is larger than 1 MiB"):
            _ = [batch async for batch in watch.batches()]


async def test_an_event_that_is_not_json_breaks_the_watch() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="what?\n", content_type="application/json")

    async with serving(handler) as fake, a_client(fake) as client, client.watch(RESOURCES["Node"], "1") as watch:
        with pytest.raises(UnreachableError, match="an event cannot be read"):
            _ = [batch async for batch in watch.batches()]
