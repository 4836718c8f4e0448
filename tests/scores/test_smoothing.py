"""Calm scores: what is forgotten when, and what a band keeps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.scores import BEST, WORST, AsIs, Bounds, OverFleet, Shaping, Smoother, settled

SCORE = st.integers(WORST, BEST)


@pytest.mark.parametrize(
    ("half_life", "measured", "average"),
    [
        pytest.param(60, [(0, 10)], 10, id="the first value as it is"),
        pytest.param(60, [(0, 0), (60, 100)], 50, id="half of it after a half-life"),
        pytest.param(60, [(0, 0), (120, 100)], 75, id="a quarter is left after two"),
        pytest.param(60, [(0, 0), (30, 100), (60, 100)], 50, id="the pace does not matter"),
        pytest.param(60, [(0, 0), (0, 100)], 0, id="no time, no weight"),
        pytest.param(60, [(10, 0), (5, 100)], 0, id="a clock that runs backwards"),
        pytest.param(0, [(0, 0), (1, 100)], 100, id="no smoothing"),
        pytest.param(60, [(0, math.inf), (60, 100)], 100, id="an infinite one is not averaged"),
    ],
)
def test_an_average_that_forgets(half_life: float, measured: list[tuple[float, float]], average: float) -> None:
    smoother, found = Smoother(half_life), 0.0
    for now, value in measured:
        found = smoother.smoothed("a", value, now)
    assert found == pytest.approx(average)


def test_each_key_has_its_own_and_may_be_forgotten() -> None:
    smoother = Smoother(60)
    smoother.smoothed("a", 0, 0)
    assert smoother.smoothed("b", 100, 60) == 100
    smoother.forget({"b"})
    assert smoother.smoothed("a", 100, 60) == 100


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.floats(0, 1e6))
def test_an_average_is_between_what_was_measured(values: list[float], half_life: float) -> None:
    smoother = Smoother(half_life)
    for now, value in enumerate(values):
        found = smoother.smoothed("a", value, now * 7.0)
        assert min(values[: now + 1]) <= found <= max(values[: now + 1])


@pytest.mark.parametrize(
    ("published", "score", "band", "kept"),
    [
        pytest.param(None, 3, 5, 3, id="the first one"),
        pytest.param(50, 52, 5, 50, id="within the band"),
        pytest.param(50, 55, 5, 50, id="at its edge"),
        pytest.param(50, 56, 5, 56, id="outside"),
        pytest.param(50, 44, 5, 44, id="outside, downwards"),
        pytest.param(50, 51, 0, 51, id="no band"),
        pytest.param(98, 100, 5, 100, id="the best there is"),
        pytest.param(-98, -100, 5, -100, id="the worst there is"),
    ],
)
def test_a_band(published: int | None, score: int, band: int, kept: int) -> None:
    assert settled(published, score, band) == kept


@given(SCORE, SCORE, st.integers(0, 200))
def test_a_band_keeps_near(published: int, score: int, band: int) -> None:
    assert abs(settled(published, score, band) - score) <= band


def test_one_after_the_other() -> None:
    """Smoothed, then normalised, then kept near what the hub has; what is not a number is left out."""
    shaping = Shaping(Bounds(0, 100), half_life=60, band=10)
    assert shaping.scores({"a": 0, "b": 50, "c": math.nan}, {}, 0) == {"a": -100, "b": 0}
    assert shaping.scores({"a": 100, "b": 56}, {"a": -100, "b": 0}, 60) == {"a": 0, "b": 0}
    assert shaping.scores({"b": 100}, {"b": 0}, 120) == {"b": 53}


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.floats(allow_nan=True), max_size=3), max_size=5),
    st.sampled_from([OverFleet(), OverFleet(True), Bounds(3, 9), Bounds(9, 3)]),
    st.integers(0, 50),
)
def test_whatever_is_measured_a_score_comes_out(
    rounds: list[dict[str, float]], normaliser: OverFleet | Bounds, band: int
) -> None:
    shaping, published = Shaping(normaliser, half_life=10, band=band), dict[str, int]()
    for now, values in enumerate(rounds):
        found = shaping.scores(values, published, now * 5.0)
        assert all(WORST <= score <= BEST for score in found.values())
        published |= found


def test_scores_that_are_scores_already() -> None:
    assert Shaping(AsIs(), band=2).scores({"a": 7}, {"a": 6}, 0) == {"a": 6}
