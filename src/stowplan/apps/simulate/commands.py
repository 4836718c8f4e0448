"""The command `stowplan simulate`, with its flags. What it does is imported when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stowplan.apps.flags import FEATURE_GATES, OUTPUT, PLUGIN_PATH, Length


@click.command(
    epilog="Exit codes: 0 the runs ended and every expectation holds, 1 an expectation failed, 2 the input cannot be "
    "used, 130 stopped by Ctrl-C."
)
@click.argument("cluster", type=click.Path(exists=True, path_type=Path))
@click.argument("streams", nargs=-1, metavar="[STREAM]...", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--templates",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Files with Pods, PodTemplates or workloads that rows of a table name; can be repeated.",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="[NAME=]FILE",
    help="The KubeSchedulerConfiguration to use. Given several times: each is compared with the first one.",
)
@click.option(
    "--configuration",
    "configurations",
    multiple=True,
    metavar="NAME=FILE",
    help="Another one, which a scenario can change to by its name; can be repeated.",
)
@PLUGIN_PATH
@FEATURE_GATES
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed, the same run.")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="So many runs, each with the next seed."
)
@click.option(
    "--stream",
    "alternatives",
    multiple=True,
    metavar="[NAME=]FILE",
    help="A stream that comes beside all STREAMs; given several times: in runs of its own.",
)
@click.option(
    "--until",
    type=Length(),
    metavar="TIME",
    help="When the run ends, such as 7d.  [default: when nothing is left that could happen]",
)
@click.option("--bind-latency", type=Length(), default="0s", show_default=True, help="How long a binding takes.")
@click.option("--start-latency", type=Length(), default="0s", show_default=True, help="How long a pod's start takes.")
@click.option("--stop-latency", type=Length(), default="0s", show_default=True, help="How long its termination takes.")
@click.option(
    "--job-duration",
    type=Length(),
    default="60s",
    show_default=True,
    help="How long a pod of a Job runs that does not say so.",
)
@click.option(
    "--sample",
    type=Length(),
    metavar="TIME",
    help="The time between two rows of the series; 0: no series, and no fragmentation.  [default: 60s; in runs of more "
    "than a week so that there are about 10,000]",
)
@click.option(
    "--prices",
    type=click.Path(exists=True, path_type=Path),
    help="Prices for an hour: in each line a node or an instance type, a comma, and the price.",
)
@click.option(
    "--node-order",
    type=click.Path(exists=True, path_type=Path),
    help="Names of nodes, one in each line: of equally good nodes the first is taken.  [default: one is drawn]",
)
@click.option("--out", type=click.Path(path_type=Path), help="A folder for the figures, the series and all pods.")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A page of HTML with curves, a map of the nodes over time and why pods wait; it needs no server.",
)
@click.option(
    "--figure", "figures", multiple=True, metavar="NAME", help="Compare this figure only, such as wait.p99 or 'wait.*'."
)
@click.option(
    "--fail-if", multiple=True, metavar="CONDITION", help="Such as 'wait.p99 > 60s': exit code 1 if it is so."
)
@click.option(
    "--expect",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of Expectations: exit code 1 if one does not hold.",
)
@click.option("--junit", type=click.Path(path_type=Path), help="Write the expectations as a JUnit file.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Runs at a time, each in a process.  [default: one for each CPU]"
)
@click.option(
    "--on",
    default="",
    metavar="ADDRESS",
    help="Do the runs on the Dask cluster of this scheduler: tcp://10.0.0.5:8786.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write down each run that is done; the same command goes on from there.",
)
@click.option("--skip-invalid", is_flag=True, help="Leave out what cannot be used, and say what that was.")
@OUTPUT
def simulate(**options: Any) -> None:
    """Simulate what a stream of pods does to a cluster: weeks in seconds, with the same seed the same run.

    CLUSTER is a dump (`kubectl get nodes,pods -A -o yaml`), manifests, an export of kube-scheduler-simulator, a
    ClusterTemplate, a node list of OpenB (CSV), or a folder of these. A STREAM is a table (CSV, JSONL, Parquet), a pod
    list of OpenB (CSV) or a scenario (YAML). Without one the pods of CLUSTER are all.

    With several --config, --stream or --seeds it does all these runs, and compares what came of them.
    """
    from stowplan.apps.simulate import sweep_command

    sys.exit(sweep_command.started(options))
