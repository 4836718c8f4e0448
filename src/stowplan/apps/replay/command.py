"""`stowplan replay FILE`: give a new scheduler what a recording has, and compare each action.

The configuration is that of the recording, or that of `--config`. What differs from when it was recorded is named: the
version of Stowplan or of a plugin, the configuration.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from stowplan.apps import json_output, profile_loader
from stowplan.apps.config_file import digest
from stowplan.apps.run.configuration import LoadedConfiguration, beside_kube_scheduler, instead_of_kube_scheduler
from stowplan.apps.run.recording import plugin_versions
from stowplan.apps.run.tie_draw import TieDraw
from stowplan.engine.scheduler import Scheduler
from stowplan.framework import feature_gates
from stowplan.objects.errors import ConfigError
from stowplan.simulation import recording
from stowplan.simulation.recording import RecordingHeader, Replay


@dataclass(frozen=True)
class ReplayOptions:
    """The command line."""

    file: Path
    config: Path | None = None
    plugin_path: tuple[Path, ...] = ()
    output: str = "table"


def run(options: ReplayOptions) -> int:
    """Replay a recording. Return 0 if the actions are the same, 1 if not."""
    try:
        with options.file.open("rb") as lines:
            header = recording.header_of(next(lines, b""))
            loaded = _loaded(options, header)
            differs = list(_differences(header, loaded))
            found = _replayed(options, header, loaded, lines)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(options.file)) from None
    except ConfigError as error:
        raise error.located(str(options.file)) from None
    _tell(options, found, differs)
    return 0 if found.difference is None else 1


def _loaded(options: ReplayOptions, header: RecordingHeader) -> LoadedConfiguration:
    gates = feature_gates.parse(header.feature_gates)
    file, text = options.config, None
    if file is not None:
        text = profile_loader.read_text(file)
    elif header.config is not None:
        file, text = Path(header.config_file), header.config
    if file is None or text is None:
        beside = profile_loader.OWN_NAME in header.schedulers
        return beside_kube_scheduler(gates) if beside else instead_of_kube_scheduler(gates)
    plugins = profile_loader.registry(file.parent, options.plugin_path, gates)
    configuration, profiles = profile_loader.read_with(plugins, file, text)
    return LoadedConfiguration(configuration, profiles, digest(text, *plugins.argument_files.values()))


def _differences(header: RecordingHeader, loaded: LoadedConfiguration) -> Iterator[str]:
    """Yield what is not as it was when the recording was made."""
    if header.stowplan != (ours := version("stowplan")):
        yield f"it was recorded by Stowplan {header.stowplan}, this is {ours}"
    if header.config_digest != loaded.digest:
        yield "the configuration, or a file with arguments of a plugin, is another one"
    if header.schedulers != tuple(loaded.profiles):
        yield f"it has the schedulers {', '.join(header.schedulers)}, this is {', '.join(loaded.profiles)}"
    ours_by_name = plugin_versions(loaded.profiles.values())
    for name in sorted(header.plugins.keys() | ours_by_name.keys()):
        recorded, now = header.plugins.get(name, "none"), ours_by_name.get(name, "none")
        if recorded != now:
            yield f"plugin {name}: recorded with {recorded}, now {now}"


def _replayed(options: ReplayOptions, header: RecordingHeader, loaded: LoadedConfiguration, lines: Any) -> Replay:
    configuration = loaded.configuration
    scheduler = Scheduler(
        loaded.profiles,
        TieDraw(header.seed),
        extenders=configuration.extenders,
        initial_backoff=configuration.pod_initial_backoff_seconds,
        max_backoff=configuration.pod_max_backoff_seconds,
        longest_wait=header.longest_wait,
        clock_began=header.clock_began,
    )
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task("replaying", total=options.file.stat().st_size)

        def read() -> Iterator[bytes]:
            for line in lines:
                progress.advance(bar, len(line))
                yield line

        return recording.replay(read(), scheduler)


def _tell(options: ReplayOptions, found: Replay, differs: list[str]) -> None:
    for each in differs:
        click.echo(f"note: {each}", err=True)
    if options.output != "table":
        json_output.echo(_answer(found, differs), options.output)
        return
    if found.difference is None:
        click.echo(f"Identical: {found.bindings:,} bindings, in {found.lines:,} lines.")
    else:
        click.echo(f"Line {found.difference.line}: {_contrast(found)}")
        click.echo(f"Until there {found.bindings:,} bindings were identical.")
    if found.end:
        click.echo(f"The recording ends because {found.end}.")


def _contrast(found: Replay) -> str:
    assert found.difference is not None
    recorded, replayed = dict(found.difference.recorded), dict(found.difference.replayed)
    for pod in (*recorded, *replayed):
        if recorded.get(pod) != replayed.get(pod):
            then, now = recorded.get(pod, "nowhere"), replayed.get(pod, "nowhere")
            return f"{pod} was bound to {then}, now to {now}."
    return "the bindings are the same, but another action differs (an event, a condition, an eviction)."


def _answer(found: Replay, differs: list[str]) -> dict[str, Any]:
    return {
        "apiVersion": json_output.VERSION,
        "kind": "Replay",
        "identical": found.difference is None,
        "bindings": found.bindings,
        "lines": found.lines,
        "end": found.end,
        "notes": differs,
        "difference": found.difference,
    }
