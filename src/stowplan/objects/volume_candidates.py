"""The existing volumes that a claim can be bound to, on any node.

If a volume refers to the claim, only this volume is a candidate. Otherwise the smallest volume is taken that is free,
large enough and has the same class, mode and access modes. `VolumesOfClass` sorts the volumes of a class by these and
by size, so that a search does not look at each volume.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from operator import attrgetter

import msgspec

from stowplan.objects import quantity, selectors
from stowplan.objects.selectors import NodeTerm
from stowplan.objects.storage import ClaimSpec, PersistentVolume, PersistentVolumeClaim, VolumeSpec

FILESYSTEM = "Filesystem"
_by_size = attrgetter("size")


class ReachableNodes(msgspec.Struct, frozen=True):
    """The nodes that can access a volume: node-selector terms; None for all nodes.

    Most terms require one value of one label, such as a zone or a host; then `key` and `value` are set.
    """

    terms: tuple[NodeTerm, ...] | None
    key: str = ""
    value: str = ""


def target(terms: tuple[NodeTerm, ...] | None) -> ReachableNodes:
    if terms is not None and len(terms) == 1 and len(terms[0].labels) == 1 and not terms[0].named:
        asked = terms[0].labels[0]
        if asked.operator == "In" and len(asked.values) == 1:
            return ReachableNodes(terms, asked.key, asked.values[0])
    return ReachableNodes(terms)


class VolumeEntry(msgspec.Struct, frozen=True, eq=False):
    """A volume with its size and its traits (mode, attributes class, access modes), which must match a claim."""

    volume: PersistentVolume
    size: int
    traits: tuple[str, str, frozenset[str]]
    target: ReachableNodes


def entry(volume: PersistentVolume) -> VolumeEntry:
    size = quantity.nanos(volume.spec.capacity.get("storage", "0"))
    traits = (*_kind(volume.spec), frozenset(volume.spec.access_modes))
    return VolumeEntry(volume, size, traits, target(volume.node_terms))


def _kind(spec: ClaimSpec | VolumeSpec) -> tuple[str, str]:
    return spec.volume_mode or FILESYSTEM, spec.volume_attributes_class_name or ""


class VolumesOfClass:
    """The volumes of one class."""

    def __init__(self) -> None:
        self._reserved: dict[tuple[str, str], list[VolumeEntry]] = {}
        self._free: dict[tuple[str, str, frozenset[str]], list[VolumeEntry]] = {}
        self._in_order = True

    def add(self, added: VolumeEntry) -> None:
        volume, named = added.volume, added.volume.spec.claim_ref
        if volume.terminating:
            return
        if named is not None:
            self._reserved.setdefault((named.namespace, named.name), []).append(added)
        elif volume.status.phase == "Available":
            self._free.setdefault(added.traits, []).append(added)
            self._in_order = False

    def reserved(self, claim: PersistentVolumeClaim) -> list[VolumeEntry]:
        """Return suitable volumes that refer to this claim. A reference without a uid is to any claim of the name."""
        return [
            found
            for found in self._reserved.get((claim.namespace, claim.name), ())
            if (ref := found.volume.spec.claim_ref) is not None
            and ref.uid in ("", claim.uid)
            and found.size >= requested(claim)
            and found.traits[:2] == _kind(claim.spec)
        ]

    def free(self, claim: PersistentVolumeClaim) -> list[VolumeEntry]:
        """Return suitable free volumes, the smallest first."""
        self._sort()
        wanted, modes, size = _kind(claim.spec), set(claim.spec.access_modes), requested(claim)
        fitting = [
            alike[bisect_left(alike, size, key=_by_size) :]
            for traits, alike in self._free.items()
            if traits[:2] == wanted and modes <= traits[2]
        ]
        found = fitting[0] if len(fitting) == 1 else list(heapq.merge(*fitting, key=_by_size))
        if claim.spec.selector is None:
            return found
        selector = selectors.compile_selector(claim.spec.selector)
        return [each for each in found if selectors.matches(selector, each.volume.labels)]

    def _sort(self) -> None:
        if not self._in_order:
            for alike in self._free.values():
                alike.sort(key=_by_size)
            self._in_order = True


def requested(claim: PersistentVolumeClaim) -> int:
    """Return the claim's storage request in nano-bytes: sizes are compared exactly."""
    return quantity.nanos(claim.spec.resources.requests.get("storage", "0"))
