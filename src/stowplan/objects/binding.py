"""Which existing volumes a claim could be bound to, whatever the node.

A volume that names the claim is meant for it, and no other will do. Failing that, the smallest volume is taken that is
free, large enough and alike in class, mode and access.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stowplan.objects import quantity, selectors
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim

FILESYSTEM = "Filesystem"


class Offers(msgspec.Struct, frozen=True):
    """Volumes for one claim: those that name it, and those that are free, smallest first."""

    reserved: tuple[PersistentVolume, ...]
    free: tuple[PersistentVolume, ...]


def offers(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> Offers:
    """What there is for a claim among the volumes of its class."""
    fitting = [volume for volume in volumes if _fits(claim, volume)]
    selector = selectors.EVERYTHING if claim.spec.selector is None else selectors.compile_selector(claim.spec.selector)
    free = [
        volume
        for volume in fitting
        if volume.spec.claim_ref is None
        and volume.status.phase == "Available"
        and selectors.matches(selector, volume.labels)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    ]
    free.sort(key=_capacity)
    return Offers(tuple(volume for volume in fitting if is_reserved(volume, claim)), tuple(free))


def is_reserved(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Does the volume name this claim as its own? Without a uid, any claim of that name will do."""
    named = volume.spec.claim_ref
    if named is None or (named.namespace, named.name) != (claim.namespace, claim.name):
        return False
    return named.uid in ("", claim.uid)


def requested(claim: PersistentVolumeClaim) -> int:
    """How much storage the claim asks for, in nano-bytes: sizes are compared exactly."""
    return quantity.nanos(claim.spec.resources.requests.get("storage", "0"))


def _capacity(volume: PersistentVolume) -> int:
    return quantity.nanos(volume.spec.capacity.get("storage", "0"))


def _fits(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """What is asked even of a volume that names the claim."""
    wanted, found = claim.spec, volume.spec
    return (
        _capacity(volume) >= requested(claim)
        and (wanted.volume_mode or FILESYSTEM) == (found.volume_mode or FILESYSTEM)
        and (wanted.volume_attributes_class_name or "") == (found.volume_attributes_class_name or "")
        and not volume.terminating
    )
