"""The configurations of the runs: that of the first, and what is different in the others, as `diff -u` shows it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from html import escape

from stowplan.simulation.report.report_run import ReportRun

DEFAULT = "# The default configuration: profiles default-scheduler and stowplan, with the default plugins.\n"
MOST_LINES = 600  # of a configuration; the comparison of very long ones takes long
_CLASSES = {"+": "added", "-": "removed", "@": "place"}


def configurations(runs: Sequence[ReportRun]) -> Iterator[str]:
    """Yield a block for the first configuration, and one for each run whose configuration is another."""
    first = runs[0]
    whole = f"<pre>{escape(chr(10).join(lines_of(first)))}</pre>"
    if len(runs) == 1:
        yield whole
        return
    yield f"<details><summary>Configuration of {escape(first.name)}</summary>{whole}</details>"
    for run in runs[1:]:
        found = list(difference_of(first, run))
        if found:
            marked = "\n".join(f'<span class="{_CLASSES.get(each[:1], "")}">{escape(each)}</span>' for each in found)
            yield f"<h3>{escape(first.name)} → {escape(run.name)}</h3><pre>{marked}</pre>"
        else:
            yield f"<p>{escape(run.name)} has the same configuration as {escape(first.name)}.</p>"


def difference_of(first: ReportRun, other: ReportRun) -> Iterator[str]:
    """Yield the lines of a unified diff, without line ends; none if both are the same."""
    return difflib.unified_diff(lines_of(first), lines_of(other), first.name, other.name, lineterm="")


def lines_of(run: ReportRun) -> list[str]:
    """Return the lines of the configuration of a run."""
    lines = (run.configuration or DEFAULT).splitlines()
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"… and {len(lines) - MOST_LINES:,} more lines"]
