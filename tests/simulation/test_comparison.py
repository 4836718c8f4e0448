"""The comparison of configurations: means, intervals of paired differences, and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pytest

from stowplan.objects.errors import ConfigError
from stowplan.simulation.comparison import (
    NONE,
    ONE_RUN,
    REAL,
    SAME,
    UNCLEAR,
    ConfigurationComparison,
    RunFigures,
    change,
    compared,
)

A, B = "a", "b"
Values = dict[str, Sequence[float | None]]


def runs(values: Mapping[str, Mapping[str, Sequence[float | None]]], stream: str = "") -> list[RunFigures]:
    """Runs of these figures: by configuration and name the values by seed."""
    count = len(next(iter(next(iter(values.values())).values())))
    return [
        RunFigures(configuration, stream, seed, {name: each[seed] for name, each in figures.items()})
        for configuration, figures in values.items()
        for seed in range(count)
    ]


def verdicts(found: ConfigurationComparison) -> dict[str, str]:
    return {each.figure: change.verdict for each in found.figures for change in each.changes.values()}


def test_a_change_is_the_mean_of_the_differences_with_an_interval() -> None:
    found = change([10, 20, 30], [12, 21, 33])
    half = 4.302653 / 3**0.5  # the differences 2, 1 and 3 deviate by 1
    assert found.mean == 2 and found.low == pytest.approx(2 - half) and found.high == pytest.approx(2 + half)


def test_what_all_seeds_share_does_not_hide_a_change() -> None:
    """The means of two configurations lie within their deviations, and every seed tells them apart."""
    before = [100.0, 200.0, 300.0, 400.0, 500.0]
    found = compared(runs({A: {"f": before}, B: {"f": [each + 5 + each / 1000 for each in before]}}))
    assert verdicts(found) == {"f": REAL}


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        pytest.param([1, 2, 3], [1, 2, 3], SAME, id="the same in each seed"),
        pytest.param([1], [2], ONE_RUN, id="one seed"),
        pytest.param([1], [1], SAME, id="one seed, the same"),
        pytest.param([1, 2, 3], [2, 1, 4], UNCLEAR, id="up and down"),
        pytest.param([1, None], [1, 2], NONE, id="a run without the figure"),
        pytest.param([1, 2], [2, 3], UNCLEAR, id="one more in both seeds may be chance"),
        pytest.param([*range(10)], [*range(1, 11)], REAL, id="one more in ten seeds is not"),
        pytest.param([5, 5, 5], [7, 7, 7], REAL, id="the seed changes nothing"),
    ],
)
def test_verdicts(before: list[float | None], after: list[float | None], verdict: str) -> None:
    assert verdicts(compared(runs({A: {"f": before}, B: {"f": after}}))) == {"f": verdict}


def test_streams_in_which_the_seed_changes_nothing_are_named() -> None:
    fixed = runs({A: {"f": [1, 1], "g": [2, 2]}, B: {"f": [3, 3], "g": [2, 2]}}, "fixed")
    found = compared([*fixed, *runs({A: {"f": [1, 1], "g": [2, 2]}, B: {"f": [3, 3], "g": [2, 4]}}, "drawn")])
    assert found.seedless == ("fixed",) and found.streams == ("fixed", "drawn")
    assert found.figure("f", "fixed").changes[B].verdict == REAL
    assert found.figure("f", "drawn").changes[B].verdict == UNCLEAR


def test_many_figures_need_more_to_be_real() -> None:
    """With the differences 1, 2, 3, 4, chance is 3 %: enough for one figure, not for ten."""
    one: Values = {"f": [1, 2, 3, 4]}
    none: Values = {"f": [0, 0, 0, 0]}
    assert verdicts(compared(runs({A: none, B: one}))) == {"f": REAL}
    more: Values = {f"g{at}": [1, -1, 2, -1] for at in range(9)}
    nothing: Values = {f"g{at}": [0, 0, 0, 0] for at in range(9)}
    assert verdicts(compared(runs({A: none | nothing, B: one | more})))["f"] == UNCLEAR


def test_figures_that_are_the_same_cost_nothing() -> None:
    same: Values = {f"g{at}": [1, 2, 3, 4] for at in range(9)}
    assert verdicts(compared(runs({A: {"f": [0] * 4} | same, B: {"f": [1, 2, 3, 4]} | same})))["f"] == REAL


def test_chance_alone_is_seldom_called_real() -> None:
    """In 400 comparisons of twenty figures without any difference, about one in twenty has a wrong `real`."""
    generator, wrong = np.random.default_rng(1), 0
    for _ in range(400):
        drawn = generator.normal(size=(2, 20, 5))
        values = {name: {f"f{at}": list(drawn[side, at]) for at in range(20)} for side, name in enumerate((A, B))}
        wrong += REAL in verdicts(compared(runs(values))).values()
    assert 2 <= wrong <= 40


def test_each_configuration_is_compared_with_the_first() -> None:
    found = compared(runs({A: {"f": [1, 2]}, B: {"f": [2, 4]}, "c": {"f": [0, 1]}}))
    assert {name: each.mean for name, each in found.figures[0].changes.items()} == {B: 1.5, "c": -1}
    spread = found.figures[0].spreads[B]
    assert (spread.mean, spread.least, spread.most, spread.runs) == (3, 2, 4, 2)
    assert spread.deviation == pytest.approx(2**0.5)


def test_the_order_of_runs_makes_no_difference_beyond_names() -> None:
    given = runs({A: {"f": [1, 2, 4]}, B: {"f": [2, 4, 9]}})
    shuffled = [given[at] for at in (0, 3, 1, 4, 2, 5)]
    assert msgspec.json.encode(compared(given)) == msgspec.json.encode(compared(shuffled))


def test_a_run_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match="there is no run of b with seed 1"):
        compared(runs({A: {"f": [1, 2]}, B: {"f": [2, 4]}})[:-1])
