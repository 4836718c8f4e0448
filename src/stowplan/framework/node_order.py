"""Ties without a draw: of equally good nodes, the first one in a given order.

A live scheduler draws, so that pods spread over nodes that are as good. A simulation may give an order instead: then
its decisions depend on the scores alone, and can be compared with those of others that used the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.columns.arrays import Ints, Rows
from stowplan.columns.nodes.table import NodeTable


class NodeOrder:
    """An order of nodes, by name. Nodes that it does not name come last, by name.

    It takes the place of the generator: `Scheduler(profiles, NodeOrder(["b", "a"]))`.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._place = {name: at for at, name in enumerate(dict.fromkeys(names))}
        self._rows: Rows | None = None  # the live rows for which there are places
        self._places: Ints = np.zeros(0, np.int64)

    def integers(self, below: int, /) -> int:  # noqa: ARG002
        """What else a scheduler draws is the first, too."""
        return 0

    def first(self, names: Sequence[str]) -> int:
        """Return the position of the first of these nodes."""
        return min(range(len(names)), key=lambda at: self._key(names[at]))

    def first_row(self, table: NodeTable, rows: Rows) -> int:
        """Return the row of the first of these nodes."""
        if self._rows is not table.live_rows():
            self._rows = live = table.live_rows()
            order = sorted(live.tolist(), key=lambda row: self._key(table.names[row]))
            self._places = np.zeros(table.capacity, np.int64)
            self._places[order] = np.arange(len(order))
        return int(rows[self._places[rows].argmin()])

    def _key(self, name: str) -> tuple[int, str]:
        return self._place.get(name, len(self._place)), name
