"""The resource slices of a state: by node, by pool, and those that no single node has."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import TypeAlias, TypeVar

from stowplan.objects.nodes import Node
from stowplan.objects.resource_slices import Device, ResourceSlice, ResourceSliceSpec
from stowplan.objects.selectors import NodeSelector, NodeTerm, compile_node_selector

Key = TypeVar("Key", bound=Hashable)
PoolId: TypeAlias = tuple[str, str]  # the driver, and the name of the pool


class Slices:
    """All slices. Those that belong to one node are `on_node`, all others `shared`."""

    def __init__(self) -> None:
        self.shared: dict[str, ResourceSlice] = {}
        self._on_node: dict[str, dict[str, ResourceSlice]] = {}
        self._of_pool: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._counters: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._known: dict[str, ResourceSlice] = {}

    def put(self, found: ResourceSlice) -> set[str]:
        """Add or replace a slice. Return the nodes that may see other devices now; "" stands for all nodes."""
        changed = self.drop(found.name)
        self._known[found.name] = found
        self._of_pool.setdefault(found.pool_id, {})[found.name] = found
        if found.spec.shared_counters:
            self._counters.setdefault(found.pool_id, {})[found.name] = found
        if found.spec.node_name:
            self._on_node.setdefault(found.spec.node_name, {})[found.name] = found
        else:
            self.shared[found.name] = found
        return changed | self.nodes_of(found.pool_id)

    def drop(self, name: str) -> set[str]:
        """Remove a slice, if there is one of this name."""
        found = self._known.pop(name, None)
        if found is None:
            return set()
        changed = self.nodes_of(found.pool_id)
        _remove(self._of_pool, found.pool_id, name)
        if found.spec.shared_counters:
            _remove(self._counters, found.pool_id, name)
        if found.spec.node_name:
            _remove(self._on_node, found.spec.node_name, name)
        else:
            del self.shared[name]
        return changed

    def pool_of(self, name: str) -> PoolId | None:
        """Return the pool of a slice."""
        found = self._known.get(name)
        return None if found is None else found.pool_id

    def clear(self) -> None:
        for each in (self.shared, self._on_node, self._of_pool, self._counters, self._known):
            each.clear()

    def nodes_of(self, pool: PoolId) -> set[str]:
        """Return the nodes that may see this pool; "" stands for all nodes."""
        return {found.spec.node_name for found in self._of_pool.get(pool, {}).values()}

    def on_node(self, name: str) -> Iterable[ResourceSlice]:
        return self._on_node.get(name, {}).values()

    def counters_of(self, pool: PoolId) -> Iterable[ResourceSlice]:
        """Return the slices of a pool that define counters."""
        return self._counters.get(pool, {}).values()

    def of_pool(self, pool: PoolId) -> Iterable[ResourceSlice]:
        return self._of_pool.get(pool, {}).values()


def _remove(index: dict[Key, dict[str, ResourceSlice]], key: Key, name: str) -> None:
    del index[key][name]
    if not index[key]:
        del index[key]


def sees(node: Node, found: ResourceSliceSpec | Device) -> bool:
    """True if a slice, or a device with a selection of its own, is for this node."""
    if found.node_name:
        return found.node_name == node.name
    if found.all_nodes or found.node_selector is None:
        return found.all_nodes
    return any(term.matches(node.labels, node.name) for term in _terms(found.node_selector))


@lru_cache(maxsize=16384)
def _terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    return compile_node_selector(selector)
