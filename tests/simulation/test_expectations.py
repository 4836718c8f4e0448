"""Gates: what may be written, what is refused with a remedy, and what holds."""

from __future__ import annotations

import pytest

from stowplan.objects.errors import ConfigError
from stowplan.simulation import expectation_reader, expectations
from stowplan.simulation.comparison import RunFigures
from stowplan.simulation.expectations import Expectation, JudgedExpectation

HEAD = "apiVersion: simulation.stowplan.io/v1alpha1\nkind: Expectations\n"
NAMES = ("today", "packed")


def runs(**figures: tuple[list[float | None], list[float | None]]) -> list[RunFigures]:
    """Runs of two configurations; a figure's name has _ for its dot."""
    seeds = range(len(next(iter(figures.values()))[0]))
    return [
        RunFigures(name, "", seed, {key.replace("_", ".", 1): each[at][seed] for key, each in figures.items()})
        for at, name in enumerate(NAMES)
        for seed in seeds
    ]


def judged(text: str, found: list[RunFigures]) -> list[JudgedExpectation]:
    return expectations.judged([expectation_reader.refused(text)], found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("wait.p99 > 60s", 60),
        ("wait.p99>2h", 7200),
        ("waiting.p99 > 90", 90),
        ("allocation.cpu < 70%", 0.7),
        ("allocation.nvidia.com/gpu < 0.7", 0.7),
        ("nodes.usedHours > 2d", 48),
        ("pods.neverPlaced != 0", 0),
        ("wait.p99.change > 10%", 0.1),
        ("wait.p99.change > 10s", 10),
        ("allocation.cpu.change < -5pp", -0.05),
        ("cost.used.realChange > -2.5", -2.5),
        ("fairness.namespaces.team-a.b.meanWait > 1m", 60),
    ],
)
def test_values_have_the_unit_of_the_figure(text: str, value: float) -> None:
    assert expectation_reader.refused(text).limits[0].value == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("wait.p99", "expected a condition; write a figure, one of"),
        ("wait.p98 > 1s", "no figure is named 'wait.p98'; did you mean wait.p9"),
        ("pods.neverplaced > 1", "did you mean pods.neverPlaced?"),
        ("wait.p99 > 60%", "found \"60%\", and wait.p99 is a time; write 60s, 5m or 2h"),
        ("allocation.cpu < 5Gi", "allocation.cpu is a part of a whole; write 70% or 0.7"),
        ("allocation.cpu < 5pp", "write 70% or 0.7"),
        ("pods.placed < 5s", "pods.placed is a number; write 3"),
        ("pods.placed.change < 5s", "write 3, or 10% of the first configuration's mean"),
        ("allocation. < 5", "no figure is named 'allocation.'"),
        ("fairness.namespaces.shop < 5", "no figure is named"),
        ("wait.p99 > 1s > 2s", "expected a condition"),
    ],
)  # fmt: skip
def test_conditions_that_make_no_sense_are_refused_with_a_remedy(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        expectation_reader.refused(text)
    assert problem in str(error.value) and str(error.value).startswith("--fail-if")


def test_a_configuration_may_be_named_before_a_colon() -> None:
    found = expectation_reader.refused("my-own.v2: wait.p99 > 60s")
    assert (found.configuration, found.figure, found.name) == ("my-own.v2", "wait.p99", "wait.p99 <= 60s")


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("wait.p99 > 60s", True),
        ("wait.p99 >= 60s", False),
        ("wait.p99 < 60s", True),
        ("wait.p99 > 59s", False),
        ("wait.p99.change > 20s", True),
        ("wait.p99.change > 19s", False),
        ("wait.p99.change > 50%", True),
        ("wait.p99.change >= 50%", False),
        ("wait.p99.realChange > 0", False),
        ("wait.p50.change > 0", False),
        ("wait.p50.realChange > 0", True),
        ("cost.all.change > 1000%", False),
        ("evictions.byReason.Preemption > 0", True),
    ],
)
def test_a_condition_is_about_the_mean_over_seeds(text: str, holds: bool) -> None:
    found = runs(
        wait_p99=([39, 40, 41], [59, 60.5, 60.5]), wait_p50=([1, 2, 3], [3, 1, 4]), cost_all=([0, 0, 0], [1, 2, 3])
    )
    assert [(each.configuration, each.holds) for each in judged(text, found)] == [("packed", holds)]


def test_the_first_configuration_is_judged_if_it_is_named_or_alone() -> None:
    found = runs(wait_p99=([70], [50]))
    assert [each.holds for each in judged("wait.p99 > 60s", found)] == [True]
    assert [each.holds for each in judged("today: wait.p99 > 60s", found)] == [False]
    assert [each.holds for each in judged("wait.p99 > 60s", found[:1])] == [False]


def test_a_figure_without_a_value_meets_no_expectation() -> None:
    (found,) = judged("wait.p99 > 60s", runs(wait_p99=([1, 1], [1, None])))
    assert (found.holds, found.found, found.message) == (False, None, "a run of packed has no wait.p99")


def test_a_figure_that_no_run_has_is_refused() -> None:
    for text in ("allocation.gpu < 1", "allocation.gpu.realChange < 1"):
        with pytest.raises(ConfigError, match=r"no figure is named 'allocation\.gpu'"):
            judged(text, runs(wait_p99=([1, 1], [1, 1])))


def test_messages_have_the_value_and_its_unit() -> None:
    found = runs(wait_p99=([40, 40], [60, 62]), allocation_cpu=([0.5, 0.5], [0.6, 0.6]))
    assert judged("wait.p99 > 60s", found)[0].message == "wait.p99 is 1m1s"
    assert judged("wait.p99.change > 1", found)[0].message == "wait.p99.change is +21s (+52.5%)"
    assert judged("allocation.cpu.change > 1pp", found)[0].message == "allocation.cpu.change is +10.0pp (+20.0%)"


def test_a_file_has_bounds_that_must_hold() -> None:
    text = HEAD + "expect:\n- {figure: wait.p99, atMost: 60s, above: 1}\n- {figure: pods.placed, atLeast: 3}\n"
    first, second = expectation_reader.from_yaml(text.encode(), "expect.yaml")
    assert (first.name, second.name) == ("wait.p99 <= 60s and wait.p99 > 1", "pods.placed >= 3")
    found = expectations.judged([first, second], runs(wait_p99=([9], [60]), pods_placed=([3], [2])))
    assert [each.holds for each in found] == [True, False]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expect.yaml: the configuration is empty; the shortest one is: {apiVersion: simulation.stowplan.io"),
        ("kind: Expectations", 'expect.yaml: "apiVersion" is missing'),
        (HEAD + "expect: []", "expect.yaml: expect: expects nothing"),
        (HEAD.replace("Expectations", "Scenario") + "expect: []", "is Scenario of simulation.stowplan.io/v1alpha1"),
        (HEAD + "expect: [{figure: wait.p99}]", "expect.yaml: expect[0]: has no bound; write atMost"),
        (HEAD + "expect: [{figure: wait.p99, most: 1}]", "expect.yaml: expect[0].most: unknown field"),
        (HEAD + "expect: [{figure: wait.p99, atMost: [1]}]", "expect.yaml: expect[0].atMost: found"),
        (HEAD + "expect: [{figure: wait, atMost: 1}]", "expect.yaml: expect[0]: no figure is named 'wait'"),
        (HEAD + "expect: [{figure: wait.p99, atMost: 1Gi}]", 'expect.yaml: expect[0]: found "1Gi", and wait.p99 is'),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        expectation_reader.from_yaml(text.encode(), "expect.yaml")
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("expected", "names", "seeds", "problem"),
    [
        (Expectation("wait.p99", (), "", "pakced"), NAMES, 1, "there is no configuration pakced; there are today"),
        (Expectation("wait.p99", (), "", "", "monday"), NAMES, 1, "there is no stream monday; name streams"),
        (Expectation("wait.p99", (), ".change"), NAMES[:1], 1, "has nothing to compare with; give --config twice"),
        (Expectation("wait.p99", (), ".change", "today"), NAMES, 1, "today is what others are compared with"),
        (Expectation("wait.p99", (), ".realChange"), NAMES, 1, "with one seed nobody can say what is real"),
    ],
)
def test_what_no_run_can_answer_is_refused_before(
    expected: Expectation, names: tuple[str, ...], seeds: int, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        expectations.check([expected], names, ("",), seeds)
