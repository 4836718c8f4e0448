"""Resources that plugins bring: how they are decoded, what is told of unreadable objects, and how they are written."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from aiohttp import web

from stowplan.kube import resources
from stowplan.kube.client import WatchEvent
from stowplan.kube.reflector_cache import ReflectorCache
from stowplan.kube.writer import Writer
from stowplan.objects.actions import Patch, status_patch
from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.custom_resources import CustomResource
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import ApiValue, Object, ObjectMeta
from tests.kube.fakes import a_client, answered, refused, serving
from tests.kube.test_writer import Notes


class Spec(ApiValue, frozen=True):
    max_pods: int = 0

    def __post_init__(self) -> None:
        if self.max_pods == 13:
            raise ZeroDivisionError("unlucky")


class Budget(Object, frozen=True):
    spec: Spec = Spec()


BUDGETS = resources.custom(
    CustomResource(Budget, group="example.com", version=("v2", "v1"), plural="teambudgets", kind="TeamBudget"),
    "Budgets",
)


def document(pods: Any = 1, *, name: str = "blue", uid: str = "u1", version: int = 1) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    return {"apiVersion": "example.com/v1", "kind": "TeamBudget", "metadata": metadata, "spec": {"maxPods": pods}}


def raw(*arguments: Any, **more: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(document(*arguments, **more)).encode())


def test_it_is_waited_for_at_each_of_its_versions() -> None:
    assert (BUDGETS.kind, BUDGETS.versions, BUDGETS.always_served) == ("Budget", ("v2", "v1"), False)
    assert BUDGETS.at("v1").path("default/blue", "status") == (
        "/apis/example.com/v1/namespaces/default/teambudgets/blue/status"
    )


def test_an_object_is_decoded_into_its_type() -> None:
    found = BUDGETS.decode(raw(3))
    assert isinstance(found, Budget) and (found.key, found.spec.max_pods) == ("default/blue", 3)
    with pytest.raises(ConfigError, match=r"Budget blue: spec.maxPods: expected `int`"):
        BUDGETS.decode(raw("many"))
    with pytest.raises(ConfigError, match="Budget: ZeroDivisionError: unlucky"):
        BUDGETS.decode(raw(13))


@pytest.mark.parametrize(
    ("changes", "matches"),
    [
        pytest.param({}, True, id="itself"),
        pytest.param({"apiVersion": "example.com/v3"}, True, id="another version"),
        pytest.param({"apiVersion": "other.com/v1"}, False, id="another group"),
        pytest.param({"apiVersion": "v1"}, False, id="no group"),
        pytest.param({"kind": "Budget"}, False, id="the name of the type"),
    ],
)
def test_documents_are_known_by_group_and_kind(changes: dict[str, str], matches: bool) -> None:
    assert BUDGETS.matches(document() | changes) is matches


# -- objects that cannot be read


class Cache:
    """A cache that knows one budget with room for three pods."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.cache = ReflectorCache(BUDGETS, self.problems.append)
        self.cache.apply_page([raw(3)], set())

    def event(self, kind: str, *arguments: Any, **more: Any) -> list[Change]:
        return self.cache.apply_event(WatchEvent(kind, raw(*arguments, **more)))

    def known(self) -> dict[str, int]:
        found = {key: each for key, each in self.cache.objects.items() if isinstance(each, Budget)}
        return {key: each.spec.max_pods for key, each in found.items()}


def test_the_last_readable_version_stays_and_the_warning_names_what_is_wrong() -> None:
    cache = Cache()
    assert cache.event("MODIFIED", "many", version=2) == []
    assert cache.known() == {"default/blue": 3}
    said = (
        "Budget of plugin Budgets: default/blue cannot be read and stays as it was last read: Budget blue: spec.maxPods"
    )
    assert cache.problems[0].startswith(said)
    assert [type(each) for each in cache.event("MODIFIED", 5, version=3)] == [Put]
    assert cache.known() == {"default/blue": 5} and cache.cache.resource_version == "3"


def test_an_unreadable_object_that_is_deleted_is_gone() -> None:
    cache = Cache()
    cache.event("MODIFIED", "many", version=2)
    (change,) = cache.event("DELETED", "many", version=3)
    assert isinstance(change, Gone) and isinstance(change.object, Budget) and cache.known() == {}


@pytest.mark.parametrize("by_list", [True, False], ids=["list", "watch"])
def test_an_unreadable_object_replaces_another_one_of_its_name(by_list: bool) -> None:
    cache, seen = Cache(), set[str]()
    if by_list:
        changes = cache.cache.apply_page([raw("many", uid="u2", version=2)], seen)
        changes += cache.cache.remove_missing(seen)
    else:
        changes = cache.event("ADDED", "many", uid="u2", version=2)
    assert [type(each) for each in changes] == [Gone] and cache.known() == {}


def test_in_a_list_the_last_readable_version_stays() -> None:
    cache, seen = Cache(), set[str]()
    assert cache.cache.apply_page([raw("many", version=2)], seen) == []
    assert cache.cache.remove_missing(seen) == [] and cache.known() == {"default/blue": 3}


# -- writes


class Server:
    """Serves these names in a version of the group, and answers writes with a status."""

    def __init__(self, status: int, served: dict[str, list[str]]) -> None:
        self.status, self.served = status, served

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            names = self.served.get(request.path.removeprefix("/apis/example.com/"))
            return refused(404) if names is None else answered({"resources": [{"name": name} for name in names]})
        return answered({}) if self.status == 200 else refused(self.status)


STATUS = status_patch(Budget(metadata=ObjectMeta(name="blue", namespace="default")), {"used": 1})


@pytest.mark.parametrize(
    ("action", "status", "names", "expected"),
    [
        pytest.param(STATUS, 200, ["teambudgets", "teambudgets/status"], 200, id="the status is written"),
        pytest.param(STATUS, 404, ["teambudgets", "teambudgets/status"], 404, id="the object is gone"),
        pytest.param(STATUS, 404, ["teambudgets"], 405, id="the CRD has no status"),
        pytest.param(Patch(kind="Budget", key="default/blue", body={}), 404, ["teambudgets"], 404, id="not the status"),
    ],
)
async def test_a_crd_without_a_status_is_told(action: Patch, status: int, names: list[str], expected: int) -> None:
    async with serving(Server(status, {"v1": names})) as fake, a_client(fake) as client:
        writer = Writer(client, learn=Notes().learn, recorder=Notes())
        assert (await writer.perform(action)).status == 404, "nobody knows the kind yet"
        writer.know({"Budget": BUDGETS})
        result = await writer.perform(action)
        assert result.status == expected
        if expected == 405:
            assert result.message == "teambudgets.example.com has no status to write: its CRD needs " + (
                "`subresources: {status: {}}`"
            )
        paths = [path.partition("?")[0] for method, path, _ in fake.asked if method == "PATCH"]
        below = "/status" if action is STATUS else ""
        assert paths == [f"/apis/example.com/v1/namespaces/default/teambudgets/blue{below}"]


async def test_another_version_is_found_once_the_old_one_is_gone() -> None:
    server = Server(200, {"v1": ["teambudgets", "teambudgets/status"]})
    async with serving(server) as fake, a_client(fake) as client:
        writer = Writer(client, learn=Notes().learn, recorder=Notes(), resources={"Budget": BUDGETS})
        assert (await writer.perform(STATUS)).status == 200
        server.served, server.status = {"v2": ["teambudgets", "teambudgets/status"]}, 404
        assert (await writer.perform(STATUS)).status == 404
        server.status = 200
        assert (await writer.perform(STATUS)).status == 200
        assert fake.asked[-1][1].startswith("/apis/example.com/v2/")
