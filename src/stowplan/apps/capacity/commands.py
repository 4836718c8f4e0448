"""The command `stowplan capacity`, with its flags. What it does is imported when it runs.

Flags of cluster-capacity that mean the same are taken, too: --podspec, --max-limit, --default-config, --exclude-nodes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stowplan.apps.flags import FEATURE_GATES, FROM, OUTPUT, PLUGIN_PATH


@click.command(
    epilog="Exit codes: 0 as many pods fit as were asked for (one, if no number was), 1 fewer fit, 2 the input cannot "
    "be used, 130 stopped by Ctrl-C."
)
@click.option(
    "-f", "--filename", "--podspec", "filename", default="", metavar="FILE",
    help="The pod, or a workload with its template; - is stdin.",
)  # fmt: skip
@click.option("--replicas", type=click.IntRange(min=1), help="So many pods are needed.  [default: as in the manifest]")
@click.option("--max", "--max-limit", "most", type=click.IntRange(min=0), default=0, help="Count to N; 0: to the end.")
@click.option(
    "--node-template",
    "node_templates",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A file with Nodes: how many like each would be needed? Can be repeated.",
)
@click.option("--exclude-nodes", multiple=True, metavar="NODE,…", help="As if these nodes did not exist.")
@click.option("-n", "--namespace", default="", help="The namespace of the pod, if its manifest names none.")
@FROM
@click.option(
    "--config", "--default-config", "config", type=click.Path(path_type=Path),
    help="The KubeSchedulerConfiguration to use.",
)  # fmt: skip
@PLUGIN_PATH
@FEATURE_GATES
@click.option("--kubeconfig", default="", help="The kubeconfig of the cluster.")
@click.option("--context", default="", help="The context of the kubeconfig.")
@click.option("--verbose", is_flag=True, help="Name every node, not only those with the most pods.")
@OUTPUT
def capacity(**options: Any) -> None:
    """Count how many more pods fit, say what stops the next one, and how many nodes would be needed. Changes nothing.

    The pods come one after the other, as the scheduler would place them, without evictions.
    """
    from stowplan.apps.capacity import command

    sys.exit(command.run(command.CapacityOptions(**options)))
