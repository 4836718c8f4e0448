"""There is never more than one leader."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from stowplan.kube.client import Client
from stowplan.kube.lease import Elector
from stowplan.kube.lease_thread import LeaseThread
from stowplan.kube.transport import Transport
from tests.kube.fakes import Fake, a_client, an_access, answered, refused, serving, until

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
NOON = "2026-05-01T12:00:00.000000Z"


class Server:
    """One lease, with optimistic locking. Requests of the candidates in `away` get no response."""

    def __init__(self, **spec: Any) -> None:
        self.version = 1
        metadata = {"name": "stowplan", "namespace": "kube-system", "resourceVersion": "1", "labels": {"kept": "yes"}}
        self.lease: dict[str, Any] | None = {"metadata": metadata, "spec": spec} if spec else None
        self.away = False

    async def __call__(self, request: web.Request) -> web.Response:
        if self.away:
            return refused(503, "away")
        if request.method == "GET":
            return answered(self.lease) if self.lease else refused(404)
        sent = json.loads(await request.read())
        if request.method == "POST" and self.lease is not None:
            return refused(409)
        if request.method == "PUT" and sent["metadata"]["resourceVersion"] != str(self.version):
            return refused(409, "the object has been modified")
        self.version += 1
        sent["metadata"]["resourceVersion"] = str(self.version)
        self.lease = sent
        return answered(sent)

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec


def elector(client: Client, identity: str = "me", clock: list[float] | None = None, **options: Any) -> Elector:
    at = [0.0] if clock is None else clock
    return Elector(
        client,
        namespace="kube-system",
        name="stowplan",
        identity=identity,
        clock=lambda: at[0],
        now=lambda: datetime(2026, 5, 1, 12, tzinfo=UTC),
        **options,
    )


@asynccontextmanager
async def electing(**spec: Any) -> AsyncIterator[tuple[Server, Fake, Client]]:
    server = Server(**spec)
    async with serving(server) as fake, a_client(fake) as client:
        yield server, fake, client


async def test_a_lease_that_is_not_there_is_made() -> None:
    async with electing() as (server, fake, client):
        candidate = elector(client)
        assert await candidate._try_acquire_or_renew()
        assert candidate.leading
        assert server.spec == {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": NOON,
            "renewTime": NOON,
            "leaseTransitions": 0,
        }
        assert [(method, path) for method, path, _ in fake.asked] == [("GET", f"{PATH}/stowplan"), ("POST", PATH)]


async def test_a_holder_is_left_alone_until_it_has_been_silent_for_its_own_duration() -> None:
    """By the local clock only: renewTime, here long ago, is ignored."""
    clock = [0.0]
    held = {"holderIdentity": "other", "leaseDurationSeconds": 20, "renewTime": "2001-01-01T00:00:00.000000Z"}
    async with electing(**held, leaseTransitions=4, acquireTime=NOON) as (server, _, client):
        candidate = elector(client, clock=clock)
        assert not await candidate._try_acquire_or_renew()
        clock[0] = 19.9
        assert not await candidate._try_acquire_or_renew()
        server.spec["renewTime"] = "2001-01-01T00:00:01.000000Z"
        clock[0] = 20.1
        assert not await candidate._try_acquire_or_renew(), "it moved: the count begins again"
        clock[0] = 40.2
        assert await candidate._try_acquire_or_renew()
        assert (server.spec["holderIdentity"], server.spec["leaseTransitions"]) == ("me", 5)
        assert server.lease is not None
        assert server.lease["metadata"]["labels"] == {"kept": "yes"}


async def test_a_renewal_is_one_request_and_keeps_when_it_was_acquired() -> None:
    async with electing(holderIdentity="", leaseDurationSeconds=1, leaseTransitions=7) as (server, fake, client):
        candidate = elector(client)
        assert await candidate._try_acquire_or_renew()
        server.spec["acquireTime"] = "2020-01-01T00:00:00.000000Z"
        candidate._document = server.lease
        assert await candidate._try_acquire_or_renew()
        assert [method for method, _, _ in fake.asked] == ["GET", "PUT", "PUT"]
        assert (server.spec["leaseTransitions"], server.spec["acquireTime"][:4]) == (8, "2020")


async def test_of_two_that_try_at_once_one_wins() -> None:
    async with electing(holderIdentity="", leaseDurationSeconds=1) as (server, _, client):
        candidates = [elector(client, name) for name in ("a", "b", "c")]
        won = await asyncio.gather(*(candidate._try_acquire_or_renew() for candidate in candidates))
        assert sorted(won) == [False, False, True]
        assert [each.identity for each in candidates if each.leading] == [server.spec["holderIdentity"]]


async def test_a_leader_that_cannot_renew_stops_before_another_can_lead() -> None:
    clock = [0.0]
    async with electing() as (server, _, client):
        candidate = elector(client, clock=clock)
        assert await candidate._try_acquire_or_renew()
        server.away = True
        clock[0] = 14.9
        assert candidate.leading
        assert not await candidate._try_acquire_or_renew()
        clock[0] = 15.0
        assert not candidate.leading


# A leader that a busy machine stalls for longer than its deadline stops, and is right.
QUICK: dict[str, Any] = {"lease_duration": 4.0, "renew_deadline": 3.0, "retry_period": 0.02}


async def test_a_leader_that_cannot_renew_stops() -> None:
    problems = list[str]()
    async with electing() as (server, _, client):
        candidate = elector(client, on_problem=problems.append, **QUICK)
        await candidate.acquire()
        renewing = asyncio.create_task(candidate.renew())
        await until(lambda: server.version > 4)
        server.away = True
        async with asyncio.timeout(60):
            await renewing
        assert not candidate.leading
        assert "away" in problems[0]


async def test_a_leader_that_was_overtaken_stops_at_once() -> None:
    async with electing() as (server, _, client):
        candidate = elector(client, **{**QUICK, "renew_deadline": 60.0})
        await candidate.acquire()
        renewing = asyncio.create_task(candidate.renew())
        server.spec["holderIdentity"] = "usurper"
        server.version += 1
        assert server.lease is not None
        server.lease["metadata"]["resourceVersion"] = str(server.version)
        async with asyncio.timeout(60):
            await renewing
        assert (candidate.leading, candidate.leader) == (False, "usurper")


async def test_a_released_lease_is_taken_without_waiting() -> None:
    async with electing() as (server, _, client):
        leaders = list[str]()
        first, second = elector(client, "a"), elector(client, "b", on_leader=leaders.append)
        assert await first._try_acquire_or_renew()
        assert not await second._try_acquire_or_renew()
        await first.release()
        assert not first.leading
        assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
        assert await second._try_acquire_or_renew()
        assert (leaders, server.spec["leaseTransitions"]) == (["a", "b"], 1)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(lambda: refused(403, "not you"), "lease kube-system/stowplan: GET: 403 not you", id="forbidden"),
        pytest.param(lambda: web.Response(text="hello"), "the answer is no Kubernetes object", id="not a lease"),
    ],
)
async def test_failures_are_reported_and_retried(answer: Callable[[], web.Response], problem: str) -> None:
    problems = list[str]()

    async def handler(request: web.Request) -> web.Response:
        return answer()

    async with serving(handler) as fake, a_client(fake) as client:
        assert not await elector(client, on_problem=problems.append)._try_acquire_or_renew()
        assert problem in problems[0]


async def test_a_lease_is_released_although_a_renewal_without_an_answer_changed_it() -> None:
    """The program is stopped while a renewal is under way: the server has written it, the candidate never knew."""
    async with electing() as (server, _, client):
        candidate = elector(client)
        assert await candidate._try_acquire_or_renew()
        assert server.lease is not None
        server.version += 1
        server.lease["metadata"]["resourceVersion"] = str(server.version)
        await candidate.release()
        assert server.spec["holderIdentity"] == "" and not candidate.leading


async def test_a_lease_that_another_took_is_left_alone() -> None:
    async with electing() as (server, fake, client):
        candidate = elector(client)
        assert await candidate._try_acquire_or_renew()
        assert server.lease is not None
        server.version += 1
        server.lease["metadata"]["resourceVersion"] = str(server.version)
        server.spec["holderIdentity"] = "another"
        await candidate.release()
        assert server.spec["holderIdentity"] == "another"
        assert [method for method, _, _ in fake.asked][-2:] == ["PUT", "GET"]


async def test_a_lease_that_cannot_be_released_is_reported() -> None:
    async with electing() as (server, _, client):
        problems: list[str] = []
        candidate = elector(client, on_problem=problems.append)
        assert await candidate._try_acquire_or_renew()
        server.away = True
        await candidate.release()
        assert len(problems) == 1 and "not released" in problems[0]


async def test_who_does_not_lead_releases_nothing() -> None:
    async with electing(holderIdentity="other", leaseDurationSeconds=15) as (_, fake, client):
        candidate = elector(client)
        await candidate._try_acquire_or_renew()
        await candidate.release()
        assert [method for method, _, _ in fake.asked] == ["GET"]


async def test_a_thread_renews_while_the_program_is_busy_and_releases_at_the_end() -> None:
    started, stopped = threading.Event(), threading.Event()
    async with electing() as (server, fake, _):

        def make() -> Elector:
            # Nothing here waits for the two times that are long.
            times: dict[str, Any] = {**QUICK, "lease_duration": 70.0, "renew_deadline": 60.0}
            return elector(Client(Transport(an_access(fake.url))), "thread", **times)

        thread = LeaseThread(make, on_started=started.set, on_stopped=stopped.set)
        thread.start()
        await until(started.is_set)
        assert thread.leading
        await until(lambda: server.version > 5)
        await asyncio.to_thread(thread.stop)
        assert stopped.is_set()
        assert (thread.leading, server.spec["holderIdentity"]) == (False, "")


async def test_a_thread_that_never_led_calls_nothing() -> None:
    async with electing(holderIdentity="other", leaseDurationSeconds=15) as (_, fake, _):
        calls = list[str]()

        def make() -> Elector:
            return elector(Client(Transport(an_access(fake.url))), **QUICK)

        thread = LeaseThread(make, on_started=lambda: calls.append("on"), on_stopped=lambda: calls.append("off"))
        thread.start()
        await until(lambda: len(fake.asked) > 1)
        await asyncio.to_thread(thread.stop)
        assert calls == []


def test_an_error_at_the_start_is_raised() -> None:
    def make() -> Elector:
        raise ValueError("no such file")

    thread = LeaseThread(make, on_started=lambda: None, on_stopped=lambda: None)
    with pytest.raises(ValueError, match="no such file"):
        thread.start()
