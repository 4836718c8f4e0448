"""Does kube-scheduler serve already? Its lease tells: somebody holds it, and renews it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from stowplan.kube.client import Client
from stowplan.kube.resources import LEASES

KEY = "kube-system/kube-scheduler"


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


async def somebody_schedules(client: Client, now: float, warn: Callable[[str], None]) -> str:
    """Who holds kube-scheduler's lease and renewed it lately; nobody if there is no such lease, or we may not look."""
    answer = await client.get(LEASES, KEY)
    if not answer.fine:
        if answer.status != 404:
            warn(f"Whether kube-scheduler serves cannot be seen: {answer.status} {answer.message}")
        return ""
    spec = msgspec.json.decode(answer.body, type=_Lease).spec
    if not spec.holder_identity or spec.renew_time is None:
        return ""
    held_until = spec.renew_time.timestamp() + (spec.lease_duration_seconds or 15)
    return spec.holder_identity if held_until > now else ""
