"""Which of two leases `stowplan run` takes, and who counts as kube-scheduler."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from stowplan.apps.leader_election import ElectionSettings
from stowplan.apps.logging import Log
from stowplan.apps.run import kube_scheduler
from stowplan.apps.run.configuration import LoadedConfiguration, beside_kube_scheduler, instead_of_kube_scheduler
from stowplan.apps.run.options import RunOptions
from stowplan.apps.run.service import SchedulerService
from stowplan.kube.client import Client
from stowplan.kube.transport import Transport
from stowplan.objects.errors import ConfigError
from tests.kube.fakes import a_client, an_access, answered, refused, serving

Handler = Callable[[web.Request], Any]


def settled(
    loaded: Callable[[], LoadedConfiguration], handler: Handler, name: str = "stowplan", log: io.StringIO | None = None
) -> ElectionSettings:
    """The lease that a service takes whose API server answers like this."""

    async def settle() -> ElectionSettings:
        async with serving(handler) as fake:
            service = SchedulerService(RunOptions(), loaded, Log(stream=log or io.StringIO()))
            service.client_of = lambda *_: Client(Transport(an_access(fake.url)))  # type: ignore[method-assign]
            return await service._settled(ElectionSettings(name=name, namespace="here"))

    return asyncio.run(settle())


def of_rights(*allowed: str, questions: list[Any] | None = None) -> Handler:
    """An API server that allows the update of these leases."""

    async def handler(request: web.Request) -> web.Response:
        asked = json.loads(await request.read())["spec"]["resourceAttributes"]
        if questions is not None:
            questions.append(asked)
        answer = {"kind": "SelfSubjectAccessReview", "status": {"allowed": asked["name"] in allowed}}
        return answered(answer, 201)

    return handler


@pytest.mark.parametrize(
    ("loaded", "allowed", "lease"),
    [
        pytest.param(
            instead_of_kube_scheduler, ("kube-scheduler",), ("kube-scheduler", "stowplan"), id="kube-scheduler's user"
        ),
        pytest.param(
            instead_of_kube_scheduler, ("stowplan", "kube-scheduler"), ("kube-scheduler", "stowplan"), id="both"
        ),
        pytest.param(instead_of_kube_scheduler, ("stowplan",), ("stowplan", "kube-scheduler"), id="another user"),
        pytest.param(beside_kube_scheduler, (), ("stowplan", "kube-scheduler"), id="another name of a scheduler"),
    ],
)
def test_which_lease_is_taken_and_which_must_be_free(
    loaded: Callable[[], LoadedConfiguration], allowed: tuple[str, ...], lease: tuple[str, str]
) -> None:
    questions: list[Any] = []
    election = settled(loaded, of_rights(*allowed, questions=questions))
    assert (election.name, election.other) == lease
    asked = {"group": "coordination.k8s.io", "resource": "leases", "verb": "update", "namespace": "here"}
    names = () if loaded is beside_kube_scheduler else ("kube-scheduler", "stowplan")
    assert questions == [{**asked, "name": name} for name in names]


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(lambda: refused(503, "apiserver not ready"), id="it starts"),
        pytest.param(lambda: answered({"status": {"allowed": False}}, 201), id="it has no rules yet"),
    ],
)
def test_a_server_that_has_just_started_is_asked_again(
    first: Callable[[], web.Response], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may end at the wrong lease for good because of the server's first second."""
    monkeypatch.setattr(kube_scheduler, "RIGHTS_PAUSE", 0.01)
    asked, rights = list[int](), of_rights("kube-scheduler")

    async def handler(request: web.Request) -> web.Response:
        asked.append(1)
        return first() if len(asked) <= 6 else await rights(request)

    assert settled(instead_of_kube_scheduler, handler).name == "kube-scheduler"


def test_a_user_who_may_update_neither_lease_cannot_start() -> None:
    async def ask() -> str:
        async with serving(of_rights()) as fake, a_client(fake) as client:
            return await kube_scheduler.lease_by_rights(client, "here", lambda _: None, within=0)

    with pytest.raises(ConfigError, match="may update neither the lease kube-scheduler nor stowplan in here"):
        asyncio.run(ask())


def test_without_an_answer_about_rights_the_lease_is_our_own() -> None:
    log = io.StringIO()

    async def handler(_: web.Request) -> web.Response:
        return refused(403, "no reviews")

    election = settled(instead_of_kube_scheduler, handler, log=log)
    assert (election.name, election.other) == ("stowplan", "kube-scheduler")
    assert "403 no reviews" in log.getvalue()


def test_a_lease_of_another_name_has_no_counterpart() -> None:
    async def handler(_: web.Request) -> web.Response:
        raise AssertionError("nothing is asked")

    assert settled(beside_kube_scheduler, handler, "mine").other == ""


@pytest.mark.parametrize(
    ("holder", "found"),
    [
        pytest.param("master-1_6f1c", "master-1_6f1c", id="kube-scheduler"),
        pytest.param("stowplan_6f1c", "stowplan_6f1c", id="kube-scheduler, on a host with our name"),
        pytest.param("stowplan:master-1_6f1c", "", id="another replica of ours, which is waited for"),
    ],
)
def test_who_serves_default_scheduler(holder: str, found: str) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-05-01T12:00:00.000000Z"}
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp()

    async def handler(_: web.Request) -> web.Response:
        return answered({"kind": "Lease", "spec": spec})

    async def asked(later: float) -> str:
        async with serving(handler) as fake, a_client(fake) as client:
            return await kube_scheduler.lease_holder(client, noon + later, lambda _: None)

    assert asyncio.run(asked(10)) == found
    assert asyncio.run(asked(20)) == "", "it expired"
