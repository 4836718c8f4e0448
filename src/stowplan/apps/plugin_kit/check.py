"""`stowplan plugin check FILE:Class`: does a plugin keep the contract, and which of its methods were never tried?"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from stowplan.apps import json_output
from stowplan.apps.plugin_kit import named_plugin
from stowplan.framework.checks.examination import Examination
from stowplan.framework.checks.lines import in_words
from stowplan.framework.extension_points import CLUSTERS, NODES
from stowplan.framework.plugin_checks import examine


@dataclass(frozen=True)
class CheckOptions:
    """The command line."""

    name: str
    args: tuple[str, ...] = ()
    kind: str | None = None
    pods: tuple[Path, ...] = ()
    placements: tuple[Path, ...] = ()
    objects: tuple[Path, ...] = ()
    idle: tuple[str, ...] = ()
    twin: str = ""
    clusters: int = 40
    seed: int = 0
    plugin_path: tuple[Path, ...] = ()
    output: str = "table"


def run(options: CheckOptions) -> int:
    """Check the plugin. Return 0 if nothing is wrong with it, else 1."""
    named = named_plugin.load(options.name, options.args, options.plugin_path, kind=options.kind, twin=options.twin)
    asked = named_plugin.asked(options.name, named, options.pods, options.placements)
    objects = named_plugin.objects(options.objects, named)
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task("asking the plugin", total=2 * options.clusters)
        found = examine(
            named.plugin,
            kind=named.kind,
            twin=named.twin,
            seed=options.seed,
            clusters=options.clusters,
            pods=asked if named.kind is NODES else (),
            placements=asked if named.kind is CLUSTERS else (),
            objects=objects,
            idle=named_plugin.idle(options.idle),
            on_cluster=lambda: progress.advance(bar),
        )
    if options.output == "table":
        _show(Console(highlight=False, markup=False, emoji=False, soft_wrap=True), options.name, named.plugin, found)
    else:
        json_output.echo(_as_json(options.name, found), options.output)
    return 1 if found.problems else 0


def _show(console: Console, name: str, plugin: Any, found: Examination) -> None:
    if found.acted:
        table = Table("method", "calls", "had a say", box=None, pad_edge=False)
        for method, (calls, differences) in found.acted.items():
            table.add_row(method, f"{calls:,}", f"{differences:,}" if differences else "never")
        console.print(table)
    for method, lines in found.never_ran.items():
        console.print(f"note: {method}: {in_words(lines)} never ran")
        for line in _source(plugin, lines):
            console.print(f"    {line}")
    if found.not_called:
        console.print(f"note: not called here, test it in a World: {', '.join(found.not_called)}")
    for problem in found.problems:
        console.print(problem)
    where = "fleets" if found.kind is CLUSTERS else "clusters"
    verdict = f"{len(found.problems)} problem(s)" if found.problems else "keeps the contract"
    console.print(f"{name}: {verdict}, with {found.asked} {found.kind.asked}s on small random {where}")


def _source(plugin: Any, lines: Sequence[int]) -> list[str]:
    try:
        file = inspect.getsourcefile(type(plugin)) or ""
    except (OSError, TypeError):
        return []
    texts = ((line, linecache.getline(file, line).rstrip()) for line in lines)
    return [f"{line}: {text}" for line, text in texts if text]


def _as_json(name: str, found: Examination) -> dict[str, Any]:
    return {
        "apiVersion": json_output.VERSION,
        "kind": "PluginCheck",
        "plugin": name,
        f"{found.kind.asked}s": found.asked,
        "problems": found.problems,
        "methods": {method: {"calls": calls, "hadASay": acted} for method, (calls, acted) in found.acted.items()},
        "neverRan": found.never_ran,
        "notCalled": found.not_called,
    }
