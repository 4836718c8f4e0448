"""The devices of a state: what each node sees, what is in use, and a log of the nodes for which that changed.

It follows the store, so a decision costs what changed since the one before. In a trial the store changes and changes
back; both are followed like any other change.
"""

from __future__ import annotations

from typing import Any, Final

from stowplan.columns.devices.classes import KeptClasses
from stowplan.columns.devices.in_use import DevicesInUse
from stowplan.columns.devices.pools import DevicePool, NodeDevices, devices_of, unusable_abroad
from stowplan.columns.devices.slices import PoolId, Slices
from stowplan.columns.object_store import ObjectStore
from stowplan.objects.nodes import Node
from stowplan.objects.resource_claims import ResourceClaim
from stowplan.objects.resource_slices import ResourceSlice

LONGEST_LOG: Final = 1 << 14
EVERY_NODE: Final = ""
MOST_NODES: Final = 1 << 15  # whose devices are kept


class Devices:
    """The devices of a store's slices and claims.

    log       the names of nodes whose devices changed, in order; `EVERY_NODE` for all of them
    classes   which device class stands for an extended resource
    answers   what allocators found out about these devices; they keep it here, and bound it
    """

    def __init__(self, store: ObjectStore) -> None:
        self.slices, self.in_use = Slices(), DevicesInUse()
        self.log: list[str] = []
        self.dropped = 0  # how many entries the log had that it does not have any more
        self.answers: dict[Any, Any] = {}
        self._store = store
        self._slice_changes, self._claim_changes = store.follow(ResourceSlice), store.follow(ResourceClaim)
        self._seen_slices = self._seen_claims = 0
        self._of_node: dict[str, NodeDevices] = {}
        self._foreign: dict[PoolId, DevicePool] = {}
        self.classes = KeptClasses(store)

    def of(self, node: Node) -> NodeDevices:
        """Return the devices that a node sees."""
        found = self._of_node.get(node.name)
        if found is None or found.node is not node:
            if found is not None and found.node.labels == node.labels:
                found.node = node
            else:
                if len(self._of_node) >= MOST_NODES:  # most of them are gone: clusters grow and shrink
                    self._of_node.clear()
                found = self._of_node[node.name] = devices_of(node, self.slices, self._foreign)
        return found

    @property
    def end(self) -> int:
        """The place after the last entry of the log."""
        return self.dropped + len(self.log)

    def changed_since(self, place: int) -> set[str] | None:
        """Return the nodes whose devices changed since this place in the log; None if all nodes must be looked at."""
        if place < self.dropped:
            return None
        changed = set(self.log[place - self.dropped :])
        return None if EVERY_NODE in changed else changed

    def catch_up(self) -> None:
        """Follow the store."""
        if self._seen_slices != self._slice_changes.end:
            self._follow_slices()
        if self._seen_claims != self._claim_changes.end:
            self._follow_claims()

    def _follow_slices(self) -> None:
        changes, every = self._slice_changes.since(self._seen_slices), self._store.every(ResourceSlice)
        nodes: set[str] = set()
        if changes is None:
            self.slices.clear()
            self._foreign.clear()
            nodes, changes = {EVERY_NODE}, [(key, False) for key in every]
        pools: set[PoolId | None] = set()
        for key in dict.fromkeys(key for key, _ in changes):
            found = every.get(key)
            pools |= {self.slices.pool_of(key), None if found is None else found.pool_id}
            nodes |= self.slices.drop(key) if found is None else self.slices.put(found)
        self._seen_slices = self._slice_changes.end
        if self._foreign_changed(pools):
            nodes.add(EVERY_NODE)
        self._note(nodes)
        if EVERY_NODE in nodes:
            self._of_node.clear()
        for name in nodes:
            self._of_node.pop(name, None)

    def _foreign_changed(self, pools: set[PoolId | None]) -> bool:
        """Look at changed pools as nodes see them that have no devices of them. True if that looks different now."""
        changed = False
        for pool in pools:
            if pool is None:
                continue
            before, now = self._foreign.pop(pool, None), unusable_abroad(pool, self.slices)
            if now is not None:
                self._foreign[pool] = now
            looks = [None if each is None else (each.incomplete, each.invalid) for each in (before, now)]
            changed = changed or looks[0] != looks[1]
        return changed

    def _follow_claims(self) -> None:
        changes, every = self._claim_changes.since(self._seen_claims), self._store.every(ResourceClaim)
        pools: set[PoolId] = set()
        if changes is None:
            self.in_use.clear()
            self._note({EVERY_NODE})
            changes = [(key, False) for key in every]
        for key in dict.fromkeys(key for key, _ in changes):
            found = every.get(key)
            pools |= self.in_use.drop(key) if found is None else self.in_use.put(found)
        self._seen_claims = self._claim_changes.end
        self._note({name for pool in pools for name in self.slices.nodes_of(pool)})

    def _note(self, nodes: set[str]) -> None:
        self.log += nodes
        if len(self.log) > LONGEST_LOG:
            self.dropped += LONGEST_LOG // 2
            del self.log[: LONGEST_LOG // 2]
