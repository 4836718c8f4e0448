"""Of candidates at two leases, one leads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from stowplan.kube.client import Client
from stowplan.kube.lease import Elector
from stowplan.kube.other_lease import OtherLease
from tests.kube.fakes import Fake, a_client, answered, refused, serving

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
NAMES = ("kube-scheduler", "stowplan")


class Server:
    """Leases by name, with optimistic locking. Nobody may read those in `hidden`."""

    def __init__(self) -> None:
        self.version = 1
        self.leases: dict[str, dict[str, Any]] = {}
        self.hidden: set[str] = set()
        self.creatable = True
        self.away = False

    async def __call__(self, request: web.Request) -> web.Response:
        if self.away:
            return refused(503, "away")
        if request.method == "POST":
            return self._created(json.loads(await request.read()), "dryRun" in request.query)
        name = request.path.rpartition("/")[2]
        if name in self.hidden:
            return refused(403, "not you")
        if request.method == "GET":
            return answered(self.leases[name]) if name in self.leases else refused(404)
        sent = json.loads(await request.read())
        if sent["metadata"]["resourceVersion"] != self.leases[name]["metadata"]["resourceVersion"]:
            return refused(409, "the object has been modified")
        return self._kept(sent)

    def _created(self, sent: dict[str, Any], dry: bool) -> web.Response:
        if not self.creatable:
            return refused(403, "not you")
        if sent["metadata"]["name"] in self.leases:
            return refused(409, "already exists")
        return answered(sent) if dry else self._kept(sent)

    def _kept(self, sent: dict[str, Any]) -> web.Response:
        self.version += 1
        sent["metadata"]["resourceVersion"] = str(self.version)
        self.leases[sent["metadata"]["name"]] = sent
        return answered(sent)

    def hold(self, name: str, holder: str, duration: int = 15) -> None:
        metadata = {"name": name, "namespace": "kube-system"}
        now = datetime(2026, 5, 1, 12, tzinfo=UTC) + timedelta(seconds=self.version)
        spec = {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": now.isoformat()}
        self._kept({"metadata": metadata, "spec": spec})

    def holder(self, name: str) -> str:
        return str(self.leases[name]["spec"]["holderIdentity"]) if name in self.leases else ""


class Two:
    """A server, a clock, and a candidate at each lease."""

    def __init__(self, server: Server, fake: Fake, client: Client) -> None:
        self.server, self.fake, self.client = server, fake, client
        self.clock, self.others, self.unseen = [0.0], list[str](), list[str]()

    def candidate(self, name: str, identity: str) -> Elector:
        (other,) = {*NAMES} - {name}
        return Elector(
            self.client,
            namespace="kube-system",
            name=name,
            identity=identity,
            other=OtherLease(
                self.client,
                namespace="kube-system",
                name=other,
                is_ours=lambda holder: not holder.startswith("kube"),
                clock=lambda: self.clock[0],
            ),
            on_other=self.others.append,
            on_unseen=lambda: self.unseen.append(identity),
            clock=lambda: self.clock[0],
        )


def leads(candidate: Elector) -> bool:
    return candidate.leading


@asynccontextmanager
async def two() -> AsyncIterator[Two]:
    server = Server()
    async with serving(server) as fake, a_client(fake) as client:
        yield Two(server, fake, client)


@pytest.mark.parametrize("name", NAMES)
async def test_a_candidate_waits_while_the_other_lease_is_renewed_by_one_of_ours(name: str) -> None:
    async with two() as at:
        (other,) = {*NAMES} - {name}
        at.server.hold(other, "ours")
        candidate = at.candidate(name, "me")
        for moment in (0.0, 10.0):
            at.clock[0] = moment
            assert not await candidate._try_acquire_or_renew()
        at.server.hold(other, "ours")  # renewed
        at.clock[0] = 20.0
        assert not await candidate._try_acquire_or_renew()
        at.clock[0] = 34.9
        assert not await candidate._try_acquire_or_renew() and not at.server.holder(name)
        at.clock[0] = 35.1
        assert await candidate._try_acquire_or_renew() and leads(candidate)
        assert at.others == ["ours"], "told once"


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(None, id="there is no such lease"),
        pytest.param({"holder": ""}, id="it was released"),
        pytest.param({"holder": "kube-scheduler's own"}, id="kube-scheduler holds it: that is asked elsewhere"),
    ],
)
async def test_a_candidate_leads_beside_a_lease_of_nobody_of_ours(spec: dict[str, Any] | None) -> None:
    async with two() as at:
        if spec is not None:
            at.server.hold("kube-scheduler", **spec)
        candidate = at.candidate("stowplan", "me")
        assert await candidate._try_acquire_or_renew() and leads(candidate) and not at.others


async def test_a_follower_does_not_ask_about_the_other_lease() -> None:
    async with two() as at:
        at.server.hold("stowplan", "another of ours")
        assert not await at.candidate("stowplan", "me")._try_acquire_or_renew()
        assert [path for _, path, _ in at.fake.asked] == [f"{LEASES}/stowplan"]


async def test_two_that_acquire_at_once_do_not_both_lead() -> None:
    async with two() as at:
        candidates = [at.candidate(name, f"at {name}") for name in NAMES]
        for _ in range(20):
            await asyncio.gather(*(each._try_acquire_or_renew() for each in candidates))
            assert sum(leads(each) for each in candidates) <= 1
            for each in candidates:
                await each.release()


async def test_a_leader_steps_back_when_one_of_ours_has_the_other_lease() -> None:
    """Which it can only have because it may not read this one, or because this process stood still for long."""
    async with two() as at:
        leader = at.candidate("stowplan", "me")
        assert await leader._try_acquire_or_renew() and leads(leader)
        at.server.hold("kube-scheduler", "ours")
        assert not await leader._try_acquire_or_renew()
        assert not leads(leader) and leader.leader != "me"
        assert not at.server.holder("stowplan"), "and gives its lease back"


async def test_a_leader_that_cannot_read_the_other_lease_is_not_renewed() -> None:
    async with two() as at:
        leader = at.candidate("stowplan", "me")
        assert await leader._try_acquire_or_renew()
        ask = leader._other
        assert ask is not None
        at.clock[0] = 10.0
        ask.key = "kube-system/away"
        at.server.leases["away"] = {"kind": "Lease", "spec": "no spec"}
        assert not await leader._try_acquire_or_renew()
        at.clock[0] = 15.0
        assert not leads(leader), "as if its own lease had not been written"


# -- without the right to read the other lease


async def test_whoever_may_not_read_the_other_lease_leads_one_duration_later() -> None:
    """In that time a leader that may read sees it, and steps back."""
    async with two() as at:
        leader = at.candidate("stowplan", "sighted")
        assert await leader._try_acquire_or_renew()
        blind = at.candidate("kube-scheduler", "blind")
        at.server.hidden = {"stowplan"}
        assert await blind._try_acquire_or_renew()
        assert leads(leader) and not leads(blind) and at.unseen == ["blind"]
        at.server.hidden = set()
        at.clock[0] = 2.0
        assert not await leader._try_acquire_or_renew() and not leads(leader)
        at.server.hidden = {"stowplan"}
        for moment in (8.0, 14.9):
            at.clock[0] = moment
            assert await blind._try_acquire_or_renew() and not leads(blind)
        at.clock[0] = 15.1
        assert await blind._try_acquire_or_renew() and leads(blind)
        assert at.unseen == ["blind"]


@pytest.mark.parametrize("creatable", [True, False])
async def test_a_lease_that_does_not_exist_is_not_waited_for(creatable: bool) -> None:
    """If it may not be created either, nothing is known."""
    async with two() as at:
        at.server.hold("kube-scheduler", "")
        at.server.hidden, at.server.creatable = {"stowplan"}, creatable
        candidate = at.candidate("kube-scheduler", "me")
        assert await candidate._try_acquire_or_renew()
        assert leads(candidate) == creatable
        assert "stowplan" not in at.server.leases, "it was only tried"


async def test_a_leader_without_that_right_does_not_ask_again_and_again() -> None:
    async with two() as at:
        at.server.hold("kube-scheduler", "")
        at.server.hold("stowplan", "")
        at.server.hidden = {"stowplan"}
        candidate = at.candidate("kube-scheduler", "me")
        assert await candidate._try_acquire_or_renew()
        asked = len(at.fake.asked)
        assert await candidate._try_acquire_or_renew()
        assert [method for method, _, _ in at.fake.asked[asked:]] == ["PUT"]


async def test_a_lost_answer_does_not_make_such_a_leader_wait_again() -> None:
    """The server has written a renewal, and the leader never knew: its next one is refused, and it reads its lease."""
    async with two() as at:
        at.server.hold("kube-scheduler", "")
        at.server.hold("stowplan", "")
        at.server.hidden = {"stowplan"}
        leader = at.candidate("kube-scheduler", "me")
        for moment in (0.0, 8.0, 16.0):
            at.clock[0] = moment
            assert await leader._try_acquire_or_renew()
        assert leads(leader)
        lease = at.server.leases["kube-scheduler"]
        at.server._kept({**lease, "metadata": {**lease["metadata"]}})
        at.clock[0] = 18.0
        assert await leader._try_acquire_or_renew() and leads(leader)
