"""Scores that follow from node objects alone: kept until a node changes, for pods that differ in their requests only.

Pods that request different amounts have shapes of their own, and each shape has its own kept answers. What plugins say
of them that look at no amounts is the same, if every node is feasible: so it is asked once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from stowplan.columns.arrays import Rows
from stowplan.columns.nodes.table import NodeTable

MOST_KEYS = 128  # kinds of pods: those that differ in their requests alone are of one kind
MOST_BYTES = 16 * 1024 * 1024
PER_NODE = 4  # bytes: more than four plugins hardly differ between nodes for one pod


class NodeScores:
    """By a key of the pods that are alike: plugins' scores of all nodes, by the plugin's name."""

    def __init__(self) -> None:
        self._scores: dict[Hashable, dict[str, Any]] = {}
        self._live: Rows | None = None
        self._node_clock = -1

    def __len__(self) -> int:
        return len(self._scores)

    def of(self, key: Hashable, table: NodeTable) -> dict[str, Any]:
        """Return what is known now. The caller adds to it what it asks."""
        live = table.live_rows()
        if live is not self._live or self._node_clock != table.node_clock:
            self._scores, self._live, self._node_clock = {}, live, table.node_clock
        found = self._scores.get(key)
        if found is None:
            if len(self._scores) >= min(MOST_KEYS, MOST_BYTES // (PER_NODE * len(live) or 1)):
                self._scores.clear()
            found = self._scores[key] = {}
        return found
