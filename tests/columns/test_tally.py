"""Counts per row are the same in a dictionary and in an array."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.tally import MOST_COLUMNS, Tally
from stowplan.objects import selectors
from stowplan.objects.affinity import PodQuery
from stowplan.objects.changes import Put
from stowplan.testing.builders import a_node, a_pod, a_state

few = st.lists(st.tuples(st.integers(0, 199), st.integers(1, 3)), max_size=30)
many = st.integers(64, 200).map(lambda size: [(row, 1 + row % 3) for row in range(size)])
changes = few | st.builds(lambda left, right: left + right, few, many)


@given(changes, st.integers(0, 250))
def test_a_tally_equals_a_counter(changes: list[tuple[int, int]], taken_back: int) -> None:
    """More than 64 rows make it an array."""
    tally, counter, capacity = Tally(), Counter[int](), 16
    for row, amount in changes:
        while row >= capacity:
            capacity *= 2
        tally.add(row, amount, capacity)
        counter[row] += amount
    for row, amount in changes[:taken_back]:
        tally.add(row, -amount, capacity)
        counter[row] -= amount
    left = dict(+counter)
    rows, counts = tally.sparse()
    assert tally.items() == left == dict(zip(rows.tolist(), counts.tolist(), strict=True))
    assert [tally.count(row) for row in range(200)] == [left.get(row, 0) for row in range(200)]
    assert tally.on(np.arange(capacity), capacity).tolist() == [left.get(row, 0) for row in range(capacity)]
    codes = np.arange(capacity, dtype=np.int64) % 5
    even = (np.arange(capacity) % 2 == 0).astype(np.int64)
    assert tally.by_code(codes, 5).tolist() == [sum(left.get(r, 0) for r in range(c, capacity, 5)) for c in range(5)]
    assert tally.by_code(codes, 6, even).tolist() == [
        sum(left.get(row, 0) for row in range(0, capacity, 2) if row % 5 == code) for code in range(6)
    ]
    assert tally.empty == (not left)


def test_an_array_of_zeros_is_empty() -> None:
    tally = Tally()
    for row in range(100):
        tally.add(row, 1, 128)
    for row in range(100):
        tally.add(row, -1, 128)
    assert tally.empty and tally.items() == {}


@pytest.mark.parametrize("rows", [pytest.param(3, id="a dictionary"), pytest.param(100, id="an array")])
def test_a_tally_made_before_a_row_counts_0_there(rows: int) -> None:
    tally = Tally()
    for row in range(rows):
        tally.add(row, 1, 128)
    assert tally.on(np.array([0, 300]), 512).tolist() == [1, 0]
    assert tally.count(300) == 0


class Column:
    """Codes of eight rows."""

    def __init__(self) -> None:
        self.codes, self.version = np.zeros(8, np.int64), 0

    def put(self, row: int, code: int) -> None:
        self.codes[row] = code
        self.version += 1


@given(
    st.lists(st.tuples(st.sampled_from(["count", "label", "ask"]), st.integers(0, 7), st.integers(0, 3)), max_size=60)
)
def test_sums_per_code_are_updated_with_every_change(changes: list[tuple[str, int, int]]) -> None:
    tally, columns = Tally(), [Column(), Column()]
    for what, row, number in changes:
        if what == "count":
            tally.add(row, number - 1, 8)
        elif what == "label":
            columns[row % 2].put(row, number)
        else:
            asked = tally.by_column(columns[row % 2], 4)
            assert asked.tolist() == tally.by_code(columns[row % 2].codes, 4).tolist()
            asked[:] = 99  # an answer is the asker's own
    for column in columns:
        assert tally.by_column(column, 4).tolist() == tally.by_code(column.codes, 4).tolist()


def test_the_number_of_columns_with_sums_is_limited() -> None:
    tally = Tally()
    for _ in range(50):
        tally.by_column(Column(), 4)
    assert len(tally._sums or ()) <= MOST_COLUMNS


def test_sums_of_a_dropped_label_column_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its column does not grow with the others."""
    monkeypatch.setattr("stowplan.columns.nodes.table.MOST_LABEL_COLUMNS", 1)
    state = a_state(nodes=[a_node("n0", labels={"rack": "a"})])
    tally = Cluster(state).count(PodQuery(None, selectors.from_labels({"app": "web"})))
    Cluster(state).by_domain(tally, "rack")
    Cluster(state).nodes.label("other")
    for number in range(1, 200):
        state.apply(Put(a_node(f"n{number}", labels={"rack": "a" if number % 2 else "b"})))
        state.add_pod(a_pod(f"p{number}", labels={"app": "web"}), f"n{number}")
    assert sorted(Cluster(state).by_domain(tally, "rack").tolist())[-2:] == [99, 100]


@given(st.lists(st.tuples(st.integers(0, 31), st.integers(-2, 3)), max_size=60), st.integers(0, 60))
def test_domain_counts_are_updated_with_every_change(changes: list[tuple[int, int]], asked_at: int) -> None:
    """Rows by code and count, whenever they were asked for first, and whatever the column did meanwhile."""
    tally, column = Tally(), Column()
    column.codes = np.arange(32, dtype=np.int64) % 4
    for at, (row, amount) in enumerate(changes):
        if at == asked_at:
            tally.domain_counts(column, 4, 32)
        if at == asked_at + 9:
            column.codes = column.codes[::-1].copy()
            column.version += 1
        tally.add(row, max(amount, -tally.count(row)), 32)
    sorts, counts = tally.domain_counts(column, 4, 32), tally.on(np.arange(32), 32)
    assert (sorts.pair_of // sorts.width).tolist() == column.codes.tolist()
    assert (sorts.pair_of % sorts.width).tolist() == counts.tolist()
    assert sorts.rows.tolist() == np.bincount(sorts.pair_of, minlength=4 * sorts.width).tolist()
