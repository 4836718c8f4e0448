"""One node of a view, for policies that are written for one node at a time, and for explanations."""

from __future__ import annotations

from collections.abc import Mapping

from stowplan.columns.arrays import Ints
from stowplan.columns.state import ClusterState
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.shape import Use
from stowplan.objects.taints import Taint


class OneNode:
    """A node for a per-node policy: `node.labels`, `node.free("cpu")`, `node.pods`."""

    def __init__(self, state: ClusterState, row: int) -> None:
        self._state, self._row = state, row

    @property
    def node(self) -> Node:
        node = self._state.table.nodes[self._row]
        assert node is not None, "views show live rows only"
        return node

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.labels

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.node.taints

    @property
    def unschedulable(self) -> bool:
        return self.node.spec.unschedulable

    def allocatable(self, resource: str) -> int:
        return self._amount(self._state.table.allocatable, resource)

    def requested(self, resource: str) -> int:
        return self._amount(self._state.table.requested, resource)

    def presumed(self, resource: str) -> int:
        return self._amount(self._state.table.presumed, resource)

    def free(self, resource: str) -> int:
        return self.allocatable(resource) - self.requested(resource)

    def uses(self, use: Use) -> int:
        """Return how many pods on the node use a port, a claim or a disk."""
        tally = self._state.uses.tallies.get(use)
        return 0 if tally is None else tally.count(self._row)

    @property
    def pods(self) -> list[Pod]:
        return [placed.pod for placed in self._state.pods_on[self._row].values()]

    def _amount(self, columns: Mapping[str, Ints], resource: str) -> int:
        column = columns.get(resource)
        return 0 if column is None else int(column[self._row])
