"""The figures as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks import bounds
from benchmarks.figures import AnyFigure, Comparison, Figure, Missing, plain

WIDTH = 160
MEMORY = "B/node and B/pod: tracemalloc, while nodes and the pods there from the start were decoded and added."


def write_json(figures: list[AnyFigure], file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(plain(figures)), indent=2) + b"\n")


def show(figures: Sequence[AnyFigure]) -> None:
    console = Console(width=WIDTH)
    workloads = [figure for figure in figures if isinstance(figure, Figure)]
    comparisons = [figure for figure in figures if isinstance(figure, Comparison)]
    if workloads:
        console.print(_workload_table(workloads))
        console.print(MEMORY)
    if comparisons:
        console.print(_comparison_table(comparisons))
    for figure in figures:
        if isinstance(figure, Missing):
            console.print(f"{figure.workload}: not measured. {figure.why}")


def _workload_table(figures: Sequence[Figure]) -> Table:
    table = Table(title="One decision, pod assumed on its node included", title_justify="left")
    table.add_column("workload")
    columns = ("nodes", "pods", "pods/s", "µs", "yardsticks", "growth", "× basic", "× preemption", "B/node", "B/pod")
    for heading in (*columns, "unplaced"):
        table.add_column(heading, justify="right")
    for figure in figures:
        table.add_row(*_cells(figure), end_section=figure.nodes == max(each.nodes for each in figures))
    return table


def _cells(figure: Figure) -> tuple[str, ...]:
    return (
        figure.workload,
        f"{figure.nodes:,}",
        f"{figure.pods:,}",
        f"{figure.pods_per_s:,.0f}",
        f"{figure.microseconds:,.0f}",
        f"{figure.yardsticks:.2f}",
        _or_nothing(figure.growth),
        _or_nothing(figure.times_basic),
        _or_nothing(figure.times_preemption),
        f"{figure.bytes_per_node:,.0f}",
        f"{figure.bytes_per_pod:,.0f}",
        f"{figure.without_node}" if figure.without_node else "",
    )


def _comparison_table(figures: Sequence[Comparison]) -> Table:
    table = Table(title="Comparisons", title_justify="left")
    for heading in ("figure", "case"):
        table.add_column(heading, no_wrap=True)
    for heading in ("nodes", "pods", "value", "against", "ratio", "yardsticks"):
        table.add_column(heading, justify="right")
    for heading in ("due", "note"):
        table.add_column(heading)
    for figure in figures:
        limit = bounds.limit_of(figure)
        table.add_row(*_comparison_cells(figure), "" if limit is None else str(limit), figure.note)
    return table


def _comparison_cells(figure: Comparison) -> tuple[str, ...]:
    in_megabytes = figure.unit.startswith("bytes")
    value, against = (
        f"{amount / 1e6:,.1f} MB" if in_megabytes else f"{amount:,.1f} {figure.unit}"
        for amount in (figure.value, figure.against)
    )
    size = f"{figure.nodes:,}" if figure.nodes else ""
    yardsticks = _or_nothing(figure.yardsticks)
    return figure.workload, figure.case, size, f"{figure.pods:,}", value, against, f"{figure.ratio:.2f}", yardsticks


def _or_nothing(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
