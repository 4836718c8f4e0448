"""Names of figures: those of a real run, no others, and each with its unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from stowplan.objects.errors import ConfigError
from stowplan.simulation import figure_names
from stowplan.simulation.figure_names import FigureUnit
from stowplan.simulation.figure_texts import shown_value
from stowplan.simulation.figures import figures
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.streams import table
from stowplan.simulation.templates import Templates
from tests.simulation.runs import a_run


def names_of_a_run() -> dict[str, float | None]:
    stream = table.from_csv(
        b"arrival,duration,cpu,namespace\n0,60,3,ab\n0,60,3,c\n0,60,3,c\n", Templates(), InputProblems()
    )
    return figure_names.by_name(figures(a_run(stream)))


def test_every_figure_of_a_run_has_a_name_that_may_be_asked_for() -> None:
    found = names_of_a_run()
    assert [name for name in found if figure_names.checked(name) != name] == []
    assert set(figure_names.FIXED) - set(found) == set()
    assert found["wait.p100"] == 60 and found["fairness.namespaces.ab.meanWait"] == 0 and "seed" not in found


def test_figures_of_namespaces_are_shown_if_they_are_asked_for() -> None:
    names = list(names_of_a_run())
    assert not any(each.startswith("fairness.namespaces.") for each in figure_names.chosen(names))
    found = figure_names.chosen(names, ["fairness.namespaces.*.pods", "waiting.mean"])
    assert found == ["wait.mean", "fairness.namespaces.ab.pods", "fairness.namespaces.c.pods"]
    with pytest.raises(ConfigError, match=r"no figure is named 'wait.p98'; did you mean wait\.p9"):
        figure_names.chosen(names, ["wait.p98"])


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("seconds", FigureUnit.SECONDS),
        ("wait.mean", FigureUnit.SECONDS),
        ("fairness.namespaces.a.meanWait", FigureUnit.SECONDS),
        ("fairness.namespaces.a.satisfaction", FigureUnit.PART),
        ("fragmentation.nvidia.com/gpu", FigureUnit.PART),
        ("nodes.usedHours", FigureUnit.HOURS),
        ("nodes.meanUsed", FigureUnit.NUMBER),
        ("fairness.namespaces.a.pods", FigureUnit.NUMBER),
    ],
)
def test_the_unit_follows_from_the_name(name: str, unit: FigureUnit) -> None:
    assert figure_names.unit(name) is unit


@pytest.mark.parametrize(
    ("value", "unit", "change", "text"),
    [
        (65, FigureUnit.SECONDS, False, "1m5s"),
        (-65, FigureUnit.SECONDS, True, "-1m5s"),
        (0.7031, FigureUnit.PART, False, "70.3%"),
        (0.0111, FigureUnit.PART, True, "+1.1pp"),
        (1234.4, FigureUnit.NUMBER, False, "1,234"),
        (3.25, FigureUnit.HOURS, True, "+3.25h"),
        (0, FigureUnit.NUMBER, True, "0"),
    ],
)
def test_values_are_shown_in_their_unit(value: float, unit: FigureUnit, change: bool, text: str) -> None:
    assert shown_value(value, unit, change=change) == text


def test_the_page_lists_every_name() -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text(encoding="utf-8")
    listed = page.partition("### Names of figures")[2].partition("## Gates")[0]
    names = [name.replace("pods.atEnd.", "") for name in figure_names.FIXED]
    assert [name for name in (*names, *figure_names.OPEN) if f"`{name}" not in listed] == []
