"""The command `stowplan ui`, with its flags. What it does is imported when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stowplan.apps.flags import FEATURE_GATES, FROM, PLUGIN_PATH, LogLevel


@click.command(epilog="Exit codes: 0 it was stopped, 1 a task failed, 2 the input cannot be used.")
@click.option("--kubeconfig", default="", help="The kubeconfig of the cluster.")
@click.option("--context", default="", help="The context of the kubeconfig.")
@click.option(
    "--of", default="", metavar="NAMESPACE/NAME",
    help="A Stowplan in the cluster, its pod or its Deployment: show its decisions, too.",
)  # fmt: skip
@FROM
@click.option(
    "--simulation", "simulations", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="What `stowplan simulate --out FOLDER` wrote, or a folder with several of these; can be repeated.",
)  # fmt: skip
@click.option("--config", type=click.Path(path_type=Path), help="The KubeSchedulerConfiguration to judge by.")
@PLUGIN_PATH
@FEATURE_GATES
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port on the loopback; 0: any free one.")
@click.option("--token", default="", help="The token in the address.  [default: a random one]")
@click.option(
    "--browser/--no-browser", default=True, show_default=True, help="Open a browser, where there is a screen."
)
@click.option("-v", "--v", "v", type=LogLevel(), default=0, show_default=True, help="Verbosity of the log.")
def ui(**options: Any) -> None:
    """Show what a scheduler sees, and why, as pages in a browser: nodes, pods, remedies, scores. Changes nothing.

    Works with any cluster, whoever schedules there.
    """
    from stowplan.apps.ui import command

    sys.exit(command.run(command.UiOptions(**options)))
