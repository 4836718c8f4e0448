"""The command `stowplan what-if`, with its flags. What it does is imported when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stowplan.apps.flags import FEATURE_GATES, FROM, OUTPUT, PLUGIN_PATH

ADD_NODES, NODES = "--add-nodes", "N like=NODE"


class WhatIfCommand(click.Command):
    """Says what is missing after --add-nodes: click takes the next flag for it, and stumbles over what comes then."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for at, given in enumerate(args):
            if given == ADD_NODES and (at + 2 >= len(args) or args[at + 2].startswith("--")):
                raise click.UsageError(f"{ADD_NODES} needs two words, {NODES}: {ADD_NODES} 3 like=node-1", ctx)
        return super().parse_args(ctx, args)


@click.command(
    "what-if",
    cls=WhatIfCommand,
    epilog="Exit codes: 0 nothing gets worse, 1 a pod waits that did not wait before, is lost, or cannot be evicted, "
    "2 the input cannot be used, 130 stopped by Ctrl-C.",
)
@click.option("--drain", "drained", multiple=True, metavar="NODE", help="Drain a node; can be repeated, as all below.")
@click.option("--cordon", "cordoned", multiple=True, metavar="NODE", help="Cordon a node.")
@click.option("--uncordon", "uncordoned", multiple=True, metavar="NODE", help="Uncordon a node.")
@click.option(
    ADD_NODES, "added", multiple=True, type=(int, str), metavar=NODES,
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
