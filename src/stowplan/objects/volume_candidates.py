"""What decides if a claim can be bound to an existing volume: size, traits, and the nodes that can access the volume.

If a volume refers to the claim, only this volume is a candidate. Otherwise the smallest volume is taken that is free,
large enough and has the same class, mode and access modes (`columns/volumes/volume_index.py`).
"""

from __future__ import annotations

import msgspec

from stowplan.objects import quantity
from stowplan.objects.selectors import NodeTerm
from stowplan.objects.storage import ClaimSpec, PersistentVolume, PersistentVolumeClaim, VolumeSpec

FILESYSTEM = "Filesystem"


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
    """A volume with its size and its traits (mode, attributes class, access modes), which must match a claim.

    `order` is size and number: of two volumes with the same size, the one with the smaller number comes first.
    """

    volume: PersistentVolume
    number: int
    size: int
    traits: tuple[str, str, frozenset[str]]
    target: ReachableNodes
    order: tuple[int, int]


def entry(volume: PersistentVolume, number: int, before: VolumeEntry | None = None) -> VolumeEntry:
    """Return the entry of a volume. `before`: of another version, which mostly differs in the claim it refers to."""
    if before is not None and _alike(volume.spec, before.volume.spec):
        return VolumeEntry(volume, number, before.size, before.traits, before.target, (before.size, number))
    size = quantity.nanos(volume.spec.capacity.get("storage", "0"))
    traits = (*kind_of(volume.spec), frozenset(volume.spec.access_modes))
    return VolumeEntry(volume, number, size, traits, target(volume.node_terms), (size, number))


def _alike(spec: VolumeSpec, before: VolumeSpec) -> bool:
    """True if these parts are the same values, not only equal ones: an assumed version shares them with the actual."""
    return (
        spec.capacity is before.capacity
        and spec.access_modes is before.access_modes
        and spec.node_affinity is before.node_affinity
        and kind_of(spec) == kind_of(before)
    )


def kind_of(spec: ClaimSpec | VolumeSpec) -> tuple[str, str]:
    """Return the mode and the attributes class."""
    return spec.volume_mode or FILESYSTEM, spec.volume_attributes_class_name or ""


def requested(claim: PersistentVolumeClaim) -> int:
    """Return the claim's storage request in nano-bytes: sizes are compared exactly."""
    return quantity.nanos(claim.spec.resources.requests.get("storage", "0"))
