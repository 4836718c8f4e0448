"""Pods that wait, by cause: an area for each cause over time, and a table that is also the legend."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from stowplan.simulation.report import legends
from stowplan.simulation.report.axes import amount_axis, time_axis
from stowplan.simulation.report.plots import Plot, PlotLayer
from stowplan.simulation.report.report_run import CauseHistory, ReportRun

MOST_CAUSES = 6  # that have a colour; the others are one area
OTHERS = "other causes"


class CauseOverTime(NamedTuple):
    cause: str
    pods: list[int]
    colour: str


def ranked(causes: CauseHistory) -> list[CauseOverTime]:
    """Return the causes for which most pods waited, over all moments, and the rest as one."""
    order = sorted(causes.pods, key=lambda name: (-sum(causes.pods[name]), name))
    found = [CauseOverTime(name, causes.pods[name], f"f{place}") for place, name in enumerate(order[:MOST_CAUSES], 1)]
    rest = [causes.pods[name] for name in order[MOST_CAUSES:]]
    if rest:
        found.append(CauseOverTime(f"{len(rest)} {OTHERS}", [sum(each) for each in zip(*rest, strict=True)], "f0"))
    return found


def pending_by_cause(run: ReportRun, title: str, length: float, highest: float) -> str:
    """Return the plot and the table of a run. `length` and `highest`: where the axes end, the same for all runs."""
    found = ranked(run.causes)
    if not any(map(any, run.causes.pods.values())):
        return f'<div class="beside"><p>{escape(title)}: no pod waited at any of these moments.</p></div>'
    across, up = time_axis(length), amount_axis("pods", [highest])
    layers = [PlotLayer(each.pods, each.colour) for each in found]
    plot = Plot(title, f"{title}: pods over {across.title}, by cause", across, up).of_layers(run.causes.moments, layers)
    return f'<div class="beside">{plot}{_table(found)}</div>'


def most_pending(runs: Sequence[ReportRun]) -> float:
    """Return the largest number of pods that wait at a moment of any run."""
    return max((sum(each) for run in runs for each in zip(*run.causes.pods.values(), strict=True)), default=0)


def _table(found: Sequence[CauseOverTime]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{legends.key(each.colour)} {escape(each.cause)}</th>'
        f"<td>{max(each.pods):,}</td><td>{sum(each.pods) / len(each.pods):,.1f}</td><td>{each.pods[-1]:,}</td></tr>"
        for each in reversed(found)  # as the areas lie on each other
        if any(each.pods)
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("cause (pods)", "at most", "on average", "at the end"))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
