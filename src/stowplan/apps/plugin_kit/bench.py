"""`stowplan plugin bench FILE:Class`: what a plugin costs in a large cluster, or a cluster policy in a large fleet.

Costs are given in yardsticks (`yardstick.py`): about the least that a decision must do, so the numbers mean something
on any machine. A method that never acted is a problem, as in `stowplan plugin check`: what did not run was not
measured. The form that looks at one node (or cluster) at a time (`fits`, `rate`) is measured beside the form with
arrays, if the plugin or its twin has it.
"""

from __future__ import annotations

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
from stowplan.apps.plugin_kit.measured_cluster import MeasuredCluster
from stowplan.apps.plugin_kit.measured_fleet import MeasuredFleet
from stowplan.apps.plugin_kit.measuring import SLOW, Cost, Surroundings, measured, works
from stowplan.apps.plugin_kit.named_plugin import NamedPlugin
from stowplan.framework.extension_points import CLUSTERS, KINDS, PluginKind
from stowplan.objects.errors import ConfigError

SIZE = 5000
PAGE = "docs/plugins.md#what-is-slow"


@dataclass(frozen=True)
class BenchOptions:
    """The command line."""

    name: str
    args: tuple[str, ...] = ()
    kind: str | None = None
    pods: tuple[Path, ...] = ()
    placements: tuple[Path, ...] = ()
    objects: tuple[Path, ...] = ()
    idle: tuple[str, ...] = ()
    twin: str = ""
    nodes: int | None = None
    clusters: int | None = None
    rounds: int = 11
    plugin_path: tuple[Path, ...] = ()
    output: str = "table"


@dataclass(frozen=True)
class Bench:
    """What was measured; `decision` is what a whole decision of the default plugins costs, in yardsticks."""

    name: str
    kind: PluginKind
    size: int
    costs: Sequence[Cost]
    decision: float

    @property
    def slow(self) -> list[str]:
        """A sentence about each slow method."""
        return [sentence(cost, self.kind, self.size) for cost in self.costs if cost.slow]

    @property
    def problems(self) -> list[str]:
        """A sentence about each slow method, and about each that never acted."""
        return self.slow + [f"{cost.never}; see {PAGE}" for cost in self.costs if cost.never]


def run(options: BenchOptions) -> int:
    """Measure the plugin. Return 1 if a method that the scheduler calls is slow, or never acted, else 0."""
    named = named_plugin.load(options.name, options.args, options.plugin_path, kind=options.kind, twin=options.twin)
    size, methods, idle = _size(options, named.kind), list(works(named)), named_plugin.idle(options.idle)
    if not methods:
        remedy = f"nothing else is called for each {named.kind.one}"
        raise ConfigError(f"{options.name} has neither filter nor score", remedy=remedy)
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task(f"making {size:,} {named.kind.about}", total=options.rounds + 2)
        where = _surroundings(options, named, size)
        progress.update(bar, description="measuring", advance=1)
        costs, decision = measured(named, methods, where, options.rounds, lambda: progress.advance(bar), idle)
    found = Bench(options.name, named.kind, size, costs, decision)
    if options.output == "table":
        _show(Console(highlight=False, markup=False, emoji=False, soft_wrap=True), found)
    else:
        json_output.echo(_as_json(found), options.output)
    return 1 if found.problems else 0


def _size(options: BenchOptions, kind: PluginKind) -> int:
    given = {"node": options.nodes, "cluster": options.clusters}
    other = next(each for one, each in KINDS.items() if one != kind.one)
    if given[other.one] is not None:
        problem = f"{options.name} is for {kind.about}, and is measured without {other.about}"
        raise ConfigError(problem, remedy=f"give --{kind.about} instead of --{other.about}")
    return given[kind.one] or SIZE


def _surroundings(options: BenchOptions, named: NamedPlugin, size: int) -> Surroundings:
    asked = named_plugin.asked(options.name, named, options.pods, options.placements)
    objects = named_plugin.objects(options.objects, named)
    if named.kind is CLUSTERS:
        return MeasuredFleet(named, size, asked, objects)
    return MeasuredCluster(named, size, asked, objects)


# -- output


def sentence(cost: Cost, kind: PluginKind, size: int) -> str:
    """Return what is said of a slow method."""
    took = f"{cost.method} costs {cost.yardsticks:,.0f} yardsticks a {kind.asked} ({cost.microseconds / 1000:,.1f} ms"
    why = f"; {cost.why}" if cost.why else ""
    return f"{took} at {size:,} {kind.about}; more than {SLOW} is slow){why}; see {PAGE}"


def _show(console: Console, found: Bench) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("form", no_wrap=True)
    for heading in ("yardsticks", "µs", "× decision"):
        table.add_column(heading, justify="right")
    table.add_column(f"slowest {found.kind.asked}")
    for cost in found.costs:
        times = cost.yardsticks / found.decision
        figures = (f"{cost.yardsticks:,.2f}", f"{cost.microseconds:,.0f}", f"{times:,.2f}")
        table.add_row(cost.method, cost.form, *figures, "(never acted)" if cost.never else cost.asked)
    table.add_row("a default decision", "", f"{found.decision:,.2f}", "", "1.00", "")
    console.print(table)
    fine = f"no method costs more than {SLOW} yardsticks a {found.kind.asked} at {found.size:,} {found.kind.about}"
    for said in found.problems or (fine,):
        console.print(f"{found.name}: {said}")


def _as_json(found: Bench) -> dict[str, Any]:
    return {
        "apiVersion": json_output.VERSION,
        "kind": "PluginBench",
        "plugin": found.name,
        found.kind.about: found.size,
        "decisionYardsticks": round(found.decision, 2),
        "costs": [
            {
                "method": cost.method,
                "form": cost.form,
                "yardsticks": round(cost.yardsticks, 2),
                "microseconds": round(cost.microseconds, 1),
                found.kind.asked: cost.asked,
                "calledByScheduler": cost.own,
                "slow": cost.slow,
                "neverActed": bool(cost.never),
            }
            for cost in found.costs
        ],
        "problems": found.problems,
    }
