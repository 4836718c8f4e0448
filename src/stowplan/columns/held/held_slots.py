"""The slots of one holding, the pods that it is meant for, and which pod has which slot."""

from __future__ import annotations

from stowplan.columns.held.source import Holding, Slot


class HeldSlots:
    """The pods are those that have a node, by uid."""

    __slots__ = (
        "free", "holding", "moved", "pod_in", "pods", "pods_on", "reported_slots", "slot_by_pod", "slots_on",
        "uid_by_name",
    )  # fmt: skip

    def __init__(self) -> None:
        self.holding = Holding()
        self.slots_on: dict[str, list[str]] = {}  # by node, the names of its slots
        self.reported_slots: dict[str, str] = {}  # by the pod's name, the slot that the object reports for it
        self.pods: dict[str, tuple[str, str]] = {}  # name and node
        self.uid_by_name: dict[str, str] = {}
        self.pods_on: dict[str, dict[str, str]] = {}  # by node: uid to name
        self.pod_in: dict[str, str] = {}  # slot to the uid of a pod on the slot's node
        self.slot_by_pod: dict[str, str] = {}  # the inverse of pod_in
        self.moved: dict[str, str] = {}  # slot to the uid of a pod on another node; counts if that pod is in no slot
        self.free: dict[str, Slot] = {}  # slots without a pod; their room is held

    @property
    def owner(self) -> str:
        return self.holding.owner

    @property
    def in_force(self) -> bool:
        """True if the holding has slots, and its owner has a node."""
        return bool(self.holding.slots) and (not self.owner or self.owner in self.pods)

    @property
    def has_owner_slot(self) -> bool:
        return bool(self.owner) and self.holding.owner_slot in self.holding.slots

    def members(self, excluding: str = "") -> int:
        """Return the number of pods, without the owner and the pod with this uid."""
        return len(self.pods) - (self.owner in self.pods) - (excluding in self.pods and excluding != self.owner)

    def taken_by(self, slot: str) -> str:
        """Return the uid of the pod that has a slot; "" if the slot is free."""
        if self.owner and slot == self.holding.owner_slot:
            return self.owner
        if slot in self.pod_in:
            return self.pod_in[slot]
        uid = self.moved.get(slot, "")
        return uid if uid in self.pods and uid not in self.slot_by_pod else ""

    def slot_of(self, uid: str) -> str:
        """Return the slot that a pod has; "" if it has none."""
        if uid in self.slot_by_pod:
            return self.slot_by_pod[uid]
        return next((slot for slot, other in self.moved.items() if other == uid and self.taken_by(slot) == uid), "")

    def assignment(self, node_name: str) -> dict[str, str]:
        """Return which pod should have which slot of a node, by uid; "" for a free slot."""
        assigned = dict.fromkeys(self.slots_on.get(node_name, ()), "")
        pods = dict(self.pods_on.get(node_name, {})) if assigned else {}
        if self.has_owner_slot:
            assigned.pop(self.holding.owner_slot, None)
            pods.pop(self.owner, None)
        by_name = {name: uid for uid, name in pods.items()}
        for slot in assigned:
            uid = by_name.get(self.holding.reported.get(slot) or slot, "")
            if uid in pods:
                assigned[slot] = uid
                del pods[uid]
        remaining = iter(sorted(pods, key=lambda uid: (pods[uid], uid)))
        for slot in (slot for slot, uid in assigned.items() if not uid):
            assigned[slot] = next(remaining, "")
        return assigned

    def reported_on(self, node_name: str) -> list[str]:
        """Return the pods, on any node, that the object reports to have slots of this node."""
        names = (self.holding.reported.get(slot, "") for slot in self.slots_on.get(node_name, ()))
        return [self.uid_by_name[name] for name in names if name in self.uid_by_name]

    # -- changes: each returns what is needed to undo it

    def define(self, holding: Holding) -> Holding:
        before, self.holding = self.holding, holding
        slots_on: dict[str, list[str]] = {}
        for name, slot in holding.slots.items():
            slots_on.setdefault(slot.node, []).append(name)
        self.slots_on, self.reported_slots = slots_on, {name: slot for slot, name in holding.reported.items()}
        return before

    def set_pod(self, uid: str, pod: tuple[str, str] | None) -> tuple[str, str] | None:
        """A pod has this name and node now; None: it has no node any more."""
        before = self.pods.pop(uid, None)
        if before is not None:
            name, node = before
            del self.pods_on[node][uid]
            if not self.pods_on[node]:
                del self.pods_on[node]
            if self.uid_by_name.get(name) == uid:
                del self.uid_by_name[name]
        if pod is not None:
            name, node = self.pods[uid] = pod
            self.pods_on.setdefault(node, {})[uid] = name
            self.uid_by_name[name] = uid
        return before

    def assign(self, slot: str, uid: str) -> str:
        """Give a slot to a pod on the slot's node, or ("") to no pod."""
        before = self.pod_in.pop(slot, "")
        if before and self.slot_by_pod.get(before) == slot:
            del self.slot_by_pod[before]
        if uid:
            self.pod_in[slot], self.slot_by_pod[uid] = uid, slot
        return before
