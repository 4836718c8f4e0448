"""Whether kube-scheduler is at work in the cluster, as its lease says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from stowplan.kube.client import Client
from stowplan.kube.resources import LEASES

LEASE_NAME = "kube-scheduler"
LEASE_KEY = f"kube-system/{LEASE_NAME}"


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


async def lease_holder(client: Client, now: float, warn: Callable[[str], None]) -> str:
    """Return the holder of kube-scheduler's lease; empty if the lease expired, is absent or may not be read."""
    answer = await client.get(LEASES, LEASE_KEY)
    if not answer.ok:
        if answer.status != 404:
            warn(f"Cannot see whether kube-scheduler serves: {answer.status} {answer.message}")
        return ""
    try:
        spec = msgspec.json.decode(answer.body, type=_Lease).spec
    except Exception as error:
        warn(f"Cannot see whether kube-scheduler serves: its lease cannot be read: {error}")
        return ""
    if not spec.holder_identity or spec.renew_time is None:
        return ""
    expires = spec.renew_time.timestamp() + (spec.lease_duration_seconds or 15)
    return spec.holder_identity if expires > now else ""
