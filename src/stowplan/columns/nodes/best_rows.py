"""The rows with the highest rank, found without a look at all rows.

Rows are kept in blocks; of each block its highest rank and how many rows have it. When a row's rank changes, its block
is brought up to date, mostly without a look at the block's other rows. To find a best row takes a look at the blocks,
of which there are about as many as a block has rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stowplan.columns.arrays import Ints, Rows

LOWEST = -1  # the rank of a row that must not be chosen; any other rank is 0 or higher
SMALLEST_SHIFT = 6  # blocks of 64 rows


class BestRows:
    """Made of one rank for each row.

    top, number        the highest rank, and how many rows have it; 0 if no row may be chosen
    _tops, _numbers    the same of each block
    """

    __slots__ = ("_numbers", "_ranks", "_shift", "_tops", "number", "top")

    def __init__(self, ranks: Ints) -> None:
        self._shift = max(SMALLEST_SHIFT, len(ranks).bit_length() // 2)
        size = 1 << self._shift
        blocks = -(-len(ranks) // size)
        self._ranks: Any = np.full(blocks * size, LOWEST, ranks.dtype)
        self._ranks[: len(ranks)] = ranks
        by_block = self._ranks.reshape(blocks, size)
        tops = by_block.max(axis=1)
        self._tops: list[int] = tops.tolist()
        self._numbers: list[int] = np.count_nonzero(by_block == tops[:, np.newaxis], axis=1).tolist()
        self.top, self.number = LOWEST, 0
        self._look_at_blocks()

    def put(self, row: int, rank: int) -> None:
        """Change the rank of a row."""
        before, at = int(self._ranks[row]), row >> self._shift
        if before == rank:
            return
        self._ranks[row] = rank
        top = self._tops[at]
        if rank > top:
            self._tops[at], self._numbers[at] = rank, 1
        elif rank == top:
            self._numbers[at] += 1
        elif before == top:
            self._numbers[at] -= 1
            if not self._numbers[at]:
                self._look_at(at)
        self._count(before, rank)

    def _count(self, before: int, rank: int) -> None:
        if rank > self.top:
            self.top, self.number = rank, 1
        elif rank == self.top != LOWEST:
            self.number += 1
        elif before == self.top:
            self.number -= 1
            if not self.number:
                self._look_at_blocks()

    def _look_at(self, at: int) -> None:
        block = self._ranks[at << self._shift : (at + 1) << self._shift]
        top = self._tops[at] = int(block.max())
        self._numbers[at] = int(np.count_nonzero(block == top))

    def _look_at_blocks(self) -> None:
        top = self.top = max(self._tops, default=LOWEST)
        self.number = 0
        if top != LOWEST:
            self.number = sum([number for number, each in zip(self._numbers, self._tops, strict=True) if each == top])

    def row(self, place: int) -> int:
        """Return one of the rows with the highest rank, by its place among them in ascending order."""
        top = self.top
        for at, each in enumerate(self._tops):
            if each == top:
                if place < self._numbers[at]:
                    begin = at << self._shift
                    block = self._ranks[begin : begin + (1 << self._shift)]
                    return begin + int((block == top).nonzero()[0][place])
                place -= self._numbers[at]
        raise IndexError("there are fewer rows with the highest rank")

    def rows(self) -> Rows:
        """Return all rows with the highest rank, in ascending order."""
        if not self.number:
            return np.zeros(0, np.int64)
        found: Rows = (self._ranks == self.top).nonzero()[0]
        return found

    @property
    def nbytes(self) -> int:
        return int(self._ranks.nbytes) + 16 * len(self._tops)
