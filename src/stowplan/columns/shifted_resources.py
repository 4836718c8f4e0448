"""Requested amounts of many rows, changed for a while without their pods: for dry runs of filters.

This is no trial: the pods stay where they are, so counts of pods that are asked for meanwhile remain valid afterwards.
Row versions stay the same, too, since all of it is undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from stowplan.columns.arrays import Ints, Rows
from stowplan.columns.nodes.table import NodeTable


class ShiftedResources:
    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._shifts: list[tuple[Rows, Mapping[str, Ints], Mapping[str, Ints], int]] = []

    def __enter__(self) -> ShiftedResources:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._shifts:
            self.undo()

    def shift(self, rows: Rows, amounts: Mapping[str, Ints], presumed: Mapping[str, Ints], sign: int) -> None:
        """Add the amounts to these rows (sign 1), or subtract them (-1); no row may occur twice.

        `presumed`: the same of cpu and memory with defaults for missing requests.
        """
        self._table.shift(rows, amounts, presumed, sign)
        self._shifts.append((rows, amounts, presumed, sign))

    def undo(self) -> None:
        """Undo the last shift."""
        rows, amounts, presumed, sign = self._shifts.pop()
        self._table.shift(rows, amounts, presumed, -sign)
