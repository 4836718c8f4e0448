"""Follows a run for its report: how full each node is and why pods wait, at up to 160 moments.

It looks at the run when the run takes a sample. Nobody knows how long a run will be, so it looks at every sample first;
each time that the moments become too many, every second one is dropped, and it looks half as often from then on. Looks
are rare, so that a run with a report costs about as much as one without.

    recorder = ReportRecorder()
    run.run(recorder.moment)
    recorder.finished(run, "packed", figures_of(run))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stowplan.columns.nodes.table import LiveNames, NodeTable
from stowplan.columns.state import ClusterState
from stowplan.objects.gpu_requests import COUNT, MILLI, WHOLE
from stowplan.plugins.nodes.gpu_sharing import device_columns
from stowplan.simulation.report.pending_causes import causes_of
from stowplan.simulation.report.report_run import FULL, NO_NODE, CauseHistory, FillHistory, ReportRun
from stowplan.simulation.run import Simulation

MOST_MOMENTS = 160
MOST_WAITS = 400
BEING_BOUND = "on its way to a node"
OTHER_RESOURCES = ("pods", "ephemeral-storage")  # that nobody looks for on the page

Percentages = npt.NDArray[np.uint8]
Amounts = npt.NDArray[np.int64]


class ReportRecorder:
    """`moment` is a callback of `Simulation.run`."""

    def __init__(self) -> None:
        self._moments: list[float] = []
        self._fills: list[dict[str, Percentages]] = []
        self._causes: list[Counter[str]] = []
        self._samples, self._every = 0, 1
        self._index: dict[str, int] = {}  # of each node that there ever was
        self._names: LiveNames | None = None
        self._places = np.zeros(0, np.int64)  # the index of each live row

    def moment(self, run: Simulation) -> None:
        """Look at the run, if it took a sample and enough of them have passed."""
        taken, before = len(run.recorder.series), self._samples
        self._samples = taken
        if taken != before and not (taken - 1) % self._every:
            self._look(run)
            if len(self._moments) > MOST_MOMENTS:
                self._every *= 2
                self._moments, self._fills, self._causes = self._moments[::2], self._fills[::2], self._causes[::2]

    def _look(self, run: Simulation) -> None:
        causes, state = causes_of(run.engine.queue), run.engine.state
        if (more := run.recorder.counts["pending"] - causes.total()) > 0:
            causes[BEING_BOUND] += more
        self._moments.append(run.elapsed)
        self._causes.append(causes)
        places = self._places_of(state.table)
        found = parts_of(state, run.recorder.shares_gpus)
        fill = {name: np.full(len(self._index), NO_NODE, np.uint8) for name in found}
        for name, part in found.items():
            fill[name][places] = part
        self._fills.append(fill)

    def _places_of(self, table: NodeTable) -> Amounts:
        names = table.live_names()
        if names is not self._names:
            self._names = names
            self._places = np.array([self._index.setdefault(name, len(self._index)) for name in names], np.int64)
        return self._places

    # -- the end

    def finished(
        self, run: Simulation, name: str, figures: Mapping[str, Any], *, facts: Mapping[str, str] | None = None,
        configuration: str = "",
    ) -> ReportRun:  # fmt: skip
        """Return what is shown of a run that has ended."""
        length = figures["seconds"]
        while self._moments and self._moments[-1] >= length:
            for kept in (self._moments, self._fills, self._causes):
                kept.pop()
        self._look(run)
        self._moments[-1] = length
        return ReportRun(
            name=name, facts=dict(facts or {}), figures=dict(figures), series=run.recorder.series,
            waits=some_of(sorted(each.waited for each in run.recorder.outcomes.values() if each.waited is not None)),
            fill=self._fill_history(), causes=self._cause_history(), configuration=configuration,
        )  # fmt: skip

    def _fill_history(self) -> FillHistory:
        number = len(self._index)
        parts = {}
        for name in sorted({name for fill in self._fills for name in fill}):
            rows = np.full((len(self._fills), number), NO_NODE, np.uint8)
            for row, fill in zip(rows, self._fills, strict=True):
                if name in fill:
                    row[: len(fill[name])] = fill[name]
            if ((rows > 0) & (rows != NO_NODE)).any():
                parts[name] = rows.tobytes()
        return FillHistory(list(self._moments), list(self._index), parts)

    def _cause_history(self) -> CauseHistory:
        names = sorted({name for causes in self._causes for name in causes})
        return CauseHistory(list(self._moments), {name: [each[name] for each in self._causes] for name in names})


def parts_of(state: ClusterState, shares_gpus: bool = False) -> dict[str, Percentages]:
    """Return what is requested of each node that there is, in percent, by resource."""
    table = state.table
    rows = table.live_rows()
    amounts = {
        name: (table.requested[name][rows], table.allocatable[name][rows])
        for name in table.allocatable
        if name not in OTHER_RESOURCES and not (shares_gpus and name in (COUNT, MILLI))
    }
    if shares_gpus:
        devices = device_columns.of_state(state)
        whole = WHOLE * devices.number[rows]
        amounts[MILLI] = whole - devices.free[rows].sum(axis=1), whole
    return {name: _percent(*each) for name, each in amounts.items() if each[1].any()}


def _percent(requested: Amounts, allocatable: Amounts) -> Percentages:
    """A node is full at 100, and not before: what is rounded to 100 is 99. One that offers nothing counts as none."""
    whole = np.maximum(allocatable, 1).astype(np.float64)
    part = np.clip(requested / whole, 0.0, 1.0)
    percent = np.minimum(np.rint(part * FULL), np.where(part < 1, FULL - 1, FULL)).astype(np.uint8)
    percent[(percent == 0) & (requested > 0)] = 1
    percent[allocatable <= 0] = NO_NODE
    return percent


def some_of(values: list[float]) -> list[float]:
    """Return at most 401 of these, evenly spread, with the first and the last."""
    if len(values) <= MOST_WAITS:
        return values
    return [values[round(each * (len(values) - 1) / MOST_WAITS)] for each in range(MOST_WAITS + 1)]
