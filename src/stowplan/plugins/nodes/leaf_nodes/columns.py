"""Kosmos' leaf nodes as columns: what a node stands for, and the member cluster that it belongs to.

A node with the label kosmos.io/node=true is a leaf node. Its annotations say whether it stands for a whole cluster
(leafNodeMode: one2cluster) or for one node of it, and which cluster that is.
"""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.columns.nodes.answer_cache import CachedAnswers
from stowplan.columns.nodes.views import Nodes
from stowplan.columns.state import ClusterState
from stowplan.objects.nodes import Node

LEAF_LABEL, LEAF_VALUE = "kosmos.io/node", "true"
MODE, WHOLE_CLUSTER = "leafNodeMode", "one2cluster"
OF_CLUSTER = "kosmos-io/owned-by-cluster"
HOST, ONE_NODE, CLUSTER = 0, 1, 2


class LeafColumns:
    """Kept up to date row by row."""

    def __init__(self) -> None:
        self._state: ClusterState | None = None
        self._answers = CachedAnswers(None)
        self._codes: dict[str, int] = {"": 0}  # of the names of clusters

    def kinds(self, nodes: Nodes) -> Ints:
        """Return HOST, ONE_NODE or CLUSTER for each node."""
        return self._column("kinds", nodes)

    def clusters(self, nodes: Nodes) -> Ints:
        """Return the code of each node's cluster."""
        return self._column("clusters", nodes)

    def code(self, cluster: str) -> int:
        """Return the code of a cluster; -1 for one that no node belongs to."""
        return self._codes.get(cluster, -1)

    def _column(self, name: str, nodes: Nodes) -> Ints:
        state = nodes.cluster.state
        if self._state is not state:
            self._state, self._answers = state, CachedAnswers(None)
        table = state.table
        stale = self._answers.stale(table, table.capacity)
        if len(stale):
            found = [_leaf(table.nodes[row]) for row in stale.tolist()]
            codes = [self._codes.setdefault(cluster, len(self._codes)) for _, cluster in found]
            self._answers.put("kinds", stale, np.array([kind for kind, _ in found], np.int64), table.capacity)
            self._answers.put("clusters", stale, np.array(codes, np.int64), table.capacity)
        self._answers.clock = table.clock
        column: Ints = self._answers.columns.get(name, np.zeros(table.capacity, np.int64))
        return column[nodes.rows]


def _leaf(node: Node | None) -> tuple[int, str]:
    """Return what a node stands for, and its cluster."""
    if node is None:
        return HOST, ""
    kind = HOST
    if node.labels.get(LEAF_LABEL) == LEAF_VALUE:
        kind = CLUSTER if node.annotations.get(MODE) == WHOLE_CLUSTER else ONE_NODE
    return kind, node.annotations.get(OF_CLUSTER, "")
