"""A comparison on the screen, within 80 columns: a table for each configuration beside the first one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from stowplan.simulation.comparison import SAME, UNCLEAR, ComparedFigure, ConfigurationComparison
from stowplan.simulation.figure_names import FigureUnit
from stowplan.simulation.figure_texts import shown_value

COLUMNS = 80
NAME = 30  # of a figure; a longer one has a line of its own
CELL = 10
LEGEND = (
    "±: half of the interval that holds the true change with 95 %. real: at most 5 % of tables like this one have any "
    "such change by chance; unclear: it may be chance, and more seeds may tell."
)
SEEDLESS = "The seed changes nothing in these runs, so nothing is left to chance, and more seeds tell nothing."
ALL_SAME = "Every seed gives the same figures with both configurations."
ONE_SEED = "One seed does not say whether a change is chance: give --seeds 5 or more."


def comparison_text(found: ConfigurationComparison) -> str:
    """Return the tables, or one of the spreads if there is nothing to compare."""
    first, *others = found.configurations
    lines = list[str]()
    for stream in found.streams:
        figures = [each for each in found.figures if each.stream == stream]
        if not others:
            lines += [*_title(first, stream, found), "", *_spreads(figures), ""]
        for other in others:
            lines += [*_title(f"{other} beside {first}", stream, found), "", *_changes(figures, first, other), ""]
            lines += [*_wrapped(_legend(figures, other, found, stream)), ""]
    return "\n".join(lines).rstrip()


def _title(what: str, stream: str, found: ConfigurationComparison) -> list[str]:
    seeds = f"seeds {found.seeds[0]} to {found.seeds[-1]}" if len(found.seeds) > 1 else f"seed {found.seeds[0]}"
    return _wrapped(", ".join(filter(None, (what, f"stream {stream}" if stream else "", seeds))))


def _legend(figures: Iterable[ComparedFigure], other: str, found: ConfigurationComparison, stream: str) -> str:
    verdicts = {each.changes[other].verdict for each in figures}
    if verdicts <= {SAME}:
        return ALL_SAME
    if len(found.seeds) == 1:
        return ONE_SEED
    if stream in found.seedless:
        return SEEDLESS
    return LEGEND if UNCLEAR in verdicts else LEGEND.partition("; unclear")[0] + "."


def _spreads(figures: Iterable[ComparedFigure]) -> Iterator[str]:
    yield _row("Figure", ("mean", "deviation", "least", "most"))
    for each in figures:
        (spread,) = each.spreads.values()
        values = (spread.mean, spread.deviation, spread.least, spread.most)
        yield _row(each.figure, tuple(_cell(value, each.unit) for value in values))


def _changes(figures: Iterable[ComparedFigure], first: str, other: str) -> Iterator[str]:
    same = [each.figure for each in figures if each.changes[other].verdict == SAME]
    shown = [each for each in figures if each.changes[other].verdict != SAME]
    if shown:
        yield _row("Figure", (_cut(first), _cut(other), "change", "±"), "verdict")
    for each in shown:
        change = each.changes[other]
        means = (_cell(each.spreads[name].mean, each.unit) for name in (first, other))
        moved, half = _cell(change.mean, each.unit, change=True), _cell(change.half, each.unit, change=True)
        yield _row(each.figure, (*means, moved, half.removeprefix("+")), change.verdict)
    if same:
        yield from _wrapped(("" if shown else "Nothing differs. ") + f"The same: {', '.join(same)}")


def _row(name: str, cells: tuple[str, ...], last: str = "") -> str:
    label = f"{name:<{NAME}}" if len(name) <= NAME else f"{name}\n{'':<{NAME}}"
    return (label + "".join(f"{each:>{CELL}}" for each in cells) + (f"  {last}" if last else "")).rstrip()


def _cell(value: float | None, unit: FigureUnit, *, change: bool = False) -> str:
    """A value that leaves room for its neighbour."""
    if value is None:
        return "-"
    text = shown_value(value, unit, change=change)
    return text if len(text) < CELL else f"{value:{'+' if change else ''}.2e}"


def _cut(name: str) -> str:
    return name if len(name) < CELL else f"{name[: CELL - 2]}~"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, break_on_hyphens=False)
