"""Round numbers beside axes, and fewer points without losing a peak."""

from __future__ import annotations

import pytest

from stowplan.simulation.report.axes import amount_axis, number, round_numbers, thinned, time_axis, time_unit, wait_axis


@pytest.mark.parametrize(
    ("length", "unit"), [(0, "seconds"), (119, "seconds"), (120, "minutes"), (7200, "hours"), (172_800, "days")]
)
def test_a_run_is_shown_in_the_unit_of_which_it_has_two(length: float, unit: str) -> None:
    assert time_unit(length).name == unit


@pytest.mark.parametrize(
    ("values", "high", "marks"),
    [
        pytest.param([], 1, ["0", "1"], id="nothing at all"),
        pytest.param([0, 0], 1, ["0", "1"], id="zeros"),
        pytest.param([1], 1, ["0", "1"], id="one pod, not parts of it"),
        pytest.param([3], 3, ["0", "1", "2", "3"], id="few pods"),
        pytest.param([7, 41], 50, ["0", "10", "20", "30", "40", "50"], id="up to a round number"),
        pytest.param([100], 100, ["0", "20", "40", "60", "80", "100"], id="a round number itself"),
        pytest.param([23_456], 25_000, ["0", "5,000", "10k", "15k", "20k", "25k"], id="thousands"),
        pytest.param([0.07], 0.08, ["0", "0.02", "0.04", "0.06", "0.08"], id="parts"),
    ],
)
def test_an_axis_ends_at_a_round_number_that_no_value_exceeds(
    values: list[float], high: float, marks: list[str]
) -> None:
    axis = amount_axis("pods", values)
    assert axis.high == pytest.approx(high) and [text for _, text in axis.marks] == marks
    assert axis.part(0) == 0 and axis.part(axis.high) == 1


def test_the_axis_of_time_ends_where_the_run_ends() -> None:
    axis = time_axis(7 * 86_400.0)
    assert axis.title == "virtual time (days)"
    assert [text for _, text in axis.marks] == ["0", "1", "2", "3", "4", "5", "6", "7"] and axis.part(7 * 86_400) == 1
    assert time_axis(0.0).part(0.0) == 0  # a run that takes no time


@pytest.mark.parametrize(
    ("longest", "marks"),
    [(0.0, ["≤1s", "1m"]), (45.0, ["≤1s", "10s", "1m"]), (5000.0, ["≤1s", "10s", "1m", "10m", "1h", "1d"])],
)
def test_the_axis_of_waits_reaches_beyond_the_longest(longest: float, marks: list[str]) -> None:
    axis = wait_axis(longest)
    shown = [text for _, text in axis.marks]
    assert shown == marks
    assert axis.part(0.0) == 0 and axis.part(longest) <= 1


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.5, "0.5"), (1500, "1,500"), (20_000, "20k"), (3_000_000, "3M"), (2e9, "2G")]
)
def test_a_number_is_short(value: float, text: str) -> None:
    assert number(value) == text


def test_round_numbers_have_no_digits_of_floating_point() -> None:
    assert round_numbers(0.3, 5) == [0.0, 0.1, 0.2, 0.3]


def test_no_peak_is_lost() -> None:
    points = [(float(at), 100.0 if at == 5003 else -7.0 if at == 77 else 1.0) for at in range(10_000)]
    found = thinned(points, 200)
    assert len(found) <= 402 and (5003.0, 100.0) in found and (77.0, -7.0) in found
    assert found[0] == points[0] and found[-1] == points[-1] and found == sorted(found)
    assert thinned(points[:400], 200) == points[:400]
