"""Devices that must be prepared before a pod is bound: the conditions that their drivers report in the claim."""

from __future__ import annotations

from collections.abc import Iterable

from stowplan.objects.resource_claims import AllocatedDevice, AllocationResult, ResourceClaim

DEFAULT_TIMEOUT = 600.0


def needs_preparing(allocation: AllocationResult | None) -> bool:
    return allocation is not None and any(each.binding_conditions for each in allocation.devices.results)


def is_ready(claim: ResourceClaim) -> bool | str:
    """Return if all devices of a claim are prepared; or why they never will be."""
    if claim.allocation is None:
        return f"claim {claim.key} is not allocated"
    ready = True
    for device in claim.allocation.devices.results:
        if not device.binding_conditions:
            continue
        found = _conditions(claim, device)
        failed = next((each for each in device.binding_failure_conditions if found.get(each) == "True"), None)
        if failed is not None:
            return f"claim {claim.key} binding failed: {failed}"
        ready = ready and all(found.get(each) == "True" for each in device.binding_conditions)
    return ready


def _conditions(claim: ResourceClaim, device: AllocatedDevice) -> dict[str, str]:
    """Return the conditions of a device by type."""
    for status in claim.status.devices:
        place = (status.driver, status.pool, status.device, status.share_id)
        if place == (*device.device_id, device.share_id):
            return {each.type: each.status for each in status.conditions}
    return {}


def is_late(claim: ResourceClaim, wall_time: float, timeout: float) -> bool:
    """True if the devices of a claim should have been prepared by now."""
    allocation = claim.allocation
    if allocation is None or allocation.allocation_timestamp is None or not needs_preparing(allocation):
        return False
    return allocation.allocation_timestamp.timestamp() + timeout < wall_time


def is_unusable(claim: ResourceClaim, wall_time: float, timeout: float) -> bool:
    """True if an allocated claim should be allocated again: its devices failed, or are not prepared in time."""
    ready = is_ready(claim)
    return isinstance(ready, str) or (not ready and is_late(claim, wall_time, timeout))


def free_to_deallocate(claims: Iterable[ResourceClaim], pod_uid: str) -> list[ResourceClaim]:
    """Return the claims that nobody but this pod uses."""
    return [claim for claim in claims if [each.uid for each in claim.status.reserved_for] in ([], [pod_uid])]
