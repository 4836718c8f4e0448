"""The runs of `--simulation FOLDER`: what `stowplan simulate --out` wrote, there or in its subfolders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from stowplan.apps.simulate.output_files import RUN, SERIES, SUMMARY
from stowplan.objects.errors import ConfigError
from stowplan.simulation.report import page
from stowplan.simulation.report.report_run import CauseHistory, FillHistory, ReportRun

LARGEST = 512 << 20  # bytes of a file


@dataclass
class SimulatedRuns:
    """`folders`: what was named; `runs`: what is there, in order of the names."""

    folders: tuple[Path, ...] = ()
    runs: list[ReportRun] = field(default_factory=list)

    @property
    def name(self) -> str:
        names = ", ".join(each.name or str(each) for each in self.folders)
        return f"simulation {names}" if names else "nothing"


def read(folders: tuple[Path, ...]) -> SimulatedRuns:
    """Read all runs in these folders. Raises ConfigError where there is none."""
    found = SimulatedRuns(folders)
    for folder in folders:
        runs = list(_runs(folder))
        if not runs:
            remedy = "name a folder that `stowplan simulate --out FOLDER` wrote, or one with such folders in it"
            raise ConfigError(f"has no {SUMMARY}, and none of its folders has", file=str(folder), remedy=remedy)
        found.runs += runs
    return found


def _runs(folder: Path) -> Iterator[ReportRun]:
    if (folder / SUMMARY).is_file():
        yield _run(folder)
        return
    for each in sorted(folder.iterdir()):
        if each.is_dir() and (each / SUMMARY).is_file():
            yield _run(each)


def _run(folder: Path) -> ReportRun:
    """Return a run that can be shown."""
    found = _read_run(folder)
    try:
        for _ in page.parts([found]):
            pass
    except Exception as error:  # whatever a file says instead of figures
        file = folder / (RUN if (folder / RUN).is_file() else SUMMARY)
        problem = f"has figures that cannot be shown: {type(error).__name__}: {error}"
        raise ConfigError(problem, file=str(file), remedy="let `stowplan simulate --out` write it anew") from None
    return found


def _read_run(folder: Path) -> ReportRun:
    """Return a run; one of an older Stowplan has no map of the nodes over time."""
    name, file = folder.name or str(folder.resolve().name), folder / RUN
    if file.is_file():
        try:
            found = msgspec.json.decode(_read(file), type=ReportRun)
        except (msgspec.DecodeError, ValueError) as error:
            raise ConfigError(f"is no run of a simulation: {error}", file=str(file)) from None
        return msgspec.structs.replace(found, name=name)
    figures = _json(folder / SUMMARY)
    series = folder / f"{SERIES}.jsonl"
    rows = _lines(series) if series.is_file() else []
    nothing = FillHistory([0.0], [], {}), CauseHistory([0.0], {})
    return ReportRun(name=name, facts={}, figures=figures, series=rows, waits=[], fill=nothing[0], causes=nothing[1])


def _lines(file: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in _read(file).splitlines()]
    except ValueError as error:
        raise ConfigError(f"has a line that is no JSON: {error}", file=str(file)) from None


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(_read(file))
    except ValueError as error:
        raise ConfigError(f"is no JSON: {error}", file=str(file)) from None
    if not isinstance(found, dict) or "pods" not in found:
        raise ConfigError("has no figures of a simulation", file=str(file), remedy="let `stowplan simulate` write it")
    return found


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as source:
            data = source.read(LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(file)) from None
    if len(data) > LARGEST:
        raise ConfigError(f"is longer than {LARGEST:,} bytes", file=str(file))
    return data
