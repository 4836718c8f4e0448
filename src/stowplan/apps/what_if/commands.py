"""The command `stowplan what-if`, with its flags. What it does is imported when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stowplan.apps.flags import FEATURE_GATES, FROM, OUTPUT, PLUGIN_PATH


@click.command(
    "what-if",
    epilog="Exit codes: 0 nothing gets worse, 1 a pod waits that did not wait before, is lost, or cannot be evicted, "
    "2 the input cannot be used.",
)
@click.option("--drain", "drained", multiple=True, metavar="NODE", help="Drain a node; can be repeated, as all below.")
@click.option("--cordon", "cordoned", multiple=True, metavar="NODE", help="Cordon a node.")
@click.option("--uncordon", "uncordoned", multiple=True, metavar="NODE", help="Uncordon a node.")
@click.option(
    "--add-nodes", "added", multiple=True, type=(int, str), metavar="N like=NODE",
    help="Add nodes like a node, like those of a pool, or like the Node in a file.",
)  # fmt: skip
@click.option("--delete", "deleted", multiple=True, metavar="KIND/NAME", help="Delete an object, and what it owns.")
@click.option("-f", "--filename", "filenames", multiple=True, metavar="FILE", help="Apply a manifest; - is stdin.")
@click.option("--config", type=click.Path(path_type=Path), help="Change to this KubeSchedulerConfiguration.")
@click.option(
    "--config-now", type=click.Path(path_type=Path), help="The KubeSchedulerConfiguration that the cluster has now."
)
@click.option("-n", "--namespace", default="", help="The namespace of objects that name none.")
@FROM
@PLUGIN_PATH
@FEATURE_GATES
@click.option(
    "--pool-label", default="karpenter.sh/nodepool", show_default=True, help="The label that names a node's pool."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Draws among equal nodes, and the order of evictions.",
)
@click.option("--all-remedies", is_flag=True, help="Show all remedies with their commands, not only the best.")
@click.option("--kubeconfig", default="", help="The kubeconfig of the cluster.")
@click.option("--context", default="", help="The context of the kubeconfig.")
@OUTPUT
def what_if(**options: Any) -> None:
    """Say which pods would move, wait or be lost if the cluster were changed, and why. Changes nothing.

    All changes happen at once, in a simulation of the cluster with its controllers.
    """
    from stowplan.apps.what_if import command

    sys.exit(command.run(command.WhatIfOptions(**options)))
