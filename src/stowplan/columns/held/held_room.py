"""Stand-ins: room on nodes that is held for pods which do not exist yet, or not any more.

A book is what one reservation comes to: its slots, and the pods with a node that it is meant for. A slot that no pod
has is held (`state.hold`), so every filter of every profile finds that room taken; nobody can bind, evict or count it.
Who has which slot follows from the objects, so it is the same after a restart, and inside a what-if:

    1  the owner's own slot is "driver", and nobody else's
    2  a pod has a slot on its own node: the one that the object's status names, else the first that is left
    3  a pod that was placed where none is left has one of another node (`move`), until the object says so, too

A book with an owner is in force while that pod has a node; without it nothing is held. Each operation costs what is on
one node, and is undone exactly (`trial.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from stowplan.columns.held.slots import SlotBook
from stowplan.objects import spark
from stowplan.objects.applications import DRIVER
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ReservedSlot, ResourceReservation, reservation_of

if TYPE_CHECKING:
    from stowplan.columns.nodes.views import Cluster

Hold = Callable[[str, str, Mapping[str, int]], None]
FEW = 16  # slots that are looked at first: one will do, and an application may have thousands


class HeldRoom:
    def __init__(
        self,
        held: Mapping[str, Any],
        hold: Hold,
        release: Callable[[str], None],
        journaled: Callable[[Callable[[], object]], None],
    ) -> None:
        self._held, self._hold, self._release, self._journaled = held, hold, release, journaled
        self._books: dict[str, SlotBook] = {}
        self._key_of: dict[str, str] = {}  # the book of a pod on a node, by uid

    # -- questions

    def book(self, pod: Pod) -> SlotBook | None:
        """What is reserved for pods like this one, if anything is."""
        key = reservation_of(pod) if self._books else ""
        return self._books.get(key) if key else None

    def at(self, key: str) -> SlotBook | None:
        return self._books.get(key)

    def offers(self, pod: Pod, most: int | None = FEW) -> tuple[list[str], bool]:
        """Names under which room is held that this pod may take, not more than so many; and whether there are more."""
        book = self.book(pod)
        if book is None or not book.free or pod.uid == book.owner:
            return [], False
        key = reservation_of(pod)
        names = [_held_as(key, slot) for slot in islice(book.free, most)]
        return names, len(names) < len(book.free)

    # -- pods

    def came(self, pod: Pod, node_name: str) -> None:
        """A pod is on a node now."""
        key = reservation_of(pod)
        if key:
            self._note(key, pod.uid, (pod.name, node_name))
            self._settle(key, pod.uid, node_name)

    def left(self, uid: str) -> None:
        """A pod is no longer on its node."""
        key = self._key_of.get(uid, "")
        if key:
            _, node_name = self._books[key].pods[uid]
            self._note(key, uid, None)
            self._settle(key, uid, node_name)
            self._forget_if_empty(key)

    def move(self, uid: str) -> None:
        """A pod that was given a node where no slot is left takes one of another node along."""
        key = self._key_of.get(uid, "")
        book = self._books.get(key)
        if book is not None and book.owner and book.free and uid != book.owner and not book.slot_of(uid):
            slot = next(iter(book.free))
            self._change(book.moved, slot, uid)
            self._sync(key, slot)

    def _settle(self, key: str, uid: str, node_name: str) -> None:
        book = self._books[key]
        if uid == book.owner:  # all of it begins or ends
            self._settle_all(key)
        elif book.slots:
            self._seat(key, node_name)
            self._as_told(key, [*book.on.get(node_name, ()), *book.named_on(node_name)])
            for slot in list(book.moved):
                self._sync(key, slot)

    # -- reservations

    def put(self, found: ResourceReservation) -> None:
        """A reservation is now like this."""
        book = self._books.get(found.key) or self._new(found.key)
        same = book.slots == found.slots and book.owner == found.owner
        if not same or book.named != found.status.pods:
            self._define(found.key, found.slots, found.owner, found.status.pods)

    def drop(self, key: str) -> None:
        """There is no such reservation any more."""
        if key in self._books:
            self._define(key, {}, "", {})
            self._forget_if_empty(key)

    def _define(self, key: str, slots: Mapping[str, ReservedSlot], owner: str, named: Mapping[str, str]) -> None:
        before = self._books[key].slots
        self._set(key, slots, owner, named)
        self._settle_all(key)
        for slot in before.keys() - slots.keys():
            self._sync(key, slot)

    # -- who has which slot

    def _settle_all(self, key: str) -> None:
        book = self._books[key]
        for slot in [each for each in book.seats if each not in book.slots or (book.driven and each == DRIVER)]:
            self._sit(book, slot, "")
        for node_name in book.by_node:
            self._seat(key, node_name)
        for slot in [each for each in book.moved if each not in book.slots or not book.taken_by(each)]:
            self._change(book.moved, slot, None)
        self._as_told(key, [book.names[name] for name in book.places if name in book.names])
        for slot in book.slots:
            self._sync(key, slot)

    def _seat(self, key: str, node_name: str) -> None:
        """Give the slots of a node to the pods there."""
        book = self._books[key]
        for slot, uid in book.seating(node_name).items():
            if book.seats.get(slot, "") != uid:
                self._sit(book, slot, uid)
                self._sync(key, slot)

    def _as_told(self, key: str, uids: Iterable[str]) -> None:
        """Pods without a slot on their node have those that the status says they have."""
        book = self._books[key]
        for uid in uids:
            slot = book.places.get(book.pods[uid][0], "") if uid != book.owner else ""
            if slot in book.slots and not book.taken_by(slot) and not book.slot_of(uid):
                self._change(book.moved, slot, uid)

    def _sync(self, key: str, slot: str) -> None:
        """Hold the room of a free slot, and of no other."""
        book, name = self._books[key], _held_as(key, slot)
        found = book.slots.get(slot)
        free = found is not None and book.in_force and not book.taken_by(slot)
        wanted = found if free else None
        if book.free.get(slot) != wanted:
            self._change(book.free, slot, wanted)
        if wanted is None and name in self._held:
            self._release(name)
        elif wanted is not None and self._held.get(name) != (wanted.node, wanted.amounts):
            self._hold(name, wanted.node, wanted.amounts)

    # -- the books, undone exactly

    def _new(self, key: str) -> SlotBook:
        book = self._books[key] = SlotBook()
        self._journaled(lambda: self._books.pop(key, None))
        return book

    def _forget_if_empty(self, key: str) -> None:
        book = self._books[key]
        if not book.pods and not book.slots:
            del self._books[key]
            self._journaled(lambda: self._books.__setitem__(key, book))

    def _set(self, key: str, slots: Mapping[str, ReservedSlot], owner: str, named: Mapping[str, str]) -> None:
        book = self._books[key]
        before = book.slots, book.owner, book.named
        book.define(slots, owner, named)
        self._journaled(lambda: self._set(key, *before))

    def _note(self, key: str, uid: str, pod: tuple[str, str] | None) -> None:
        before = (self._books.get(key) or self._new(key)).note(uid, pod)
        if pod is None:
            self._key_of.pop(uid, None)
        else:
            self._key_of[uid] = key
        self._journaled(lambda: self._note(key, uid, before))

    def _sit(self, book: SlotBook, slot: str, uid: str) -> None:
        before = book.sit(slot, uid)
        self._journaled(lambda: self._sit(book, slot, before))

    def _change(self, what: dict[str, Any], slot: str, value: Any) -> None:
        before = what.get(slot)
        if value is None:
            what.pop(slot, None)
        else:
            what[slot] = value
        self._journaled(lambda: self._change(what, slot, before))


def reserved_slots(pod: Pod, cluster: Cluster) -> int:
    """Places that are, or with this very pod will be, held for pods of its application that do not exist yet."""
    book, needs = cluster.stand_ins.book(pod), spark.executors(pod)
    if book is not None and book.in_force:
        return len(book.free)
    return 0 if needs is None or needs.problem else needs.least


def _held_as(key: str, slot: str) -> str:
    return f"{key}#{slot}"
