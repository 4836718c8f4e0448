"""The command `stowplan shadow`, with its flags. What it does is imported when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stowplan.apps.flags import FEATURE_GATES, PLUGIN_PATH, Duration, LogLevel


@click.command(
    epilog="Exit codes: 0 it was stopped, or has judged what it was to judge, 1 with --fail-on-difference: a decision "
    "differs, or a task failed, 2 the input cannot be used."
)
@click.option(
    "--config", type=click.Path(path_type=Path),
    help="The KubeSchedulerConfiguration to judge by.  [default: that of kube-scheduler]",
)  # fmt: skip
@click.option(
    "--scheduler-name", "scheduler_names", multiple=True, metavar="NAME",
    help="Judge the pods with this schedulerName; can be repeated.  [default: those of the profiles]",
)  # fmt: skip
@click.option(
    "--percentage-of-nodes-to-score", "percentage", type=click.IntRange(0, 100), default=0, show_default=True,
    help="What the running scheduler has of this setting; 0: its own choice.",
)  # fmt: skip
@click.option(
    "--window", type=Duration(), default="2s", show_default=True,
    help="A decision is judged so much later, with what has come since; and how late a watch may be.",
)  # fmt: skip
@click.option(
    "--grace", type=Duration(), default="15s", show_default=True,
    help="How long a pod may wait although there is a node for it.",
)  # fmt: skip
@click.option("--for", "seconds", type=Duration(), help="End after this time.  [default: with Ctrl-C]")
@click.option("--pods", type=click.IntRange(min=1), help="End after so many decisions.")
@click.option("--all", "everything", is_flag=True, help="Tell ties, races and samples, too, not only differences.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True,
    help="json: one object per line.",
)  # fmt: skip
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the same objects to this file.")
@click.option("--fail-on-difference", is_flag=True, help="End with exit code 1 if a decision differs.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Metrics and health over HTTP, on the loopback only."
)
@PLUGIN_PATH
@FEATURE_GATES
@click.option("--kubeconfig", default="", help="The kubeconfig of the cluster.")
@click.option("--context", default="", help="The context of the kubeconfig.")
@click.option("-v", "--v", "v", type=LogLevel(), default=0, show_default=True, help="Verbosity of the log.")
def shadow(**options: Any) -> None:
    """Watch another scheduler at work, and say where this configuration would decide otherwise. Writes nothing.

    Every decision is judged as it comes: by the nodes that are best for the pod in the cluster that its scheduler saw.
    """
    from stowplan.apps.shadow import command

    sys.exit(command.run(command.ShadowOptions(**options)))
