"""`stowplan simulate` with several configurations, streams or seeds: runs them all, and compares what came of them."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from stowplan.apps import json_output, profile_loader
from stowplan.apps.simulate import command, input_files, output_files, report_file, sweep_task
from stowplan.apps.simulate import gate as gates
from stowplan.apps.simulate.command import SimulateOptions
from stowplan.apps.simulate.comparison_text import comparison_text
from stowplan.apps.simulate.gate import FigureGate, gate_text
from stowplan.apps.simulate.variants import Variants, variants
from stowplan.apps.sweep import sweep
from stowplan.apps.sweep.local_runner import LocalRunner
from stowplan.apps.sweep.sweep_inputs import SweepInputs, inputs_of
from stowplan.apps.sweep.sweep_run import RunAnswer, SweepRun
from stowplan.framework.profile import Profile
from stowplan.objects.errors import ConfigError
from stowplan.simulation import comparison, figure_names
from stowplan.simulation.clusters import GROUP
from stowplan.simulation.comparison import RunFigures
from stowplan.simulation.report.report_run import ReportRun

FIGURE = "--figure"
STOPPED = 130  # the exit code after Ctrl-C, as shells have it
# Of the options, what is no input of a run: it varies, or it is about what is shown.
NOT_COMMON = ("seed", "config", "out", "output", "report")


@dataclass(frozen=True)
class SweepOptions:
    """How the runs are done, and which figures are shown."""

    jobs: int | None = None
    on: str = ""
    journal: Path | None = None
    figures: tuple[str, ...] = ()

    @property
    def several(self) -> bool:
        """True if these flags have a meaning for several runs only."""
        return bool(self.figures or self.on or self.journal)


def started(flags: dict[str, Any]) -> int:
    """Do what the flags say: one run with its summary, or several, and their comparison. Return the exit code."""
    about = variants(flags.pop("configs"), flags.pop("alternatives"), flags["seed"], flags.pop("seeds"))
    gate = gates.gate(flags.pop("fail_if"), flags.pop("expect"), flags.pop("junit"), about)
    how = SweepOptions(**{each.name: flags.pop(each.name, each.default) for each in dataclasses.fields(SweepOptions)})
    figure_names.check_patterns(how.figures, FIGURE)
    options = SimulateOptions(**flags)
    if about.several or how.several:
        return run(options, about, how, gate)
    ((name, config),), ((stream, file),) = about.configurations.items(), about.streams.items()
    streams = (*options.streams, file) if file else options.streams
    return command.run(dataclasses.replace(options, config=config, streams=streams), gate, name, stream)


def run(options: SimulateOptions, about: Variants, how: SweepOptions, gate: FigureGate) -> int:
    """Run them all. Return 0, 1 if an expectation failed, 130 after Ctrl-C."""
    if options.out is not None:
        output_files.prepare(options.out)
    if options.report is not None:
        report_file.prepare(options.report, options.sample)
    runs = list(_runs(options, about, elsewhere=bool(how.on)))
    try:
        answers = sweep.swept(runs, _inputs(options, about), _runner(how), how.journal)
    except sweep.StoppedSweepError as stopped:
        click.echo(str(stopped), err=True)
        return STOPPED
    _tell_notes(runs, [each.value["notes"] for each in answers])
    rows = [_row(run, answer.value["figures"]) for run, answer in zip(runs, answers, strict=True)]
    found = [RunFigures(*key(run), figure_names.by_name(row["figures"])) for run, row in zip(runs, rows, strict=True)]
    names = figure_names.chosen(dict.fromkeys(name for each in found for name in each.figures), how.figures, FIGURE)
    compared, judged, unknown = comparison.compared(found, names), [], None
    try:
        judged = gate.judged(found, sum(each.seconds for each in answers)) if gate.expected else []
    except ConfigError as error:  # a resource or a namespace that no run has: what was done is told all the same
        unknown = error
    document = {"apiVersion": GROUP, "kind": "Comparison", **msgspec.to_builtins(compared)}
    if judged:
        document["expectations"] = msgspec.to_builtins(judged)
    if options.out is not None:
        output_files.write_comparison(options.out, document, rows)
    if options.report is not None:
        report_file.write(options.report, [msgspec.convert(each, ReportRun) for each in _reported(answers)])
    if options.output == "table":
        click.echo(comparison_text(compared))
        if options.out is not None:
            click.echo(f"\nWritten: comparison.json and runs.jsonl, in\n  {options.out}")
        if judged:
            click.echo(f"\n{gate_text(judged)}")
    else:
        json_output.echo(document, options.output)
    if unknown is not None:
        raise unknown
    return 0 if all(each.holds for each in judged) else 1


def key(run: SweepRun) -> tuple[str, str, int]:
    """The configuration, the stream and the seed of a run."""
    configuration, stream, _ = run.key
    return configuration, stream, run.arguments["options"]["seed"]


def _row(run: SweepRun, figures: dict[str, Any]) -> dict[str, Any]:
    configuration, stream, seed = key(run)
    return {"configuration": configuration, "stream": stream, "seed": seed, "figures": figures}


def _runs(options: SimulateOptions, about: Variants, *, elsewhere: bool) -> Iterator[SweepRun]:
    """Yield the runs, seed by seed: after the first few of them every configuration has some."""
    for seed in about.seeds:
        for stream, file in about.streams.items():
            for name, config in about.configurations.items():
                streams = (*options.streams, file) if file else options.streams
                one = dataclasses.replace(options, seed=seed, config=config, streams=streams, out=None, report=None)
                reported = "" if options.report is None or seed != about.seeds[0] else _name(name, stream)
                arguments = sweep_task.arguments(one, reported=reported, elsewhere=elsewhere)
                yield SweepRun((name, stream, f"seed {seed}"), sweep_task.FUNCTION, arguments)


def _name(configuration: str, stream: str) -> str:
    """What a run is called in the report: it has the first seed only."""
    return ", ".join(filter(None, (configuration, stream))) or "the run"


def _reported(answers: Iterable[RunAnswer]) -> Iterator[Any]:
    """Yield what the report shows of the runs that it has."""
    yield from (each.value["report"] for each in answers if "report" in each.value)


def _runner(how: SweepOptions) -> sweep.Runner:
    if not how.on:
        return LocalRunner(how.jobs or len(os.sched_getaffinity(0)))
    from stowplan.apps.sweep.dask_runner import DaskRunner

    return DaskRunner(how.on)


def _inputs(options: SimulateOptions, about: Variants) -> SweepInputs:
    """What all runs depend on. Configurations are read here, too: an error in one is told before any run."""
    configs = [each for each in about.configurations.values() if each is not None]
    configs += [Path(each.partition("=")[2]) for each in options.configurations]
    code = [file for each in configs for file in _code(each, options)]
    given = [options.cluster, *options.templates, *options.streams, *filter(None, about.streams.values())]
    files = [file for each in given for file in input_files.files(each)]
    files += [*configs, *code, *filter(None, (options.prices, options.node_order))]
    common = {name: each for name, each in msgspec.to_builtins(options, enc_hook=str).items() if name not in NOT_COMMON}
    common["report"] = options.report is not None
    common["configurations"] = [common["configurations"], _texts(about.configurations)]
    common["streams"] = [common["streams"], _texts(about.streams)]
    return inputs_of(files, common)


def _texts(named: dict[str, Path | None]) -> dict[str, str]:
    return {name: str(file or "") for name, file in named.items()}


def _code(config: Path, options: SimulateOptions) -> Iterator[Path]:
    """Yield the files of a configuration's plugins, and those that have their arguments."""
    _, profiles, arguments = profile_loader.read_files(config, options.plugin_path, options.feature_gates)
    yield from (file for file, text in arguments.items() if text)
    folders = [each.resolve() for each in (*options.plugin_path, config.parent)]
    for file in _modules(profiles.values()):
        if any(file.is_relative_to(each) for each in folders):
            yield file


def _modules(profiles: Iterable[Profile]) -> Iterator[Path]:
    names = {type(enabled.plugin).__module__ for profile in profiles for enabled in profile.all}
    for name in sorted(names):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and name.partition(".")[0] != "stowplan":
            yield Path(file).resolve()


def _tell_notes(runs: Sequence[SweepRun], notes: Sequence[Sequence[str]]) -> None:
    """Say once what several runs of a configuration say."""
    told = (f"{run.key[0]}: {note}" for run, found in zip(runs, notes, strict=True) for note in found)
    for note in dict.fromkeys(told):
        click.echo(note, err=True)
