"""Leases: who holds a lock, and when it was renewed."""

from __future__ import annotations

from datetime import datetime

from stowplan.objects.meta import ApiValue, Object


class LeaseSpec(ApiValue, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None


class Lease(Object, frozen=True):
    spec: LeaseSpec = LeaseSpec()

    @property
    def renewed(self) -> float:
        """Seconds since the epoch; minus infinity if it was never renewed."""
        return float("-inf") if self.spec.renew_time is None else self.spec.renew_time.timestamp()
