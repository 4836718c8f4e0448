"""A Lease: who holds something, and when that was last said."""

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
        """Seconds since the epoch; long ago, if it never was."""
        return float("-inf") if self.spec.renew_time is None else self.spec.renew_time.timestamp()
