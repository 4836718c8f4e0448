"""The figures as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.live import bounds
from benchmarks.live.figures import BOTH, Figure, Missing, Run, plain

WIDTH = 160
HEADINGS = (
    "nodes", "pods", "", "pods/s", "from start", "ratio", "due", "CPU s/1,000", "idle MB", "peak MB", "last event s",
    "others", "rounds",
)  # fmt: skip
LEGEND = (
    "Medians of the rounds. pods/s: from first to last bind; from start: of the process, to the last bind; ratio: the\n"
    "lower of the two. last event: since the start. others: cores that other programs of this machine kept busy.\n"
    "rounds: those in which that was at most 0.2 for both schedulers, and all; the others do not count.\n"
    "The floors bind without a thought; the second one writes events, too, last, as Stowplan does."
)


def write_json(figures: Sequence[Figure | Missing], file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(plain(figures)), indent=2) + b"\n")


def show(figures: Sequence[Figure | Missing]) -> None:
    console = Console(width=WIDTH)
    table = Table(title="Side by side at one kube-apiserver", title_justify="left")
    table.add_column("workload", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for figure in figures:
        if isinstance(figure, Figure):
            add_rows(table, figure)
    if table.rows:
        console.print(table)
        console.print(LEGEND)
    for figure in figures:
        if isinstance(figure, Missing):
            console.print(f"{figure.workload} at {figure.nodes:,} nodes: not measured. {figure.why}")


def add_rows(table: Table, figure: Figure) -> None:
    """Stowplan, kube-scheduler, and the floors below them."""
    due = bounds.RATIOS.get(figure.workload, 0.0) if figure.nodes == bounds.NODES else 0.0
    rates = figure.stowplan_pods_per_s, figure.kube_scheduler_pods_per_s
    for name, rate in zip(BOTH, rates, strict=True):
        ours = name == BOTH[0]
        table.add_row(
            figure.workload if ours else "",
            f"{figure.nodes:,}" if ours else "",
            f"{figure.pods:,}" if ours else "",
            name.replace("_", "-"),
            f"{rate:,.0f}",
            f"{getattr(figure.pods_per_s_from_start, name):,.0f}",
            f"{figure.ratio:.2f}" if ours else "",
            f"{due:g}" if ours and due else "",
            f"{getattr(figure.cpu_s_per_1000_pods, name):.2f}",
            f"{getattr(figure.idle_rss_mb, name):,.0f}",
            f"{getattr(figure.peak_rss_mb, name):,.0f}",
            f"{getattr(figure.last_event_s, name):.1f}",
            f"{getattr(figure.others_cores, name):.1f}",
            f"{figure.counted_rounds} of {figure.rounds}" if ours else "",
        )
    table.add_row("", "", "", "floor", f"{figure.floor_pods_per_s:,.0f}")
    share = f"{figure.of_floor_with_events:.0%} of it"
    events = f"{figure.floor_with_events_pods_per_s:,.0f}"
    table.add_row("", "", "", "floor with events", events, share, end_section=True)


def line(workload: str, nodes: int, run: Run) -> str:
    """One run, while it is the latest."""
    events = f", last event after {run.last_event_s:.1f} s" if run.last_event_s is not None else ""
    again = f", our watch was ended {run.watch_reopened} times" if run.watch_reopened else ""
    return (
        f"{workload} {nodes:,} round {run.round} {run.contender}: {run.pods:,} pods, {run.pods_per_s:,.0f} pods/s, "
        f"{run.pods_per_s_from_start:,.0f} from the start{events}, {run.cpu_s:.1f} CPU s, {run.peak_rss_mb:.0f} MB, "
        f"others {run.others_cores:.1f} cores{again}"
    )
