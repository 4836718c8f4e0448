"""The requests of each action, and the result of the response."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from stowplan.kube.client import Client
from stowplan.kube.writer import Writer
from stowplan.objects import kinds
from stowplan.objects.actions import (
    Action,
    Ask,
    Bind,
    Create,
    Delete,
    Evict,
    Nominate,
    Patch,
    PodRef,
    Read,
    ReadObject,
    Record,
    RequestEviction,
    SetCondition,
)
from stowplan.objects.changes import Change, Gone, Put, Result
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Service
from stowplan.testing.builders import a_pod
from tests.kube.fakes import a_client, answered, refused, serving

REF = PodRef("ns", "p", "u1")
POD = "/api/v1/namespaces/ns/pods/p"
NOON = datetime(2026, 5, 1, 12, 0, 0, 999, tzinfo=UTC)
NOW, SINCE = ({"lastTransitionTime": f"2026-0{month}-01T12:00:00Z"} for month in (5, 1))


class Notes:
    """Recorder, asker and learner in one."""

    def __init__(self) -> None:
        self.learned: list[Change] = []
        self.recorded: list[Record] = []

    def learn(self, change: Change, document: bytes = b"") -> None:
        self.learned.append(change)

    def record(self, event: Record) -> None:
        self.recorded.append(event)

    async def ask(self, question: Ask) -> Result:
        await asyncio.sleep(60 if question.verb == "filter" else 0)
        return Result(question.id, 200, body=[])


def a_writer(client: Client, notes: Notes, known: Pod | None = None) -> Writer:
    return Writer(client, learn=notes.learn, recorder=notes, extenders=notes, pod={"ns/p": known}.get, now=lambda: NOON)


def known_pod(**status: Any) -> Pod:
    return a_pod("p", namespace="ns", uid="u1", status=status)


@pytest.mark.parametrize(
    ("action", "asked"),
    [
        pytest.param(
            Bind(pod=REF, node_name="n"),
            [
                (
                    "POST",
                    f"{POD}/binding",
                    {
                        "apiVersion": "v1",
                        "kind": "Binding",
                        "metadata": {"name": "p", "namespace": "ns", "uid": "u1"},
                        "target": {"kind": "Node", "name": "n"},
                    },
                )
            ],
            id="a binding, for that very pod",
        ),
        pytest.param(
            SetCondition(pod=REF, status="False", reason="Unschedulable", message="0/1", nominated_node=""),
            [
                (
                    "PATCH",
                    f"{POD}/status",
                    {
                        "metadata": {"uid": "u1"},
                        "status": {
                            "conditions": [
                                {
                                    "type": "PodScheduled",
                                    "status": "False",
                                    "reason": "Unschedulable",
                                    "message": "0/1",
                                    "lastTransitionTime": "2026-05-01T12:00:00Z",
                                }
                            ],
                            "nominatedNodeName": None,
                        },
                    },
                )
            ],
            id="a condition that takes the nomination away",
        ),
        pytest.param(
            Nominate(pod=REF, node_name="n"),
            [("PATCH", f"{POD}/status", {"metadata": {"uid": "u1"}, "status": {"nominatedNodeName": "n"}})],
            id="a nomination",
        ),
        pytest.param(
            Evict(pod=REF, reason="PreemptionByScheduler", message="for another"),
            [
                (
                    "PATCH",
                    f"{POD}/status",
                    {
                        "metadata": {"uid": "u1"},
                        "status": {
                            "conditions": [
                                {
                                    "type": "DisruptionTarget",
                                    "status": "True",
                                    "reason": "PreemptionByScheduler",
                                    "message": "for another",
                                    "lastTransitionTime": "2026-05-01T12:00:00Z",
                                }
                            ]
                        },
                    },
                ),
                ("DELETE", POD, {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u1"}}),
            ],
            id="an eviction: why, then the deletion",
        ),
        pytest.param(
            RequestEviction(pod=REF, message="for its policy"),
            [
                (
                    "POST",
                    f"{POD}/eviction",
                    {
                        "apiVersion": "policy/v1",
                        "kind": "Eviction",
                        "metadata": {"name": "p", "namespace": "ns"},
                        "deleteOptions": {"preconditions": {"uid": "u1"}},
                    },
                )
            ],
            id="an eviction within disruption budgets",
        ),
        pytest.param(
            Patch(kind="PersistentVolume", key="v", body={"metadata": {"resourceVersion": "7"}, "spec": {"a": 1}}),
            [("PATCH", "/api/v1/persistentvolumes/v", {"metadata": {"resourceVersion": "7"}, "spec": {"a": 1}})],
            id="a plugin's patch, with the version that it was made for",
        ),
        pytest.param(
            Patch(kind="ReplicaSet", key="ns/r", body={"status": {"a": 1}}),
            [("PATCH", "/apis/apps/v1/namespaces/ns/replicasets/r/status", {"status": {"a": 1}})],
            id="a patch of the status alone",
        ),
        pytest.param(
            Patch(kind="ReplicaSet", key="ns/r", body={"status": {"conditions": [{"type": "A"}, SINCE]}}),
            [
                (
                    "PATCH",
                    "/apis/apps/v1/namespaces/ns/replicasets/r/status",
                    {"status": {"conditions": [{"type": "A"} | NOW, SINCE]}},
                )
            ],
            id="conditions that turn get a time, those that stand keep theirs",
        ),
        pytest.param(
            Create(kind="ReplicaSet", key="ns/r", body={"metadata": {"name": "r"}}),
            [("POST", "/apis/apps/v1/namespaces/ns/replicasets", {"metadata": {"name": "r"}})],
            id="an object that a plugin makes",
        ),
        pytest.param(
            Delete(kind="ReplicaSet", key="ns/r", uid="u1", resource_version="7"),
            [
                (
                    "DELETE",
                    "/apis/apps/v1/namespaces/ns/replicasets/r",
                    {
                        "apiVersion": "v1",
                        "kind": "DeleteOptions",
                        "preconditions": {"uid": "u1", "resourceVersion": "7"},
                    },
                )
            ],
            id="an object that is to go, if it is still as it was",
        ),
    ],
)
async def test_the_requests_of_an_action(action: Action, asked: list[Any]) -> None:
    async def handler(request: web.Request) -> web.Response:
        return answered({}, 201)

    async with serving(handler) as fake, a_client(fake) as client:
        assert await a_writer(client, Notes()).perform(action) == Result(0, 201)
        assert fake.asked == asked


def test_patches_are_of_the_right_sort() -> None:
    async def handler(request: web.Request) -> web.Response:
        return answered({})

    async def scenario() -> list[str]:
        async with serving(handler) as fake, a_client(fake) as client:
            writer = a_writer(client, Notes())
            await writer.perform(Nominate(pod=REF, node_name="n"))
            await writer.perform(Patch(kind="Node", key="n", body={"spec": {}}))
            return [headers["Content-Type"] for headers in fake.headers]

    kinds = asyncio.run(scenario())
    assert kinds == ["application/strategic-merge-patch+json", "application/merge-patch+json"]


@pytest.mark.parametrize(
    ("old", "has_time"),
    [
        pytest.param([], True, id="the condition is new"),
        pytest.param([{"type": "PodScheduled", "status": "True"}], True, id="its status changes"),
        pytest.param([{"type": "PodScheduled", "status": "False", "reason": "x"}], False, id="only the message"),
    ],
)
async def test_a_transition_has_a_time_if_it_is_one(old: list[dict[str, str]], has_time: bool) -> None:
    async def handler(request: web.Request) -> web.Response:
        return answered({})

    async with serving(handler) as fake, a_client(fake) as client:
        writer = a_writer(client, Notes(), known_pod(conditions=old))
        await writer.perform(SetCondition(pod=REF, status="False", reason="r", message="m"))
        (condition,) = fake.asked[0][2]["status"]["conditions"]
        assert ("lastTransitionTime" in condition) == has_time


@pytest.mark.parametrize("status", [404, 409, 403, 422])
async def test_what_the_server_decides_is_the_result(status: int) -> None:
    async def handler(request: web.Request) -> web.Response:
        return refused(status, "because")

    async with serving(handler) as fake, a_client(fake) as client:
        bind = Bind(id=5, pod=REF, node_name="n")
        assert await a_writer(client, Notes()).perform(bind) == Result(5, status, "because")
        assert len(fake.asked) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_an_eviction_is_requested_once(status: int) -> None:
    """429 is a disruption budget's word: to ask again at once would help nobody."""

    async def handler(request: web.Request) -> web.Response:
        return refused(status, "Cannot evict pod as it would violate the pod's disruption budget.")

    async with serving(handler) as fake, a_client(fake) as client:
        result = await a_writer(client, Notes()).perform(RequestEviction(id=3, pod=REF, message="m"))
        assert (result.id, result.status, len(fake.asked)) == (3, status, 1)
        assert "disruption budget" in result.message


async def test_a_pod_that_does_not_exist_is_not_deleted() -> None:
    async def handler(request: web.Request) -> web.Response:
        return refused(404, "not found")

    async with serving(handler) as fake, a_client(fake) as client:
        result = await a_writer(client, Notes()).perform(Evict(id=1, pod=REF, reason="r", message="m"))
        assert (result.status, [method for method, _, _ in fake.asked]) == (404, ["PATCH"])


@pytest.mark.parametrize(
    ("bound_to", "status"),
    [pytest.param("n", 201, id="with an earlier attempt"), pytest.param("other", 409, id="with another scheduler")],
)
async def test_a_conflict_after_a_doubtful_try_is_looked_into(bound_to: str, status: int) -> None:
    answers = [refused(500, "timed out"), refused(409, "already assigned")]

    async def handler(request: web.Request) -> web.Response:
        if request.method == "GET":
            return answered({"metadata": {"name": "p", "uid": "u1"}, "spec": {"nodeName": bound_to}})
        return answers.pop(0)

    async with serving(handler) as fake, a_client(fake) as client:
        result = await a_writer(client, Notes()).perform(Bind(pod=REF, node_name="n"))
        assert result.status == status
        assert [method for method, _, _ in fake.asked] == ["POST", "POST", "GET"]


async def test_after_the_deadline_there_is_no_answer() -> None:
    async def handler(request: web.Request) -> web.Response:
        return refused(503, "not now")

    async with serving(handler) as fake, a_client(fake) as client:
        writer = a_writer(client, Notes())
        action = Bind(id=9, pod=REF, node_name="n", deadline=time.monotonic() + 2)  # enough for a first answer
        assert await writer.perform(action) == Result(9, 0, "no answer in time: 503 not now")
        url = fake.url
    async with a_client(fake) as client:
        action = Bind(id=9, pod=REF, node_name="n", deadline=time.monotonic() + 2)
        result = await a_writer(client, Notes()).perform(action)
        assert (result.status, result.message[:17]) == (0, "no answer in time")
        assert url in result.message


@pytest.mark.parametrize(
    ("status", "uid", "learned"),
    [
        pytest.param(200, "u1", Put, id="it is there"),
        pytest.param(200, "u2", Gone, id="a later one has its name"),
        pytest.param(404, "", Gone, id="it is not there"),
    ],
)
async def test_a_read_reports_the_state_of_the_pod(status: int, uid: str, learned: type[Change]) -> None:
    async def handler(request: web.Request) -> web.Response:
        document = {"metadata": {"name": "p", "namespace": "ns", "uid": uid, "resourceVersion": "9"}}
        return answered(document) if status == 200 else refused(status)

    async with serving(handler) as fake, a_client(fake) as client:
        notes = Notes()
        result = await a_writer(client, notes).perform(Read(id=3, pod=REF))
        (change,) = notes.learned
        assert (type(change), change.object.uid, change.object.key) == (learned, "u1", "ns/p")
        assert result.succeeded == (learned is Put)


async def test_a_read_that_is_refused_reports_nothing() -> None:
    async def handler(request: web.Request) -> web.Response:
        return refused(403, "not you")

    async with serving(handler) as fake, a_client(fake) as client:
        notes = Notes()
        assert await a_writer(client, notes).perform(Read(id=3, pod=REF)) == Result(3, 403, "not you")
        assert notes.learned == []


@pytest.mark.parametrize(
    ("status", "learned"), [pytest.param(200, Put, id="it is there"), pytest.param(404, Gone, id="it is gone")]
)
async def test_an_object_of_any_kind_is_read(status: int, learned: type[Change]) -> None:
    document = {"metadata": {"name": "cpu", "namespace": "ns", "uid": "u1", "resourceVersion": "9"}}

    async def handler(request: web.Request) -> web.Response:
        return answered(document) if status == 200 else refused(status)

    async with serving(handler) as fake, a_client(fake) as client:
        notes = Notes()
        known = kinds.convert(Service, document)
        writer = Writer(client, learn=notes.learn, recorder=notes, known=lambda *_: known)
        result = await writer.perform(ReadObject(id=3, kind="Service", key="ns/cpu"))
        (change,) = notes.learned
        assert (type(change), change.object.key, result.succeeded) == (learned, "ns/cpu", learned is Put)
        assert [path for _, path, _ in fake.asked] == ["/api/v1/namespaces/ns/services/cpu"]


async def test_events_are_queued_and_questions_passed_on() -> None:
    async def handler(request: web.Request) -> web.Response:
        return refused(500)

    async with serving(handler) as fake, a_client(fake) as client:
        notes = Notes()
        writer = a_writer(client, notes)
        event = Record(id=1, pod=REF, type="Normal", reason="R", action="A", note="n", reporting_controller="stowplan")
        assert (await writer.perform(event)).succeeded
        assert notes.recorded == [event]
        bind = Ask(id=2, extender=0, verb="bind", pod=REF)
        assert await writer.perform(bind) == Result(2, 200, body=[])
        late = Ask(id=3, extender=0, verb="filter", pod=REF, deadline=time.monotonic() + 0.05)
        assert await writer.perform(late) == Result(3, 0, "no answer in time")
        assert fake.asked == []


async def test_who_no_longer_leads_binds_nothing() -> None:
    async def handler(request: web.Request) -> web.Response:
        return answered({}, 201)

    async with serving(handler) as fake, a_client(fake, may_write=lambda: False) as client:
        result = await a_writer(client, Notes()).perform(Bind(id=1, pod=REF, node_name="n"))
        assert (result.status, "writing is no longer allowed" in result.message, fake.asked) == (0, True, [])


async def test_a_kind_that_is_not_served_cannot_be_written() -> None:
    async def handler(request: web.Request) -> web.Response:
        return refused(404)

    async with serving(handler) as fake, a_client(fake) as client:
        for kind in ("PodGroup", "Nonsense"):
            for action in (
                Patch(id=1, kind=kind, key="a/b", body={}),
                Create(id=1, kind=kind, key="a/b", body={}),
                Delete(id=1, kind=kind, key="a/b", uid="u", resource_version="7"),
            ):
                result = await a_writer(client, Notes()).perform(action)
                assert result == Result(1, 404, f"the server has no {kind}")
