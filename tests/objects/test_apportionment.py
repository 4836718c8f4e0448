"""Places by weights: the ratio, one place at a time, and the order in which places come."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.objects.apportionment import place_of, places, places_by_shares

WEIGHTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 500), min_size=1)


@pytest.mark.parametrize(
    ("weights", "total", "expected"),
    [
        pytest.param({"a": 3, "b": 5}, 8, {"a": 3, "b": 5}, id="as it says"),
        pytest.param({"a": 3, "b": 5}, 16, {"a": 6, "b": 10}, id="twice as many"),
        pytest.param({"a": 3, "b": 5}, 4, {"a": 1, "b": 3}, id="half as many: the heavier one gets the odd one"),
        pytest.param({"a": 3, "b": 5}, 0, {"a": 0, "b": 0}, id="none"),
        pytest.param({"a": 1, "b": 0}, 3, {"a": 3, "b": 0}, id="a domain without a weight"),
        pytest.param({"a": 0}, 3, {"a": 0}, id="no weight at all"),
        pytest.param({"a": 1, "b": 1, "c": 1}, 4, {"a": 2, "b": 1, "c": 1}, id="equal: the first one"),
    ],
)
def test_places(weights: dict[str, int], total: int, expected: dict[str, int]) -> None:
    assert places(weights, total) == expected


@pytest.mark.parametrize(
    ("shares", "pods", "expected"),
    [
        pytest.param({"a": 3750, "b": 6250}, 8, {"a": 3, "b": 5}, id="37.5% and 62.5% of 8"),
        pytest.param({"a": 3750, "b": 6250}, 16, {"a": 6, "b": 10}, id="of 16"),
        pytest.param({"a": 3333, "b": 3333, "c": 3333}, 3, {"a": 1, "b": 1, "c": 1}, id="a third each"),
        pytest.param({"a": 2500, "b": 2500}, 8, {"a": 2, "b": 2}, id="half of the pods"),
        pytest.param({"a": 10000}, 7, {"a": 7}, id="all"),
    ],
)
def test_shares(shares: dict[str, int], pods: int, expected: dict[str, int]) -> None:
    assert places_by_shares(shares, pods) == expected


@given(WEIGHTS, st.integers(0, 200))
def test_one_pod_more_has_one_place_more(weights: dict[str, int], total: int) -> None:
    before, after = places(weights, total), places(weights, total + 1)
    if any(weights.values()):
        assert sorted(after[name] - before[name] for name in weights)[-1] == 1
        assert sum(after.values()) == sum(before.values()) + 1 == total + 1


@given(WEIGHTS, st.integers(0, 100))
def test_places_are_those_that_come_first(weights: dict[str, int], total: int) -> None:
    """Given out one by one, the next to whoever has the smallest (2k-1)/w."""
    given_out = dict.fromkeys(weights, 0)
    for _ in range(total if any(weights.values()) else 0):
        following = {name: Fraction(2 * given_out[name] + 1, weight) for name, weight in weights.items() if weight}
        first = min(following, key=lambda name: (following[name], -weights[name]))
        given_out[first] += 1
    assert places(weights, total) == given_out


def test_the_number_of_a_place() -> None:
    weights = {"a": 3, "b": 5}
    assert [place_of(number, "a", weights) for number in range(1, 7)] == [2, 5, 7, 10, 13, 15]
    assert [place_of(number, "b", weights) for number in range(1, 11)] == [1, 3, 4, 6, 8, 9, 11, 12, 14, 16]


@given(WEIGHTS, st.integers(1, 60))
def test_a_place_is_there_when_as_many_are_given_out(weights: dict[str, int], number: int) -> None:
    for name in (name for name, weight in weights.items() if weight):
        place = place_of(number, name, weights)
        assert places(weights, place)[name] == number and places(weights, place - 1)[name] == number - 1
