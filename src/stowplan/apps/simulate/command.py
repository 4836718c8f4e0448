"""`stowplan simulate`: reads the files of a run, runs it, and shows and writes what came of it."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from stowplan.apps import json_output, large_reads, plugin_kinds, profile_loader
from stowplan.apps.simulate import input_files, output_files, report_file
from stowplan.apps.simulate.gate import FigureGate, gate_text
from stowplan.apps.simulate.progress import RunProgress
from stowplan.apps.simulate.report_file import FollowedRun
from stowplan.apps.simulate.summary import summary_text
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.framework.profile import Profile
from stowplan.objects.errors import ConfigError
from stowplan.simulation import clusters, gpu_use
from stowplan.simulation.comparison import RunFigures
from stowplan.simulation.expectations import JudgedExpectation
from stowplan.simulation.figure_names import by_name
from stowplan.simulation.figures import figures
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.run import Simulation
from stowplan.simulation.settings import RunSettings
from stowplan.simulation.simulated_cluster import SimulatedCluster
from stowplan.simulation.stream_events import Arrival, StreamEvent

MINUTE = 60.0
MOST_SAMPLES = 10_000  # about, unless the time between them is given


@dataclass(frozen=True)
class SimulateOptions:
    """The command line."""

    cluster: Path
    streams: tuple[Path, ...] = ()
    templates: tuple[Path, ...] = ()
    config: Path | None = None
    configurations: tuple[str, ...] = ()
    plugin_path: tuple[Path, ...] = ()
    feature_gates: FeatureGates = DEFAULT_GATES
    seed: int = 0
    until: float | None = None
    bind_latency: float = 0.0
    start_latency: float = 0.0
    stop_latency: float = 0.0
    job_duration: float = 60.0
    sample: float | None = None
    prices: Path | None = None
    node_order: Path | None = None
    out: Path | None = None
    report: Path | None = None
    skip_invalid: bool = False
    output: str = "table"


def run(options: SimulateOptions, gate: FigureGate, configuration: str, stream: str) -> int:
    """Run the simulation. `configuration`, `stream`: their names. Return 0, or 1 if an expectation failed."""
    began = time.perf_counter()
    if options.out is not None:
        output_files.prepare(options.out)
    followed = FollowedRun(options)
    if options.report is not None:
        report_file.prepare(options.report, options.sample)
    found = prepared(options)
    is_followed = options.report is not None or (options.out is not None and options.sample != 0)
    with RunProgress(found) as progress:
        found.run(followed.following(progress.moment) if is_followed else progress.moment)
    told = figures(found)
    tell_skipped(found.problems)
    shown = followed.finished(found, told) if is_followed else None
    if options.out is not None:
        output_files.write(options.out, found, told, shown)
    if options.report is not None and shown is not None:
        report_file.write(options.report, [shown])
    judged = list[JudgedExpectation]()
    if gate.expected:
        judged = gate.judged(
            [RunFigures(configuration, stream, options.seed, by_name(told))], time.perf_counter() - began
        )
    if options.output == "table":
        click.echo(summary_text(told, options.out) + (f"\n\n{gate_text(judged)}" if judged else ""))
    else:
        json_output.echo(told | ({"expectations": judged} if judged else {}), options.output)
    return 0 if all(each.holds for each in judged) else 1


def tell_skipped(problems: InputProblems) -> None:
    """Name what was left out."""
    for problem in problems.named:
        click.echo(f"skipped: {problem}", err=True)
    if problems.count > len(problems.named):
        click.echo(f"skipped: {problems.count - len(problems.named):,} more", err=True)


def prepared(options: SimulateOptions) -> Simulation:
    """Read all files. Raises ConfigError for what cannot be used."""
    problems = InputProblems(skip=options.skip_invalid)
    profiles = _profiles(options.config, options)
    policies = dict(_named(each, options) for each in options.configurations)
    chosen = RunSettings(
        seed=options.seed, until=options.until, bind_seconds=options.bind_latency, start_seconds=options.start_latency,
        stop_seconds=options.stop_latency, job_seconds=options.job_duration,
    )  # fmt: skip
    names = tuple(dict.fromkeys((*profiles, *(name for each in policies.values() for name in each))))
    prices, node_order = input_files.prices(options.prices), input_files.node_order(options.node_order)
    with large_reads.without_collection():
        templates, others = input_files.templates_of(options.templates, names, problems)
        events = input_files.streams(options.streams, templates, problems, chosen.seed)
        settings = msgspec.structs.replace(chosen, sample_seconds=_sample_seconds(options, events))
        cluster = SimulatedCluster(settings)
        pairs = clusters.served(input_files.cluster_documents(options.cluster, problems), names, problems)
        skipped = cluster.load(pairs, problems)
    problems.check()
    _tell("not used, of kinds that are not served", skipped)
    _tell("not used, as no templates of pods", others)
    every = [each for found in (profiles, *policies.values()) for each in found.values()]
    if not gpu_use.are_shared(every) and (asking := _asking_for_shares(events, cluster)):
        text = f"note: {asking:,} pods or workloads ask for GPUs by annotations, and no profile counts these"
        click.echo(f"{text}: enable GpuSharing in --config", err=True)
    brought = plugin_kinds.brought(every)
    return Simulation(
        cluster, events, profiles, settings, policies=policies, brought=brought, prices=prices, problems=problems,
        node_order=node_order,
    )  # fmt: skip


def _sample_seconds(options: SimulateOptions, events: Iterable[StreamEvent]) -> float:
    """The time between two samples: as given, else a minute, and more where these were very many."""
    if options.sample is not None:
        return options.sample
    length = options.until or max((each.at for each in events), default=0.0)
    return MINUTE * max(math.ceil(length / MINUTE / MOST_SAMPLES), 1)


def _asking_for_shares(events: Iterable[StreamEvent], cluster: SimulatedCluster) -> int:
    found = [each.document for each in cluster.api.store.all("pods")]
    found += (each.document for each in events if isinstance(each, Arrival))
    return sum(gpu_use.asks_by_annotation({"kind": "Pod", **each}) for each in found)


def _tell(what: str, kinds: Counter[str]) -> None:
    if kinds:
        told = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
        click.echo(f"{what}: {told}", err=True)


def _profiles(file: Path | None, options: SimulateOptions) -> dict[str, Profile]:
    if file is None:
        return profile_loader.defaults(options.feature_gates)[1]
    configuration, found = profile_loader.read_configuration(file, options.plugin_path, options.feature_gates)
    for note in configuration.notes:
        click.echo(f"note: {note}", err=True)
    return found


def _named(given: str, options: SimulateOptions) -> tuple[str, dict[str, Profile]]:
    name, equals, file = given.partition("=")
    if not equals or not name or not file:
        raise ConfigError(f"--configuration {given!r}", remedy="expected NAME=FILE")
    return name, _profiles(Path(file), options)
