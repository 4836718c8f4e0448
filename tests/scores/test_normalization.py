"""Measures to scores: the numbers that OCM's own library gives, and what must hold whatever is measured."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.objects.errors import ConfigError
from stowplan.scores import BEST, WORST, AsIs, Bounds, OverFleet

GB = 1e9
FINITE = st.floats(allow_nan=False, allow_infinity=False)
MEASURED = st.floats(allow_nan=False)


@pytest.mark.parametrize(
    ("bounds", "value", "score"),
    [
        pytest.param(Bounds(0, 50), 0, -100, id="OCM: the minimum"),
        pytest.param(Bounds(0, 50), 25, 0, id="OCM: half way"),
        pytest.param(Bounds(0, 50), 50, 100, id="OCM: the maximum"),
        pytest.param(Bounds(0, 50), -10, -100, id="OCM: below"),
        pytest.param(Bounds(0, 50), 60, 100, id="OCM: above"),
        pytest.param(Bounds(GB, 100 * GB), 100 * GB, 100, id="the seed: 100 GB"),
        pytest.param(Bounds(GB, 100 * GB), 101 * GB, 100, id="the seed: more"),
        pytest.param(Bounds(GB, 100 * GB), GB, -100, id="the seed: 1 GB"),
        pytest.param(Bounds(GB, 100 * GB), 0.5 * GB, -100, id="the seed: less"),
        pytest.param(Bounds(GB, 100 * GB), 50.5 * GB, 0, id="the seed: between"),
        pytest.param(Bounds(0, 100), 40, -20, id="40 of 100 cores"),
        pytest.param(Bounds(0, 20), 2, -80, id="2 of 20 GPUs"),
        pytest.param(Bounds(0, 20), 1, -90, id="1 of 20 TPUs"),
        pytest.param(Bounds(0, 100), 0.4, -99, id="fractions are cut off towards zero from below"),
        pytest.param(Bounds(0, 100), 99.9, 99, id="fractions are cut off towards zero from above"),
        pytest.param(Bounds(500, 5), 500, -100, id="less is better: the worst"),
        pytest.param(Bounds(500, 5), 5, 100, id="less is better: the best"),
        pytest.param(Bounds(500, 5), 252.5, 0, id="less is better: half way"),
        pytest.param(Bounds(500, 5), 900, -100, id="less is better: worse still"),
        pytest.param(Bounds(7, 7), 7, -100, id="one bound for both: up to there"),
        pytest.param(Bounds(7, 7), 7.1, 100, id="one bound for both: above"),
        pytest.param(Bounds(0, 1), math.inf, 100, id="without end"),
        pytest.param(Bounds(0, 1), -math.inf, -100, id="without beginning"),
        pytest.param(Bounds(-1.7e308, 1.7e308), 0.0, 0, id="bounds whose difference overflows"),
    ],
)
def test_fixed_bounds(bounds: Bounds, value: float, score: int) -> None:
    assert bounds.score(value) == score


def test_what_has_no_score() -> None:
    with pytest.raises(ValueError, match="NaN has no score"):
        Bounds(0, 1).score(math.nan)
    with pytest.raises(ConfigError, match="expected two finite numbers"):
        Bounds(0, math.inf)


@given(FINITE, FINITE, MEASURED)
def test_a_score_is_always_one(worst: float, best: float, value: float) -> None:
    assert WORST <= Bounds(worst, best).score(value) <= BEST


@given(FINITE, FINITE, MEASURED, MEASURED)
def test_no_order_is_turned_round(worst: float, best: float, one: float, other: float) -> None:
    bounds, low, high = Bounds(worst, best), min(one, other), max(one, other)
    better, less = (low, high) if best < worst else (high, low)
    assert bounds.score(better) >= bounds.score(less)


@pytest.mark.parametrize(
    ("values", "less_is_better", "scores"),
    [
        pytest.param({"a": 20, "b": 60, "c": 100}, False, {"a": -100, "b": 0, "c": 100}, id="most is best"),
        pytest.param({"a": 20, "b": 60, "c": 100}, True, {"a": 100, "b": 0, "c": -100}, id="least is best"),
        pytest.param({"a": 5, "b": 5}, False, {"a": 100, "b": 100}, id="all alike, as with the built-in prioritizers"),
        pytest.param({"a": 5}, True, {"a": 100}, id="one alone"),
        pytest.param({}, False, {}, id="no clusters"),
        pytest.param({"a": 1, "b": math.nan, "c": math.inf, "d": 3}, False, {"a": -100, "d": 100}, id="no numbers"),
    ],
)
def test_over_the_fleet(values: dict[str, float], less_is_better: bool, scores: dict[str, int]) -> None:
    assert OverFleet(less_is_better).scores(values) == scores


@given(st.dictionaries(st.text(max_size=3), MEASURED, max_size=20), st.booleans())
def test_a_fleets_scores_are_scores_in_order(values: dict[str, float], less_is_better: bool) -> None:
    scores = OverFleet(less_is_better).scores(values)
    assert all(WORST <= score <= BEST for score in scores.values())
    ordered = sorted(scores, key=lambda cluster: values[cluster], reverse=less_is_better)
    assert [scores[cluster] for cluster in ordered] == sorted(scores.values())
    if len({values[cluster] for cluster in scores}) > 1:
        assert {min(scores.values()), max(scores.values())} == {WORST, BEST}


def test_scores_as_they_are() -> None:
    assert AsIs().scores({"a": 100, "b": -100, "c": 54.9}) == {"a": 100, "b": -100, "c": 54}
    with pytest.raises(ConfigError, match=r"b: found 101, expected a score of -100\.\.100"):
        AsIs().scores({"a": 1, "b": 101})
