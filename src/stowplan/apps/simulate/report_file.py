"""The file of `--report`: what is followed during the run, and what is written after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stowplan.objects.errors import ConfigError
from stowplan.simulation import durations
from stowplan.simulation.report import page
from stowplan.simulation.report.report_recorder import ReportRecorder
from stowplan.simulation.report.report_run import ReportRun
from stowplan.simulation.run import Progress, Simulation

if TYPE_CHECKING:
    from stowplan.apps.simulate.command import SimulateOptions


def prepare(path: Path, sample: float | None) -> None:
    """Make the folder of the file, before the run. Raises ConfigError if there could be no report."""
    if sample == 0:
        raise ConfigError("--report needs samples of the run", remedy="leave out `--sample 0`")
    if path.is_dir():
        raise ConfigError("is a folder", file=str(path), remedy="name a file, such as report.html")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"its folder cannot be made: {error.strerror}", file=str(path)) from None


class FollowedRun:
    """A run whose report will be written. `name`: what it is called beside other runs."""

    def __init__(self, options: SimulateOptions, name: str = "the run") -> None:
        self._options, self._name, self._recorder = options, name, ReportRecorder()

    def following(self, progress: Progress) -> Progress:
        """Return a callback for the run, which calls this one, too."""

        def moment(run: Simulation) -> None:
            progress(run)
            self.moment(run)

        return moment

    def moment(self, run: Simulation) -> None:
        """Look at the run."""
        self._recorder.moment(run)

    def finished(self, run: Simulation, figures: Mapping[str, Any]) -> ReportRun:
        """Return what the report shows of the run, which has ended."""
        facts, configuration = facts_of(self._options), configuration_of(self._options)
        return self._recorder.finished(run, self._name, figures, facts=facts, configuration=configuration)


def write(path: Path, runs: Sequence[ReportRun]) -> None:
    """Write the page of these runs."""
    try:
        path.write_text(page.html(runs), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(path)) from None


def facts_of(options: SimulateOptions) -> dict[str, str]:
    """Return what a run is made of, as the report says it: names of files without their folders."""
    found = {"Cluster": options.cluster.name or str(options.cluster)}
    found |= {"Stream": ", ".join(each.name for each in options.streams)} if options.streams else {}
    found |= {"Configuration": "the default" if options.config is None else options.config.name}
    found |= {"Seed": str(options.seed)}
    for name in ("bind_latency", "start_latency", "stop_latency"):
        if seconds := getattr(options, name):
            found[name.replace("_", " ").capitalize()] = durations.shown(seconds)
    return found


def configuration_of(options: SimulateOptions) -> str:
    """Return the text of the configuration, and of those that the scenario can change to."""
    texts = [] if options.config is None else [_text(options.config)]
    for each in options.configurations:
        name, _, file = each.partition("=")
        texts.append(f"# --configuration {name}\n{_text(Path(file))}")
    return "\n".join(texts)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path)) from None
