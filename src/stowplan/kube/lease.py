"""Leader election on a Lease, with the fields, durations and rules of client-go.

    following ── the lease has no holder, or the holder has not renewed it for its duration ─► leading
        ▲                                                                                        │
        └──── another candidate took the lease, or no renewal succeeded for `renew_deadline` ◄───┘

The time since the last renewal is measured by the local clock, from when the record was last seen to change: the clocks
of different machines are never compared. A renewal must not be delayed by other work, so an elector can run in a thread
with its own event loop and connection (lease_thread.py). Candidates of one program may hold one of two leases
(other_lease.py): then nobody leads while the other one is renewed.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from stowplan.kube.client import Client
from stowplan.kube.other_lease import OtherLease
from stowplan.kube.resources import LEASES
from stowplan.kube.responses import Response, UnreachableError, WireError

JITTER = 1.2  # while following, the wait is a random time between 1 and 1 + 1.2 retry periods


class Elector:
    """One candidate. `leading` is true while this candidate holds the lease and no other can hold it."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        other: OtherLease | None = None,
        on_leader: Callable[[str], None] = lambda _: None,
        on_other: Callable[[str], None] = lambda _: None,
        on_unseen: Callable[[], None] = lambda: None,
        on_problem: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        generator: random.Random | None = None,
    ) -> None:
        """`on_other` is called with each holder of the other lease because of whom this candidate does not lead,
        `on_unseen` if it will lead later because it may not read that lease.
        """
        self.identity, self.leader = identity, ""
        self._client, self._namespace, self._name, self._other = client, namespace, name, other
        self._duration, self._deadline, self._period = lease_duration, renew_deadline, retry_period
        self._on_leader, self._on_problem, self._clock, self._now = on_leader, on_problem, clock, now
        self._on_other, self._on_unseen, self._other_holder = on_other, on_unseen, ""
        self._generator = generator or random.Random()
        self._document: dict[str, Any] | None = None  # the lease as last seen
        self._seen_at = 0.0  # when it was first seen so
        self._written_at = self._renewed_at = -float("inf")
        self._leads_from = -float("inf")

    @property
    def leading(self) -> bool:
        """True while leading.

        Any thread may read it. It becomes false without a renewal before another candidate can take over.
        """
        return self.leader == self.identity and self._leads_from <= self._clock() < self._renewed_at + self._duration

    # -- acquire, renew, release

    async def acquire(self) -> None:
        """Return when this candidate leads."""
        while not (await self._try_acquire_or_renew() and self.leading):
            await asyncio.sleep(self._period * (1 + JITTER * self._generator.random()))

    async def renew(self) -> None:
        """Renew the lease. Return when this candidate no longer leads."""
        renewed = True
        while renewed:
            await asyncio.sleep(self._period)
            renewed = await self._renew_once()
        self._renewed_at = -float("inf")

    async def _renew_once(self) -> bool:
        try:
            async with asyncio.timeout(self._deadline):
                while not await self._try_acquire_or_renew():
                    if self.leader != self.identity:
                        return False
                    await asyncio.sleep(self._period)
        except TimeoutError:
            return False
        return True

    async def release(self) -> None:
        """Release the lease, so that the next candidate need not wait for its expiry."""
        if self.leader != self.identity or self._document is None:
            return
        self.leader = ""
        try:
            async with asyncio.timeout(self._deadline / 2):
                await self._write_without_holder(self._document)
        except (WireError, TimeoutError) as error:  # the lease expires by itself
            self._on_problem(f"lease {self._key}: not released: {error or 'no answer in time'}")

    async def _write_without_holder(self, document: dict[str, Any]) -> None:
        """Remove this candidate from the lease, which a renewal without an answer may have changed in the meantime."""
        while (document.get("spec") or {}).get("holderIdentity") == self.identity:
            released = _with_spec(document, {"holderIdentity": "", "leaseDurationSeconds": 1, **self._times()})
            response = await self._client.put(LEASES, self._key, released, timeout=self._deadline / 2)
            if response.status != 409:
                response.checked("it cannot be written")
                return
            found = await self._client.transport.request("GET", LEASES.path(self._key), timeout=self._deadline / 2)
            document = _decoded(found.checked("GET"))

    async def close(self) -> None:
        await self._client.close()

    # -- one attempt

    @property
    def _key(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def _try_acquire_or_renew(self) -> bool:
        """Acquire or renew the lease, and return whether this candidate holds it.

        A lease that it held is written without a read.
        """
        ours = self.leader == self.identity and self._document is not None and self._is_held()
        try:
            if not ((ours and await self._write()) or await self._read_and_write()):
                return False
            if await self._other_is_held(leads=True):
                await self._step_back()
                return False
        except WireError as error:
            self._on_problem(f"lease {self._key}: {error}")
            return False
        self._renewed_at = self._written_at  # other candidates start counting later than this
        return True

    async def _read_and_write(self) -> bool:
        timeout = self._deadline / 2
        response = await self._client.transport.request("GET", LEASES.path(self._key), timeout=timeout)
        exists = response.status != 404
        if exists:
            self._observe(response.checked("GET"))
            if self.leader not in ("", self.identity) and self._is_held():
                return False
        if await self._other_is_held():
            return False
        led = self.leading  # and only the answer to a renewal was lost
        if not await (self._write() if exists else self._create()):
            return False
        if not led:
            self._begin()
        return True

    def _begin(self) -> None:
        """This candidate has the lease: it leads from now on, or later, if it may not read the other one."""
        unseen = self._other is not None and self._other.unseen
        self._leads_from = self._written_at + self._duration if unseen else -float("inf")
        if unseen:
            self._on_unseen()

    async def _other_is_held(self, *, leads: bool = False) -> bool:
        """True if a candidate of ours renews the other lease."""
        if self._other is None:
            return False
        holder = await self._other.holder(leads=leads)
        if holder and holder != self._other_holder:
            self._on_other(holder)
        self._other_holder = holder
        return bool(holder)

    async def _step_back(self) -> None:
        """Give the lease back, which was written a moment ago."""
        self.leader, self._renewed_at = "", -float("inf")
        if self._document is not None:
            await self._write_without_holder(self._document)

    async def _create(self) -> bool:
        begun = self._clock()
        document = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {**self._holder(), **self._times(), "leaseTransitions": 0},
        }
        response = await self._client.create(LEASES, self._namespace, document)
        return self._accept(response, begun)

    async def _write(self) -> bool:
        """Write this candidate as the holder. The server refuses it if the lease has changed since it was read."""
        assert self._document is not None
        begun, old = self._clock(), self._document.get("spec") or {}
        spec: dict[str, object] = {**self._holder(), **self._times()}
        if old.get("holderIdentity") == self.identity:
            spec |= {"acquireTime": old.get("acquireTime"), "leaseTransitions": old.get("leaseTransitions") or 0}
        else:
            spec["leaseTransitions"] = (old.get("leaseTransitions") or 0) + 1
        document = _with_spec(self._document, spec)
        response = await self._client.put(LEASES, self._key, document, timeout=self._deadline / 2)
        return self._accept(response, begun)

    def _accept(self, response: Response, begun: float) -> bool:
        if response.status == 409:
            return False  # another candidate was faster
        self._observe(response.checked("it cannot be written"))
        if self.leader != self.identity:
            return False  # whatever was answered, it is not the lease that was written
        self._written_at = begun
        return True

    # -- the observed lease

    def _observe(self, response: Response) -> None:
        document = _decoded(response)
        if self._document is None or document.get("spec") != self._document.get("spec"):
            self._seen_at = self._clock()
        self._document = document
        holder = (document.get("spec") or {}).get("holderIdentity") or ""
        if holder != self.leader:
            self.leader = holder
            if holder:
                self._on_leader(holder)

    def _is_held(self) -> bool:
        spec = (self._document or {}).get("spec") or {}
        return self._clock() < self._seen_at + float(spec.get("leaseDurationSeconds") or 0)

    def _holder(self) -> dict[str, str | int]:
        return {"holderIdentity": self.identity, "leaseDurationSeconds": int(self._duration)}

    def _times(self) -> dict[str, str]:
        written = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"acquireTime": written, "renewTime": written}


def _decoded(response: Response) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(response.body, type=dict[str, Any])
    except Exception as error:
        raise UnreachableError(f"the response cannot be read: {error}") from None
    if found.get("kind") == "Status":
        raise UnreachableError("found a Status, expected a Lease")
    return found


def _with_spec(document: dict[str, Any], spec: Mapping[str, object]) -> dict[str, object]:
    """The document with other fields in its spec; all other fields stay."""
    return {**document, "spec": {**(document.get("spec") or {}), **spec}}
