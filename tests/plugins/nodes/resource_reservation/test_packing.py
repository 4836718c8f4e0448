"""Packings: the reference's numbers, and that they never give more than there is room for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.plugins.nodes.resource_reservation import packing
from stowplan.plugins.nodes.resource_reservation.packing import STRATEGIES

ABCDEF = [1, 1, 3, 5, 5, 17]


@pytest.mark.parametrize(
    ("fits", "count", "expected"),
    [
        pytest.param(ABCDEF, 11, [1, 0, 0, 5, 5, 0], id="eleven: d, e and a"),
        pytest.param(ABCDEF, 6, [1, 0, 0, 5, 0, 0], id="six: d and a"),
        pytest.param(ABCDEF, 15, [1, 1, 3, 5, 5, 0], id="fifteen: all but the large one"),
        pytest.param(ABCDEF, 17, [0, 0, 0, 0, 0, 17], id="seventeen: the large one"),
        pytest.param(ABCDEF, 19, [1, 1, 0, 0, 0, 17], id="nineteen: the large one, a and b"),
        pytest.param(ABCDEF, 32, ABCDEF, id="all there is"),
        pytest.param(ABCDEF, 33, None, id="more than there is"),
        pytest.param([4], 4, [4], id="one node for all"),
        pytest.param([0, 2], 0, [0, 0], id="nobody"),
    ],
)
def test_minimal_fragmentation(fits: list[int], count: int, expected: list[int] | None) -> None:
    found = packing.minimal_fragmentation(np.array(fits), count)
    assert (None if found is None else found.tolist()) == expected


@pytest.mark.parametrize(
    ("fits", "count", "expected"),
    [
        pytest.param([12, 12, 16], 40, [12, 12, 16], id="the reference's forty, one place gone to the driver"),
        pytest.param([1, 1], 2, [1, 1], id="the reference's two"),
        pytest.param([5, 5, 5], 4, [2, 1, 1], id="the first gets the odd one"),
        pytest.param([1, 9, 9], 8, [1, 4, 3], id="who is full is passed over"),
        pytest.param([0, 3], 4, None, id="too little room"),
        pytest.param([3, 3], 0, [0, 0], id="nobody"),
    ],
)
def test_evenly(fits: list[int], count: int, expected: list[int] | None) -> None:
    found = packing.evenly(np.array(fits), count)
    assert (None if found is None else found.tolist()) == expected


@pytest.mark.parametrize(
    ("fits", "count", "expected"),
    [
        pytest.param([12, 12, 16], 20, [12, 8, 0], id="one after the other"),
        pytest.param([0, 2, 5], 4, [0, 2, 2], id="who is full is passed over"),
        pytest.param([1, 1], 3, None, id="too little room"),
    ],
)
def test_tightly(fits: list[int], count: int, expected: list[int] | None) -> None:
    found = packing.tightly(np.array(fits), count)
    assert (None if found is None else found.tolist()) == expected


def test_how_many_fit() -> None:
    """The reference's two nodes: 5 and 4 cores, 10 and 5 of memory, 3 GPUs each."""
    room = {"cpu": np.array([5, 4]), "memory": np.array([10, 5]), "gpu": np.array([3, 3])}
    driver, executor = {"cpu": 1, "memory": 3, "gpu": 1}, {"cpu": 2, "memory": 5, "gpu": 1}
    everywhere = np.ones(2, np.bool_)
    assert packing.capacities(room, executor, everywhere).tolist() == [2, 1]
    beside = packing.less(room, driver, np.array([1, 0]))
    assert packing.capacities(beside, executor, everywhere).tolist() == [1, 1]
    assert packing.capacities(room, executor, np.array([False, True])).tolist() == [0, 1]
    assert packing.capacities(room, {"other": 1}, everywhere).tolist() == [0, 0]
    assert packing.capacities({"cpu": np.array([-5, 3])}, {"cpu": 2}, everywhere).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(2, [1, 0, 1], id="the others do"),
        pytest.param(4, [2, 0, 2], id="the others just do"),
        pytest.param(5, [2, 1, 2], id="they do not"),
        pytest.param(9, None, id="all together do not"),
    ],
)
def test_nodes_with_gpus_come_last(count: int, expected: list[int] | None) -> None:
    fits, later = np.array([2, 4, 2]), np.array([False, True, False])
    found = packing.pack(packing.evenly, fits, count, np.arange(3), later)
    assert (None if found is None else found.tolist()) == expected


def test_the_order_of_nodes() -> None:
    room = {"memory": np.array([5, 3, 5, 3]), "cpu": np.array([1, 9, 0, 2])}
    assert packing.in_order(room).tolist() == [3, 1, 2, 0]


@given(
    name=st.sampled_from(sorted(STRATEGIES)),
    fits=st.lists(st.integers(0, 30), min_size=1, max_size=12),
    count=st.integers(0, 200),
)
def test_never_more_than_fits_and_all_or_nobody(name: str, fits: list[int], count: int) -> None:
    given_ = STRATEGIES[name](np.array(fits), count)
    if given_ is None:
        assert sum(fits) < count
        return
    assert int(given_.sum()) == count
    assert (given_ >= 0).all() and (given_ <= np.array(fits)).all()
    if name == "evenly":
        unfilled = given_[given_ < np.array(fits)]
        assert not len(unfilled) or given_.max() - unfilled.min() <= 1
