"""All volumes, sorted by class, traits and size, and kept up to date volume by volume.

Most volumes are accessible from one value of one label: a host, or a zone. For these the index knows, for each value,
the volumes in order of their size. So the smallest free volume of every node is one look-up for all nodes together
(`AlikeVolumes.first_of`), and a volume that is taken changes one entry of that.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import Counter
from itertools import count
from operator import attrgetter
from typing import TypeAlias

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.columns.nodes.table import ABSENT, LabelColumn
from stowplan.columns.nodes.views import Nodes
from stowplan.columns.state import ClusterState
from stowplan.columns.volumes.attachments import NOWHERE
from stowplan.objects import selectors, volume_candidates
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from stowplan.objects.volume_candidates import VolumeEntry

MOST_FIRSTS = 64  # answers that are kept for volumes alike

Traits: TypeAlias = tuple[str, str, frozenset[str]]
_order = attrgetter("order")


class FirstVolumes:
    """The numbers of the volumes that come first, by the code of a label's value, for one size; `NOWHERE` for none.

    `skipped`: so many others come before them.
    """

    __slots__ = ("_codes", "_size", "_skipped", "_version", "by_code")

    def __init__(self, size: int, skipped: int, column: LabelColumn) -> None:
        self._size, self._skipped, self._version = size, skipped, column.version
        self._codes = column.values.codes
        self.by_code: Ints = np.full(len(column.values), NOWHERE, np.int64)

    def holds(self, column: LabelColumn) -> bool:
        """True while the codes mean the same values. A column that was dropped and made again counts versions anew."""
        same = self._codes is column.values.codes and self._version == column.version
        return same and len(self.by_code) == len(column.values)

    def put(self, value: str, entries: list[VolumeEntry]) -> None:
        code = self._codes.get(value)
        # A value that is new since this was made has a code beyond the end; the next reader makes all of it anew.
        if code is not None and code != ABSENT and code < len(self.by_code):
            at = bisect_left(entries, (self._size,), key=_order) + self._skipped
            self.by_code[code] = entries[at].number if at < len(entries) else NOWHERE


class AlikeVolumes:
    """The free volumes of one class with the same traits.

    key   the label by whose value all of these are accessible; empty if there is no such label
    """

    def __init__(self) -> None:
        self.key = ""
        self.entries: list[VolumeEntry] = []  # the smallest first
        self._keys: Counter[str] = Counter()  # how many are accessible by each label; "": by something else
        self._by_value: dict[str, list[VolumeEntry]] = {}
        self._firsts: dict[tuple[int, int], FirstVolumes] = {}

    def add(self, entry: VolumeEntry) -> None:
        insort(self.entries, entry, key=_order)
        self._keys[entry.target.key] += 1
        insort(self._by_value.setdefault(entry.target.value, []), entry, key=_order)
        self._changed(entry)

    def remove(self, entry: VolumeEntry) -> None:
        for entries in (self.entries, self._by_value[entry.target.value]):
            del entries[bisect_left(entries, entry.order, key=_order)]
        self._keys[entry.target.key] -= 1
        if not self._keys[entry.target.key]:
            del self._keys[entry.target.key]
            self._firsts.clear()  # `key` may be another one from now on
        self._changed(entry)

    def _changed(self, entry: VolumeEntry) -> None:
        self.key = next(iter(self._keys)) if len(self._keys) == 1 else ""
        if not self.key:
            self._firsts.clear()
        for first in self._firsts.values():
            first.put(entry.target.value, self._by_value[entry.target.value])
        if not self._by_value[entry.target.value]:
            del self._by_value[entry.target.value]

    def first_of(self, nodes: Nodes, size: int, skipped: int = 0) -> Ints:
        """Return the number of the smallest volume of at least this size for each node, which it can access by `key`.

        `skipped`: not the smallest, but the one after so many others.
        """
        by_code = self._by_code(size, skipped, nodes.cluster.state.table.label(self.key))
        return by_code.take(nodes.label(self.key).codes)

    def _by_code(self, size: int, skipped: int, column: LabelColumn) -> Ints:
        found = self._firsts.get((size, skipped))
        if found is None or not found.holds(column):
            if len(self._firsts) >= MOST_FIRSTS:
                self._firsts.clear()
            found = self._firsts[size, skipped] = FirstVolumes(size, skipped, column)
            for value, entries in self._by_value.items():
                found.put(value, entries)
        return found.by_code


class VolumesOfClass:
    """The volumes of one class: those that refer to a claim, and the free ones."""

    def __init__(self) -> None:
        self._reserved: dict[tuple[str, str], dict[int, VolumeEntry]] = {}
        self._free: dict[Traits, AlikeVolumes] = {}

    def add(self, entry: VolumeEntry) -> None:
        named = entry.volume.spec.claim_ref
        if named is not None:
            self._reserved.setdefault((named.namespace, named.name), {})[entry.number] = entry
        elif entry.volume.status.phase == "Available":
            self._free.setdefault(entry.traits, AlikeVolumes()).add(entry)

    def remove(self, entry: VolumeEntry) -> None:
        named = entry.volume.spec.claim_ref
        if named is not None:
            reserved = self._reserved[named.namespace, named.name]
            del reserved[entry.number]
            if not reserved:
                del self._reserved[named.namespace, named.name]
        elif entry.volume.status.phase == "Available":
            alike = self._free[entry.traits]
            alike.remove(entry)
            if not alike.entries:
                del self._free[entry.traits]

    def reserved(self, claim: PersistentVolumeClaim) -> list[VolumeEntry]:
        """Return suitable volumes that refer to this claim. A reference without a uid is to any claim of the name."""
        found = self._reserved.get((claim.namespace, claim.name), {})
        size, kind = volume_candidates.requested(claim), volume_candidates.kind_of(claim.spec)
        return [
            each
            for each in sorted(found.values(), key=attrgetter("number"))
            if (ref := each.volume.spec.claim_ref) is not None
            and ref.uid in ("", claim.uid)
            and each.size >= size
            and each.traits[:2] == kind
        ]

    def alike(self, claim: PersistentVolumeClaim) -> list[AlikeVolumes]:
        """Return the free volumes with the right traits, whatever their size."""
        kind, modes = volume_candidates.kind_of(claim.spec), set(claim.spec.access_modes)
        return [alike for traits, alike in self._free.items() if traits[:2] == kind and modes <= traits[2]]

    def free(self, claim: PersistentVolumeClaim) -> list[VolumeEntry]:
        """Return suitable free volumes, the smallest first."""
        size = volume_candidates.requested(claim)
        fitting = [each.entries[bisect_left(each.entries, (size,), key=_order) :] for each in self.alike(claim)]
        found = fitting[0] if len(fitting) == 1 else list(heapq.merge(*fitting, key=attrgetter("size")))
        if claim.spec.selector is None:
            return found
        selector = selectors.compile_selector(claim.spec.selector)
        return [each for each in found if selectors.matches(selector, each.volume.labels)]


class VolumeIndex:
    """The volumes of a state. Each has a number, which a later version of the volume keeps."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._changes = state.store.follow(PersistentVolume)
        self._seen = 0  # the place in `_changes` up to which all is known
        self._numbers = count()
        self._entries: dict[str, VolumeEntry] = {}
        self._by_number: dict[int, VolumeEntry] = {}
        self._classes: dict[str, VolumesOfClass] = {}

    def of_class(self, name: str) -> VolumesOfClass:
        self._catch_up()
        return self._classes.get(name) or VolumesOfClass()

    def volume(self, number: int) -> PersistentVolume:
        return self._by_number[number].volume

    def _catch_up(self) -> None:
        store = self.state.store
        changes = self._changes.since(self._seen)
        if changes is None:
            for index in (self._entries, self._by_number, self._classes):
                index.clear()
            changes = [(key, False) for key in store.every(PersistentVolume)]
        for key, removed in changes:
            self._put(key, None if removed else store.get(PersistentVolume, key))
        self._seen = self._changes.end

    def _put(self, name: str, volume: PersistentVolume | None) -> None:
        before = self._entries.get(name)
        if before is not None:
            if before.volume is volume:
                return
            del self._entries[name], self._by_number[before.number]
            if not before.volume.terminating:
                self._class_of(before).remove(before)
        if volume is None:
            return
        number = next(self._numbers) if before is None else before.number
        entry = self._entries[name] = self._by_number[number] = volume_candidates.entry(volume, number, before)
        if not volume.terminating:
            self._class_of(entry).add(entry)

    def _class_of(self, entry: VolumeEntry) -> VolumesOfClass:
        return self._classes.setdefault(entry.volume.storage_class, VolumesOfClass())
