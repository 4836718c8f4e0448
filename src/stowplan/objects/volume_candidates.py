"""Which existing volumes a claim could be bound to, whatever the node.

A volume that names the claim is meant for it, and no other will do. Failing that, the smallest volume is taken that is
free, large enough and alike in class, mode and access. Volumes of a class are kept on a `Shelf`, those that are alike
side by side and by size, so that finding them costs no look at each.
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
    """Where something can be reached: node-selector terms, None for everywhere.

    By far the most ask for one value of one label (a zone, a host); `key` and `value` have it then.
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
    """A volume on a shelf: its size, and its traits (mode, attributes class, access modes), which must suit a claim."""

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
        """Volumes that name this claim and would do. Without a uid, they name any claim of that name."""
        return [
            found
            for found in self._reserved.get((claim.namespace, claim.name), ())
            if (ref := found.volume.spec.claim_ref) is not None
            and ref.uid in ("", claim.uid)
            and found.size >= requested(claim)
            and found.traits[:2] == _kind(claim.spec)
        ]

    def free(self, claim: PersistentVolumeClaim) -> list[VolumeEntry]:
        """Volumes that nobody has and that would do, the smallest first."""
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
    """How much storage the claim asks for, in nano-bytes: sizes are compared exactly."""
    return quantity.nanos(claim.spec.resources.requests.get("storage", "0"))
