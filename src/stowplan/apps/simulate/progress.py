"""Progress of a run, on standard error, if that is a terminal: one line that is written again."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from stowplan.simulation import durations
from stowplan.simulation.run import Simulation

EVERY = 0.2  # seconds between two lines
WIDTH = 79


class RunProgress:
    """Shows how far a run is. Elsewhere than on a terminal it says nothing."""

    def __init__(self, run: Simulation) -> None:
        self._all = run.events_left
        self._shown, self._next = sys.stderr.isatty(), 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._shown and self._next:
            self._write(" " * WIDTH + "\r")

    def moment(self, run: Simulation) -> None:
        """Show the line again, unless that was just done."""
        if self._shown and (at := time.monotonic()) >= self._next:
            self._next = at + EVERY
            self._write(f"{progress_line(run, self._all):<{WIDTH}}"[:WIDTH] + "\r")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def progress_line(run: Simulation, all_events: int) -> str:
    """Return where a run is, in virtual time and in its stream."""
    counts = run.recorder.counts
    until = "" if run.settings.until is None else f" of {durations.shown(run.settings.until)}"
    done = all_events - run.events_left
    events = f", {done:,} of {all_events:,} events" if all_events else ""
    live = counts["bound"] + counts["running"]
    return f"{durations.shown(run.elapsed)}{until}{events}, {live:,} pods on nodes, {counts['pending']:,} pending"
