"""The table of figures: a column for each run, and how much each differs from the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from stowplan.simulation import durations
from stowplan.simulation.report.curves import resources_of, short
from stowplan.simulation.report.plots import COLOURS
from stowplan.simulation.report.report_run import ReportRun

Figures = Mapping[str, Any]
WAITS = (("mean", "mean"), ("p50", "median"), ("p90", "90% within"), ("p99", "99% within"), ("p100", "longest"))
PARTS = (
    ("allocation", "Requested"), ("utilisation", "Requested by pods that run"),
    ("fragmentation", "Free, but too scattered"),
)  # fmt: skip


class FigureRow(NamedTuple):
    """`path`: where its value is among the figures; None if a run does not have it.

    `in_points`: a difference is in percentage points, not a percentage. `zero`: 0 is worth a row.
    """

    label: str
    path: tuple[str, ...]
    written: Callable[[float], str]
    in_points: bool = False
    zero: bool = True

    def value(self, told: Figures) -> float | None:
        found: Any = told
        for name in self.path:
            found = found.get(name)
        return None if found is None or not (found or self.zero) else float(found)


def whole(value: float) -> str:
    return f"{value:,.0f}"


def exact(value: float) -> str:
    return f"{value:,.1f}"


def money(value: float) -> str:
    return f"{value:,.2f}"


def percent(value: float) -> str:
    return f"{value:.1%}"


def index(value: float) -> str:
    return f"{value:.3f}"


def rows_of(runs: Sequence[ReportRun]) -> Iterator[FigureRow]:
    """Yield the rows, in the order of a summary. What no run has is left out by `figure_table`."""
    yield FigureRow("Pods that arrived", ("pods", "arrived"), whole)
    yield FigureRow("… that got a node", ("pods", "placed"), whole)
    yield FigureRow("… that never did", ("pods", "neverPlaced"), whole)
    for name, label in WAITS:
        yield FigureRow(f"Wait for a node, {label}", ("waiting", name), durations.shown)
    yield FigureRow("Evicted pods", ("evictions", "pods"), whole)
    for key, label in PARTS:
        if key == "utilisation" and all(run.figures[key] == run.figures["allocation"] for run in runs):
            continue  # no pod takes any time to start
        for resource in resources_of(runs):
            yield FigureRow(f"{label}, {short(resource)}", (key, resource), percent, in_points=True)
    yield FigureRow("Nodes with a pod, at most", ("nodes", "mostUsed"), whole)
    yield FigureRow("Nodes with a pod, on average", ("nodes", "meanUsed"), exact)
    yield FigureRow("Node hours with a pod", ("nodes", "usedHours"), exact)
    yield FigureRow("Cost of all nodes", ("cost", "all"), money, zero=False)
    yield FigureRow("Cost while pods were on them", ("cost", "used"), money, zero=False)
    yield FigureRow("Fairness (Jain's index, 1 is equal)", ("fairness", "index"), index)


def figure_table(runs: Sequence[ReportRun]) -> str:
    """Return the table."""
    names = "".join(f'<th scope="col">{key_of(place)} {escape(run.name)}</th>' for place, run in enumerate(runs))
    body = "".join(_row(row, runs) for row in rows_of(runs))
    facts = "".join(_fact(name, runs) for name in dict.fromkeys(name for run in runs for name in run.facts))
    head = f'<thead><tr><th scope="col">figure</th>{names}</tr></thead>' if len(runs) > 1 else ""
    return f'<div class="wide"><table class="figures" id="figures">{head}<tbody>{facts}{body}</tbody></table></div>'


def key_of(place: int) -> str:
    """Return the mark that has the colour of a run's lines, if it has any."""
    if place >= COLOURS:
        return ""
    drawn = f'<path class="line c{place + 1}" d="M0 6H18"/>'
    return f'<svg class="key line-key" viewBox="0 0 18 12" aria-hidden="true">{drawn}</svg>'


def _row(row: FigureRow, runs: Sequence[ReportRun]) -> str:
    values = [row.value(run.figures) for run in runs]
    if all(each is None for each in values):
        return ""
    cells = "".join(f"<td>{_cell(row, value, values[0], place)}</td>" for place, value in enumerate(values))
    return f'<tr><th scope="row">{escape(row.label)}</th>{cells}</tr>'


def _cell(row: FigureRow, value: float | None, first: float | None, place: int) -> str:
    if value is None:
        return "–"
    text = escape(row.written(value))
    return text if not place or first is None else f"{text} <small>{difference(row, value, first)}</small>"


def difference(row: FigureRow, value: float, first: float) -> str:
    """Return how much a value differs from that of the first run."""
    if row.written(value) == row.written(first):
        return "same"
    if row.in_points:
        return f"{signed((value - first) * 100)} points"
    return f"{signed((value - first) / first * 100)}%" if first else "was 0"


def signed(value: float) -> str:
    """Return a number with its sign, and a digit after the point if it is small."""
    return f"{'−' if value < 0 else '+'}{abs(value):,.{0 if abs(round(value, 1)) >= 10 else 1}f}"


def _fact(name: str, runs: Sequence[ReportRun]) -> str:
    cells = "".join(f'<td class="fact">{escape(run.facts.get(name, "–"))}</td>' for run in runs)
    return f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'


def namespace_table(run: ReportRun, most: int = 15) -> str:
    """Return the namespaces that got least of what they asked for. With fewer than two there is nothing to compare."""
    told = run.figures["fairness"]["namespaces"]
    asked = [(name, each) for name, each in told.items() if each["satisfaction"] is not None]
    if len(asked) < 2:
        return ""
    order = sorted(asked, key=lambda each: (each[1]["satisfaction"], each[0]))
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{each["pods"]:,}</td><td>{each["satisfaction"]:.1%}</td>'
        f"<td>{'–' if each['meanWait'] is None else durations.shown(each['meanWait'])}</td></tr>"
        for name, each in order[:most]
    )
    more = f"<p>And {len(order) - most:,} more namespaces.</p>" if len(order) > most else ""
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("namespace", "pods", "got of what it asked", "mean wait")
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}</div>'
