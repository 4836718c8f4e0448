"""The files of `--out`: summary.json, series.jsonl and pods.jsonl, and the latter two as Parquet with pyarrow.

run.json has what a report shows of the run, for `stowplan ui --simulation`: how full each node was over time.

Of several runs there are comparison.json, and runs.jsonl with the figures of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from stowplan.apps.simulate import parquet
from stowplan.objects.errors import ConfigError
from stowplan.simulation import output
from stowplan.simulation.report.report_run import ReportRun
from stowplan.simulation.run import Simulation

SUMMARY, SERIES, PODS, RUN = "summary.json", "series", "pods", "run.json"
COMPARISON, RUNS = "comparison.json", "runs.jsonl"


def prepare(folder: Path) -> None:
    """Make the folder, before the run: it would be sad to notice afterwards that nothing can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot be made: {error.strerror}", file=str(folder)) from None


def write(folder: Path, run: Simulation, figures: Mapping[str, Any], shown: ReportRun | None = None) -> None:
    """Write the files of a run. `shown`: what a report shows of it."""
    try:
        (folder / SUMMARY).write_bytes(output.summary(figures))
        if shown is not None:
            (folder / RUN).write_bytes(msgspec.json.encode(shown))
        _rows(folder / f"{SERIES}.jsonl", run.recorder.series)
        _rows(folder / f"{PODS}.jsonl", output.outcome_rows(run))
        if parquet.write(folder / f"{SERIES}.parquet", run.recorder.series):
            parquet.write(folder / f"{PODS}.parquet", output.outcome_rows(run))
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(error.filename or folder)) from None


def write_comparison(folder: Path, comparison: Mapping[str, Any], runs: Iterable[Mapping[str, Any]]) -> None:
    """Write the files of several runs."""
    try:
        (folder / COMPARISON).write_bytes(output.summary(comparison))
        _rows(folder / RUNS, runs)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(error.filename or folder)) from None


def _rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("wb") as target:
        target.writelines(output.lines(rows))
