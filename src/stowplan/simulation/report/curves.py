"""Which curves a report has. One run: its resources in one plot. Several: each plot has a line for each run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from stowplan.simulation.report.axes import PlotAxis, Point, amount_axis, time_axis, wait_axis
from stowplan.simulation.report.plots import NARROW, WIDE, Plot, PlotLine
from stowplan.simulation.report.report_run import ReportRun

FIRST = ("cpu", "memory")
NOT_SHOWN = ("pods", "ephemeral-storage")
MOST_RESOURCES = 4
Row = Mapping[str, Any]


def curves(runs: Sequence[ReportRun]) -> Iterator[str]:
    """Yield the plots of these runs: at most as many as there are colours."""
    found = resources_of(runs)
    yield from _of_parts(runs, found, "allocation", "Requested by pods with a node", "% of what the nodes offer")
    yield _over_time(runs, "Pods that wait for a node", "pods", lambda row: row["pending"])
    yield _over_time(runs, "Pods that run", "pods", lambda row: row["running"])
    yield waiting(runs)
    yield _over_time(runs, "Nodes with a pod", "nodes", lambda row: row["nodesUsed"])
    yield from _of_parts(runs, found, "fragmentation", "Free, but too scattered for the pods", "% of what is free")
    if any(row["cost"] for run in runs for row in run.series[-1:]):
        yield _over_time(
            runs, "Cost of all nodes since the start", "in the unit of the prices", lambda row: row["cost"]
        )


def resources_of(runs: Iterable[ReportRun]) -> list[str]:
    """Return the resources that pods request in any of these runs: cpu and memory first."""
    used = {name for run in runs for name, part in run.figures["allocation"].items() if part and name not in NOT_SHOWN}
    return [*(name for name in FIRST if name in used), *sorted(used.difference(FIRST))][:MOST_RESOURCES]


def short(resource: str) -> str:
    """Return the name of a resource without its domain."""
    return resource.rpartition("/")[2]


def _of_parts(runs: Sequence[ReportRun], resources: Sequence[str], key: str, title: str, unit: str) -> Iterator[str]:
    """Yield one plot with all resources of one run, or a plot for each resource with all runs."""
    if len(runs) == 1:
        lines = [
            PlotLine(short(name), _points(runs[0], partial(_percent, key, name)), colour)
            for colour, name in enumerate(resources, start=1)
        ]
        yield _drawn(runs, title, unit, lines, most=100.0)
        return
    for name in resources:
        text = f"{short(name)}: {title[0].lower()}{title[1:]}"
        yield _over_time(runs, text, unit, partial(_percent, key, name), most=100.0)


def _percent(key: str, resource: str, row: Row) -> float | None:
    part = row[key].get(resource)
    return None if part is None else float(part) * 100


def _over_time(
    runs: Sequence[ReportRun], title: str, unit: str, of_row: Callable[[Row], float | None], most: float | None = None
) -> str:
    lines = [PlotLine(_name(runs, run), _points(run, of_row), colour) for colour, run in enumerate(runs, start=1)]
    return _drawn(runs, title, unit, lines, most)


def _name(runs: Sequence[ReportRun], run: ReportRun) -> str:
    return run.name if len(runs) > 1 else ""


def _points(run: ReportRun, of_row: Callable[[Row], float | None]) -> list[Point]:
    return [(row["at"], value) for row in run.series if (value := of_row(row)) is not None]


def _drawn(
    runs: Sequence[ReportRun], title: str, unit: str, lines: Sequence[PlotLine], most: float | None = None
) -> str:
    values = [value for line in lines for _, value in line.points]
    if not values:
        return ""
    if most is not None and max(values, default=0.0) > most:
        most = None  # more is requested than there is, since nodes have gone
    across, up = time_axis(length_of(runs)), amount_axis(unit, values, most=most)
    return _plot(title, f"{title}, {unit}, over {across.title}", across, up, lines)


def _plot(title: str, said: str, across: PlotAxis, up: PlotAxis, lines: Sequence[PlotLine]) -> str:
    return Plot(title, said, across, up, WIDE if any(each.name for each in lines) else NARROW).of_lines(lines)


def length_of(runs: Iterable[ReportRun]) -> float:
    """Return the seconds of the longest run."""
    return max(float(run.figures["seconds"]) for run in runs)


def waiting(runs: Sequence[ReportRun]) -> str:
    """Return the plot of how many of the pods got a node within which time."""
    across = wait_axis(max((run.waits[-1] for run in runs if run.waits), default=0.0))
    up = amount_axis("% of the pods that arrived", (), most=100.0)
    lines = []
    for colour, run in enumerate(runs, start=1):
        pods = run.figures["pods"]
        whole = 100 * pods["placed"] / pods["arrived"] if pods["arrived"] else 0.0
        points = [(max(wait, 1.0), whole * (place + 1) / len(run.waits)) for place, wait in enumerate(run.waits)]
        points += [(across.high, whole)] if points else []
        lines.append(PlotLine(_name(runs, run), points, colour))
    title = "Pods that got a node within a time"
    return _plot(title, f"{title}, {up.title}, by {across.title}", across, up, lines)
