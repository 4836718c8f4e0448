"""A Lease: who holds something, and when that was last said."""

from __future__ import annotations

from datetime import datetime

import msgspec

from stowplan.objects.meta import Object


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None


class Lease(Object, frozen=True, rename="camel", omit_defaults=True):
    spec: LeaseSpec = LeaseSpec()

    @property
    def renewed(self) -> float:
        """Seconds since the epoch; long ago, if it never was."""
        return float("-inf") if self.spec.renew_time is None else self.spec.renew_time.timestamp()
