"""Leader election on a Lease, with kube's fields, durations and rules.

    following ── the lease is nobody's, or its holder has been silent for its duration ─► leading
        ▲                                                                                    │
        └─────────── another took it, or no renewal got through for `renew_deadline` ◄───────┘

How long a holder has been silent is measured by our own clock, from when we last saw its record change: clocks of
different machines are never compared. Renewal must not wait for anybody, so the elector may have a thread, an
event loop and a connection of its own (lease_thread.py).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from stowplan.kube.client import Client
from stowplan.kube.resources import LEASES
from stowplan.kube.responses import Response, UnreachableError, WireError

JITTER = 1.2  # a wait is drawn between one and 1 + 1.2 retry periods while following


class Elector:
    """One candidate. `leading` is true while we hold the lease and can be sure that nobody else does."""

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
        on_leader: Callable[[str], None] = lambda _: None,
        on_problem: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        generator: random.Random | None = None,
    ) -> None:
        self.identity, self.leader = identity, ""
        self._client, self._namespace, self._name = client, namespace, name
        self._duration, self._deadline, self._period = lease_duration, renew_deadline, retry_period
        self._on_leader, self._on_problem, self._clock, self._now = on_leader, on_problem, clock, now
        self._generator = generator or random.Random()
        self._document: dict[str, Any] | None = None  # the lease as we saw it last
        self._seen_at = 0.0  # when we first saw it so
        self._renewed_at = -float("inf")

    @property
    def leading(self) -> bool:
        """May be asked from any thread; false by itself if renewals stop, before anybody else can take over."""
        return self.leader == self.identity and self._clock() < self._renewed_at + self._duration

    # -- the two halves of a leader's life

    async def acquire(self) -> None:
        """Until we lead."""
        while not await self._try():
            await asyncio.sleep(self._period * (1 + JITTER * self._generator.random()))

    async def renew(self) -> None:
        """Until we no longer lead."""
        renewed = True
        while renewed:
            await asyncio.sleep(self._period)
            renewed = await self._renew_once()
        self._renewed_at = -float("inf")

    async def _renew_once(self) -> bool:
        try:
            async with asyncio.timeout(self._deadline):
                while not await self._try():
                    if self.leader != self.identity:
                        return False
                    await asyncio.sleep(self._period)
        except TimeoutError:
            return False
        return True

    async def release(self) -> None:
        """Give the lease up, so that the next one need not wait for it to run out."""
        if self.leader != self.identity or self._document is None:
            return
        self.leader = ""
        document = _with_spec(self._document, {"holderIdentity": "", "leaseDurationSeconds": 1, **self._times()})
        try:
            await self._client.put(LEASES, self._key, document, timeout=self._deadline / 2)
        except WireError as error:  # it runs out by itself
            self._on_problem(f"lease {self._key}: not released: {error}")

    async def close(self) -> None:
        await self._client.close()

    # -- one try

    @property
    def _key(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def _try(self) -> bool:
        """Take the lease or renew it; whether it is ours now. What we know of it is tried first, if it is ours."""
        ours = self.leader == self.identity and self._document is not None and self._valid()
        try:
            return (ours and await self._write()) or await self._look_and_write()
        except WireError as error:
            self._on_problem(f"lease {self._key}: {error}")
            return False

    async def _look_and_write(self) -> bool:
        timeout = self._deadline / 2
        answer = await self._client.transport.request("GET", LEASES.path(self._key), timeout=timeout)
        if answer.status == 404:
            return await self._create()
        self._observe(answer.checked("GET"))
        if self.leader not in ("", self.identity) and self._valid():
            return False
        return await self._write()

    async def _create(self) -> bool:
        begun = self._clock()
        document = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {**self._holding(), **self._times(), "leaseTransitions": 0},
        }
        answer = await self._client.create(LEASES, self._namespace, document)
        return self._won(answer, begun)

    async def _write(self) -> bool:
        """Put ourselves into the document as we saw it; if it has changed since, the server says no."""
        assert self._document is not None
        begun, old = self._clock(), self._document.get("spec") or {}
        spec = {**self._holding(), **self._times()}
        if old.get("holderIdentity") == self.identity:
            spec |= {"acquireTime": old.get("acquireTime"), "leaseTransitions": old.get("leaseTransitions") or 0}
        else:
            spec["leaseTransitions"] = (old.get("leaseTransitions") or 0) + 1
        document = _with_spec(self._document, spec)
        answer = await self._client.put(LEASES, self._key, document, timeout=self._deadline / 2)
        return self._won(answer, begun)

    def _won(self, answer: Response, begun: float) -> bool:
        if answer.status == 409:
            return False  # another was quicker
        self._observe(answer.checked("it cannot be written"))
        self._renewed_at = begun  # others begin to count later than this
        return True

    # -- what we know

    def _observe(self, answer: Response) -> None:
        try:
            document = msgspec.json.decode(answer.body, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UnreachableError(f"the answer cannot be read: {error}") from None
        if self._document is None or document.get("spec") != self._document.get("spec"):
            self._seen_at = self._clock()
        self._document = document
        holder = (document.get("spec") or {}).get("holderIdentity") or ""
        if holder != self.leader:
            self.leader = holder
            if holder:
                self._on_leader(holder)

    def _valid(self) -> bool:
        spec = (self._document or {}).get("spec") or {}
        return self._clock() < self._seen_at + float(spec.get("leaseDurationSeconds") or 0)

    def _holding(self) -> dict[str, Any]:
        return {"holderIdentity": self.identity, "leaseDurationSeconds": int(self._duration)}

    def _times(self) -> dict[str, Any]:
        written = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"acquireTime": written, "renewTime": written}


def _with_spec(document: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """The whole document, resourceVersion and all, with other words in it; fields that we do not know stay."""
    return {**document, "spec": {**(document.get("spec") or {}), **spec}}
