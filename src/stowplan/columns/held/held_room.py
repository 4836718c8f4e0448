"""Room on nodes that is held for pods which do not exist yet, or not any more.

`HeldRoom` has the holdings of one `HoldingSource`, by key. The room of a slot without a pod is held (`state.hold`), so
that every filter of every profile finds it taken; it is no pod, so nothing can bind, evict or count it. Which pod has
which slot follows from the objects, so it is the same after a restart and in a trial:

    1  the owner has the owner's slot, and no other pod can have it
    2  a pod has a slot of its own node: the one that the object reports, or else the first free one
    3  a pod on a node without a free slot has one of another node (`move`), until the object reports it

A holding with an owner is in force while the owner has a node. Each operation costs what is on one node, and a trial
undoes it exactly (`trial.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from stowplan.columns.held.held_slots import HeldSlots
from stowplan.columns.held.source import Holding, HoldingSource
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

Hold = Callable[[str, str, Mapping[str, int]], None]
FEW = 16  # slots that are offered first: one is enough, and an application may have thousands


class HeldRoom:
    def __init__(
        self,
        source: HoldingSource,
        held: Mapping[str, Any],
        hold: Hold,
        release: Callable[[str], None],
        journaled: Callable[[Callable[[], object]], None],
    ) -> None:
        self._source = source
        self._held, self._hold, self._release, self._journaled = held, hold, release, journaled
        self._holdings: dict[str, HeldSlots] = {}
        self._key_of: dict[str, str] = {}  # of the holding of a pod on a node, by uid

    # -- questions

    def for_pod(self, pod: Pod) -> HeldSlots | None:
        """Return what is held for pods like this one."""
        key = self._source.key_of(pod) if self._holdings else ""
        return self._holdings.get(key) if key else None

    def get(self, key: str) -> HeldSlots | None:
        return self._holdings.get(key)

    def offers(self, pod: Pod, most: int | None = FEW) -> tuple[list[str], bool]:
        """Return names under which room is held that this pod may take, at most so many; and if there are more."""
        slots = self.for_pod(pod)
        if slots is None or not slots.free or pod.uid == slots.owner:
            return [], False
        key = self._source.key_of(pod)
        names = [self._held_as(key, slot) for slot in islice(slots.free, most)]
        return names, len(names) < len(slots.free)

    # -- pods

    def pod_added(self, pod: Pod, node_name: str) -> None:
        """A pod is on a node now."""
        key = self._source.key_of(pod)
        if key:
            self._set_pod(key, pod.uid, (pod.name, node_name))
            self._pod_changed(key, pod.uid, node_name)

    def pod_removed(self, uid: str) -> None:
        """A pod is no longer on its node."""
        key = self._key_of.get(uid, "")
        if key:
            _, node_name = self._holdings[key].pods[uid]
            self._set_pod(key, uid, None)
            self._pod_changed(key, uid, node_name)
            self._delete_if_empty(key)

    def move(self, uid: str) -> None:
        """Give a pod without a slot on its node a slot of another node."""
        key = self._key_of.get(uid, "")
        slots = self._holdings.get(key)
        if slots is not None and slots.owner and slots.free and uid != slots.owner and not slots.slot_of(uid):
            slot = next(iter(slots.free))
            self._change(slots.moved, slot, uid)
            self._sync(key, slot)

    def copy_moves(self, other: HeldRoom) -> None:
        """Move slots as in another state with the same objects and pods: no object reports these moves yet."""
        for key, theirs in other._holdings.items():
            mine = self._holdings.get(key)
            moved = {slot: uid for slot, uid in theirs.moved.items() if theirs.taken_by(slot) == uid}
            if mine is not None and moved:
                for slot, uid in moved.items():
                    self._change(mine.moved, slot, uid)
                self._assign_all(key)

    def _pod_changed(self, key: str, uid: str, node_name: str) -> None:
        slots = self._holdings[key]
        if uid == slots.owner:  # the whole holding comes into force, or ends
            self._assign_all(key)
        elif slots.holding.slots:
            self._assign_on(key, node_name)
            self._move_as_reported(key, [*slots.pods_on.get(node_name, ()), *slots.reported_on(node_name)])
            for slot in list(slots.moved):
                self._sync(key, slot)

    # -- objects

    def put(self, found: Object) -> None:
        """The object that holds room is new, or has changed."""
        holding = self._source.holding(found)
        slots = self._holdings.get(found.key) or self._new(found.key)
        if slots.holding != holding:
            self._define(found.key, holding)

    def drop(self, key: str) -> None:
        """The object that holds room is deleted."""
        if key in self._holdings:
            self._define(key, Holding())
            self._delete_if_empty(key)

    def _define(self, key: str, holding: Holding) -> None:
        before = self._holdings[key].holding.slots
        self._set(key, holding)
        self._assign_all(key)
        for slot in before.keys() - holding.slots.keys():
            self._sync(key, slot)

    # -- which pod has which slot

    def _assign_all(self, key: str) -> None:
        slots = self._holdings[key]
        names, owner_slot = slots.holding.slots, slots.holding.owner_slot if slots.has_owner_slot else None
        for slot in [each for each in slots.pod_in if each not in names or each == owner_slot]:
            self._assign(slots, slot, "")
        for node_name in slots.slots_on:
            self._assign_on(key, node_name)
        for slot, uid in list(slots.moved.items()):
            if slot not in names or not slots.taken_by(slot) or uid == slots.owner:
                self._change(slots.moved, slot, None)
        reported = slots.reported_slots
        self._move_as_reported(key, [slots.uid_by_name[name] for name in reported if name in slots.uid_by_name])
        for slot in names:
            self._sync(key, slot)

    def _assign_on(self, key: str, node_name: str) -> None:
        """Give the slots of a node to the pods there."""
        slots = self._holdings[key]
        for slot, uid in slots.assignment(node_name).items():
            if slots.pod_in.get(slot, "") != uid:
                self._assign(slots, slot, uid)
                self._sync(key, slot)

    def _move_as_reported(self, key: str, uids: Iterable[str]) -> None:
        """Give pods without a slot on their node the slots that the object reports for them."""
        slots = self._holdings[key]
        for uid in uids:
            slot = slots.reported_slots.get(slots.pods[uid][0], "") if uid != slots.owner else ""
            if slot in slots.holding.slots and not slots.taken_by(slot) and not slots.slot_of(uid):
                self._change(slots.moved, slot, uid)

    def _sync(self, key: str, slot: str) -> None:
        """Hold the room of a slot if it is free, and release it if not."""
        slots, name = self._holdings[key], self._held_as(key, slot)
        found = slots.holding.slots.get(slot)
        free = found is not None and slots.in_force and not slots.taken_by(slot)
        wanted = found if free else None
        if slots.free.get(slot) != wanted:
            self._change(slots.free, slot, wanted)
        if wanted is None and name in self._held:
            self._release(name)
        elif wanted is not None and self._held.get(name) != (wanted.node, wanted.amounts):
            self._hold(name, wanted.node, wanted.amounts)

    def _held_as(self, key: str, slot: str) -> str:
        return f"{self._source.kind.__name__} {key}#{slot}"

    # -- changes that a trial undoes exactly

    def _new(self, key: str) -> HeldSlots:
        slots = self._holdings[key] = HeldSlots()
        self._journaled(lambda: self._holdings.pop(key, None))
        return slots

    def _delete_if_empty(self, key: str) -> None:
        slots = self._holdings[key]
        if not slots.pods and not slots.holding.slots:
            del self._holdings[key]
            self._journaled(lambda: self._holdings.__setitem__(key, slots))

    def _set(self, key: str, holding: Holding) -> None:
        before = self._holdings[key].define(holding)
        self._journaled(lambda: self._set(key, before))

    def _set_pod(self, key: str, uid: str, pod: tuple[str, str] | None) -> None:
        before = (self._holdings.get(key) or self._new(key)).set_pod(uid, pod)
        if pod is None:
            self._key_of.pop(uid, None)
        else:
            self._key_of[uid] = key
        self._journaled(lambda: self._set_pod(key, uid, before))

    def _assign(self, slots: HeldSlots, slot: str, uid: str) -> None:
        before = slots.assign(slot, uid)
        self._journaled(lambda: self._assign(slots, slot, before))

    def _change(self, what: dict[str, Any], slot: str, value: Any) -> None:
        before = what.get(slot)
        if value is None:
            what.pop(slot, None)
        else:
            what[slot] = value
        self._journaled(lambda: self._change(what, slot, before))
