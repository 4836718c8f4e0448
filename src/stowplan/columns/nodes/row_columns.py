"""Columns that plugins compute from each node's row alone, whatever the pod: kept, and computed again for changed rows.

A pod of a new shape needs every node's score. What of it does not depend on the pod is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from stowplan.columns.arrays import Rows
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Nodes
from stowplan.columns.rows import longer

FEW = 8  # rows; for more, arrays are faster


class RowColumns:
    """The columns of one key, and the time (the table's clock) at which they were right for every row."""

    __slots__ = ("_shown", "_shown_rows", "arrays", "clock")

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.clock = -1
        self._shown: list[Any] = []  # the arrays as slices of `_shown_rows`, while all rows are live
        self._shown_rows: Rows | None = None

    def of(self, nodes: Nodes) -> list[Any]:
        """Return the columns for these nodes, read-only."""
        if nodes is not nodes.cluster.nodes or not nodes.cluster.state.table.gapless:
            return [nodes.pick(column) for column in self.arrays]
        if self._shown_rows is not nodes.rows:
            self._shown, self._shown_rows = [nodes.pick(column) for column in self.arrays], nodes.rows
        return self._shown

    def replace(self, arrays: list[Any]) -> None:
        self.arrays, self._shown_rows = arrays, None


def row_columns(
    nodes: Nodes,
    key: Hashable,
    of_nodes: Callable[[Nodes], Sequence[Any]],
    of_one: Callable[[OneNode], Sequence[float]],
) -> list[Any]:
    """Return columns for these nodes. `of_nodes` computes them for some nodes, `of_one` the same for one node."""
    state = nodes.cluster.state
    table = state.table
    kept: RowColumns = table.row_columns.setdefault(key, RowColumns())
    if kept.clock < 0 or len(kept.arrays[0]) < table.capacity:
        every = nodes.cluster.nodes
        if len(every):
            kept.replace([_over_rows(column, every.rows, table.capacity) for column in of_nodes(every)])
            kept.clock = table.clock
    elif kept.clock != table.clock:
        few = table.few_changed_since(kept.clock)
        if few is not None and len(few) <= FEW:
            for row in few:
                for column, value in zip(kept.arrays, of_one(OneNode(state, row)), strict=True):
                    column[row] = value
        else:
            stale = table.changed_since(kept.clock)
            changed = Nodes(state, stale, False, nodes.cluster)
            for column, values in zip(kept.arrays, of_nodes(changed) if len(stale) else (), strict=False):
                column[stale] = values
        kept.clock = table.clock
    return kept.of(nodes)


def _over_rows(column: Any, rows: Any, capacity: int) -> Any:
    found = longer(column[:0], capacity)
    found[rows] = column
    return found
