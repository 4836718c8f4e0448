"""Which devices allocated claims take: whole devices, and shares of devices that allow several allocations.

A claim is allocated if the store says so: claims of assumed pods are assumed to be allocated. Devices that a claim has
admin access to are not taken.
"""

from __future__ import annotations

from collections import Counter

from stowplan.columns.devices.pools import DeviceId
from stowplan.columns.devices.slices import PoolId
from stowplan.objects.quantity import nanos
from stowplan.objects.resource_claims import OF_EXTENDED_RESOURCES, AllocatedDevice, AllocationResult, ResourceClaim


class SharedDevice:
    """The shares of one device: how many there are, and what they consume, in nano-units by capacity."""

    __slots__ = ("consumed", "shares")

    def __init__(self) -> None:
        self.shares = 0
        self.consumed: dict[str, int] = {}


class DevicesInUse:
    def __init__(self) -> None:
        self.whole: Counter[DeviceId] = Counter()
        self.shared: dict[DeviceId, SharedDevice] = {}
        self.of_extended: dict[str, str] = {}  # the keys of claims for extended resources, by the uid of their pod
        self._extended: dict[str, str] = {}  # the same the other way round
        self._of_claim: dict[str, AllocationResult] = {}  # by the claim's key

    def put(self, claim: ResourceClaim) -> set[PoolId]:
        """Count what a claim takes now. Return the pools of which more or fewer devices are in use."""
        owner = claim.controller() if claim.annotations.get(OF_EXTENDED_RESOURCES) == "true" else None
        if owner is not None and self.of_extended.setdefault(owner.uid, claim.key) == claim.key:
            self._extended[claim.key] = owner.uid
        before, now = self._of_claim.get(claim.key), claim.allocation
        if before is now or (before is not None and now is not None and before.devices == now.devices):
            if now is not None:
                self._of_claim[claim.key] = now
            return set()
        changed = self._drop(claim.key)
        if now is not None:
            self._of_claim[claim.key] = now
            changed |= self._count(now, +1)
        return changed

    def drop(self, key: str) -> set[PoolId]:
        uid = self._extended.pop(key, None)
        if uid is not None:
            del self.of_extended[uid]
        return self._drop(key)

    def _drop(self, key: str) -> set[PoolId]:
        before = self._of_claim.pop(key, None)
        return set() if before is None else self._count(before, -1)

    def clear(self) -> None:
        for each in (self.whole, self.shared, self.of_extended, self._extended, self._of_claim):
            each.clear()

    def is_used(self, device: DeviceId) -> bool:
        """True if the device is taken, or a share of it."""
        return device in self.whole or device in self.shared

    def _count(self, allocation: AllocationResult, sign: int) -> set[PoolId]:
        pools: set[PoolId] = set()
        for each in allocation.devices.results:
            if each.admin_access:
                continue
            pools.add((each.driver, each.pool))
            if each.share_id is None:
                self.whole[each.device_id] += sign
                if not self.whole[each.device_id]:
                    del self.whole[each.device_id]
            else:
                self._count_share(each, sign)
        return pools

    def _count_share(self, share: AllocatedDevice, sign: int) -> None:
        found = self.shared.setdefault(share.device_id, SharedDevice())
        found.shares += sign
        for name, amount in share.consumed_capacity.items():
            found.consumed[name] = found.consumed.get(name, 0) + sign * nanos(amount)
        if not found.shares:
            del self.shared[share.device_id]
