"""The best rows by blocks are those that a look at all rows finds, whatever changed before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.columns.nodes import best_rows
from stowplan.columns.nodes.best_rows import LOWEST, BestRows

RANKS = st.integers(LOWEST, 3)


def best_of_all(ranks: list[int]) -> list[int]:
    top = max(ranks, default=LOWEST)
    return [row for row, rank in enumerate(ranks) if rank == top != LOWEST]


def found(best: BestRows) -> list[int]:
    return [best.row(place) for place in range(best.number)]


@given(ranks=st.lists(RANKS, max_size=40), data=st.data())
def test_changes_of_single_rows_leave_the_best_ones_right(ranks: list[int], data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_rows, "SMALLEST_SHIFT", data.draw(st.integers(0, 3), "shift"))
        best = BestRows(np.array(ranks, np.int64))
        assert found(best) == best_of_all(ranks)
        for _ in range(data.draw(st.integers(0, 12), "changes") if ranks else 0):
            row, rank = data.draw(st.integers(0, len(ranks) - 1)), data.draw(RANKS)
            ranks[row] = rank
            best.put(row, rank)
            assert found(best) == best.rows().tolist() == best_of_all(ranks)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 5000, 100_000])
def test_the_number_of_blocks_is_small(size: int) -> None:
    best = BestRows(np.arange(size))
    assert len(best._tops) <= max(80, 2 * size**0.5) and found(best) == [size - 1]
    best.put(size - 1, LOWEST)
    assert found(best) == ([size - 2] if size > 1 else [])


def test_a_place_that_there_is_not_is_an_error() -> None:
    with pytest.raises(IndexError, match="fewer rows"):
        BestRows(np.array([1, 1])).row(2)
