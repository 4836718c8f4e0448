"""One reservation's book: its slots, the pods that it is meant for, and who sits where."""

from __future__ import annotations

from collections.abc import Mapping

from stowplan.objects.applications import DRIVER
from stowplan.objects.reservations import ReservedSlot


class SlotBook:
    """Pods are known by uid, with their name and node; only those that have a node."""

    __slots__ = (
        "by_node", "free", "moved", "named", "names", "on", "owner", "places", "pods", "seated", "seats", "slots",
    )  # fmt: skip

    def __init__(self) -> None:
        self.slots: Mapping[str, ReservedSlot] = {}
        self.by_node: Mapping[str, list[str]] = {}  # the slots' names
        self.owner = ""  # the uid of the pod that all of it depends on
        self.named: Mapping[str, str] = {}  # what the status says: the pod's name by slot
        self.places: Mapping[str, str] = {}  # the same the other way round
        self.pods: dict[str, tuple[str, str]] = {}
        self.names: dict[str, str] = {}  # uid by name
        self.on: dict[str, dict[str, str]] = {}  # by node: uid to name
        self.seats: dict[str, str] = {}  # slot to the uid of a pod on its node
        self.seated: dict[str, str] = {}  # the same the other way round
        self.moved: dict[str, str] = {}  # slot to the uid of a pod elsewhere, which counts if that has no seat
        self.free: dict[
            str, ReservedSlot
        ] = {}  # slots that pods of this book may still take, and that are held till then

    @property
    def in_force(self) -> bool:
        return bool(self.slots) and (not self.owner or self.owner in self.pods)

    @property
    def driven(self) -> bool:
        """Has it a slot that is the owner's alone?"""
        return bool(self.owner) and DRIVER in self.slots

    def members(self, besides: str = "") -> int:
        """How many pods it has, but for the owner and one more."""
        return len(self.pods) - (self.owner in self.pods) - (besides in self.pods and besides != self.owner)

    def taken_by(self, slot: str) -> str:
        """The uid of the pod that has a slot; empty if none has."""
        if self.owner and slot == DRIVER:
            return self.owner
        if slot in self.seats:
            return self.seats[slot]
        uid = self.moved.get(slot, "")
        return uid if uid in self.pods and uid not in self.seated else ""

    def slot_of(self, uid: str) -> str:
        """The slot that a pod has, if it has one."""
        if uid in self.seated:
            return self.seated[uid]
        return next((slot for slot, other in self.moved.items() if other == uid and self.taken_by(slot) == uid), "")

    def seating(self, node_name: str) -> dict[str, str]:
        """Who should have which slot of a node; empty for nobody."""
        seats = dict.fromkeys(self.by_node.get(node_name, ()), "")
        left = dict(self.on.get(node_name, {})) if seats else {}
        if self.driven:
            seats.pop(DRIVER, None)
            left.pop(self.owner, None)
        by_name = {name: uid for uid, name in left.items()}
        for slot in seats:
            uid = by_name.get(self.named.get(slot) or slot, "")
            if uid in left:
                seats[slot] = uid
                del left[uid]
        waiting = iter(sorted(left, key=lambda uid: (left[uid], uid)))
        for slot in (slot for slot, uid in seats.items() if not uid):
            seats[slot] = next(waiting, "")
        return seats

    def named_on(self, node_name: str) -> list[str]:
        """The pods, wherever they are, of which the status says that they have slots of a node."""
        names = (self.named.get(slot, "") for slot in self.by_node.get(node_name, ()))
        return [self.names[name] for name in names if name in self.names]

    # -- changes; what they need to be undone is the answer

    def define(self, slots: Mapping[str, ReservedSlot], owner: str, named: Mapping[str, str]) -> None:
        self.slots, self.owner, self.named = slots, owner, named
        by_node: dict[str, list[str]] = {}
        for name, slot in slots.items():
            by_node.setdefault(slot.node, []).append(name)
        self.by_node, self.places = by_node, {name: slot for slot, name in named.items()}

    def note(self, uid: str, pod: tuple[str, str] | None) -> tuple[str, str] | None:
        """A pod is there under this name, on this node; or (None) not any more."""
        before = self.pods.pop(uid, None)
        if before is not None:
            name, node = before
            del self.on[node][uid]
            if not self.on[node]:
                del self.on[node]
            if self.names.get(name) == uid:
                del self.names[name]
        if pod is not None:
            name, node = self.pods[uid] = pod
            self.on.setdefault(node, {})[uid] = name
            self.names[name] = uid
        return before

    def sit(self, slot: str, uid: str) -> str:
        """A pod has a slot of its node; or (empty) nobody has."""
        before = self.seats.pop(slot, "")
        if before and self.seated.get(before) == slot:
            del self.seated[before]
        if uid:
            self.seats[slot], self.seated[uid] = uid, slot
        return before
