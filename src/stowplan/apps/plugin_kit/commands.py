"""The commands below `stowplan plugin`. Each imports its module when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stowplan.apps.flags import OUTPUT, PLUGIN_PATH, with_options

ARGUMENTS = click.option(
    "--args",
    multiple=True,
    metavar="KEY=VALUE|FILE",
    help="An argument of the plugin, or a YAML file with arguments; can be repeated.",
)
FILES = click.Path(exists=True, path_type=Path)
PODS = click.option("--pods", multiple=True, type=FILES, help="A file with pods that the plugin acts on.")
PLACEMENTS = click.option(
    "--placements", multiple=True, type=FILES, help="A file with placements that the cluster policy acts on."
)
KIND = click.option(
    "--kind", type=click.Choice(["node", "cluster"]), help="What it chooses, if the class does not tell."
)
OBJECTS = click.option("--objects", multiple=True, type=FILES, help="A file with objects that the plugin reads.")
TWIN = click.option("--twin", default="", help="FILE:Class, the same policy with `fits` and `rate`, one by one.")
IDLE = click.option(
    "--idle",
    multiple=True,
    metavar="METHOD=WHY",
    help="A method that need not have a say here, and the reason; can be repeated.",
)
NAMED = click.argument("name", metavar="FILE:Class")


@click.command(epilog="Exit codes: 0 written, 2 the name or the folder cannot be used.")
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="Where to create the folder.",
)
@click.option(
    "--kind", type=click.Choice(["node", "cluster"]), default="node", show_default=True, help="What it chooses."
)
def new(name: str, directory: Path, kind: str) -> None:
    """Write a plugin, or a cluster policy, that works, with its test and its configuration, into a new folder."""
    from stowplan.apps.plugin_kit import new as command

    sys.exit(command.run(name, directory, kind))


@click.command(
    epilog="Exit codes: 0 nothing is wrong, 1 something is, or a method was never tried, 2 the input cannot be used."
)
@with_options(NAMED, KIND, ARGUMENTS, PODS, PLACEMENTS, OBJECTS, IDLE, TWIN)
@click.option(
    "--clusters", type=click.IntRange(min=1), default=40, show_default=True, help="How many random clusters, or fleets."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The number of the first one.")
@with_options(PLUGIN_PATH, OUTPUT)
def check(**options: Any) -> None:
    """Check whether a plugin, or a cluster policy, keeps the contract, and which of its methods never had a say."""
    from stowplan.apps.plugin_kit import check as command

    sys.exit(command.run(command.CheckOptions(**options)))


@click.command(
    epilog="Exit codes: 0 fine, 1 a method costs more than 100 yardsticks or never acted, 2 the input cannot be used."
)
@with_options(NAMED, KIND, ARGUMENTS, PODS, PLACEMENTS, OBJECTS, IDLE, TWIN)
@click.option("--nodes", type=click.IntRange(min=1), help="The number of nodes.  [default: 5000]")
@click.option("--clusters", type=click.IntRange(min=1), help="For a cluster policy: of clusters.  [default: 5000]")
@click.option("--rounds", type=click.IntRange(min=1), default=11, show_default=True, help="How often each is measured.")
@with_options(PLUGIN_PATH, OUTPUT)
def bench(**options: Any) -> None:
    """Measure what a plugin, or a cluster policy, costs, in yardsticks: passes of plain NumPy over all nodes."""
    from stowplan.apps.plugin_kit import bench as command

    sys.exit(command.run(command.BenchOptions(**options)))


COMMANDS: dict[str, click.Command] = {"new": new, "check": check, "bench": bench}
