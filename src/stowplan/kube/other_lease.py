"""The other of two leases that candidates of one program may hold: nobody leads while one of ours renews it.

Which of the two a candidate may write depends on its rights, so two candidates can hold one lease each. A candidate
looks at the other lease before it takes its own, and after each time that it wrote its own:

    a candidate    reads the other ─► writes its own ─► reads the other again ─► leads
    a leader                          writes its own ─► reads the other again ─► leads on

Each writes before it reads. So of two at least one sees the other, and whoever does steps back. As with any lease, a
record that has not changed for its duration, by the local clock, is nobody's.

A candidate may lack the right to read the other lease. If that lease exists (a create that is only tried says so) the
candidate leads one lease duration later: in that time those who may read see its own lease, and step back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from stowplan.kube.client import Client
from stowplan.kube.resources import LEASES
from stowplan.kube.responses import Response, UnreachableError


class OtherLease:
    """`is_ours` tells a holder of the program from a holder of another one."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        is_ours: Callable[[str], bool] = lambda _: True,
        timeout: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.key = f"{namespace}/{name}"
        self.unseen = False  # it exists, or may exist, and this candidate may not read it
        self._client, self._namespace, self._name = client, namespace, name
        self._is_ours, self._timeout, self._clock = is_ours, timeout, clock
        self._spec: dict[str, Any] | None = None  # as last seen
        self._seen_at = 0.0  # when it was first seen so

    async def holder(self, *, leads: bool = False) -> str:
        """Return which of ours renews the lease; empty if none does. `leads`: the candidate asks as the leader."""
        if leads and self.unseen:
            return ""
        response = await self._client.transport.request("GET", LEASES.path(self.key), timeout=self._timeout)
        if response.status == 403:
            self.unseen = leads or await self._may_exist()
            return ""
        self.unseen = False
        return "" if response.status == 404 else self._renewed_by(_spec(response.checked("GET")))

    def _renewed_by(self, spec: dict[str, Any]) -> str:
        if spec != self._spec:
            self._spec, self._seen_at = spec, self._clock()
        holder = str(spec.get("holderIdentity") or "")
        is_held = self._clock() < self._seen_at + float(spec.get("leaseDurationSeconds") or 0)
        return holder if holder and is_held and self._is_ours(holder) else ""

    async def _may_exist(self) -> bool:
        """Try to create the lease, without doing it: the right to create has no names."""
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
        }
        path, data = LEASES.collection(self._namespace), msgspec.json.encode(body)
        request = self._client.transport.request
        tried = await request("POST", path, params={"dryRun": "All"}, body=data, timeout=self._timeout)
        return not tried.ok


def _spec(response: Response) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(response.body, type=dict[str, Any])
    except Exception as error:
        raise UnreachableError(f"the response cannot be read: {error}") from None
    spec = found.get("spec") or {}
    if not isinstance(spec, dict):
        raise UnreachableError("the response is no Lease")
    return spec
