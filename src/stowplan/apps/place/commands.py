"""The flags of `stowplan place` and `stowplan place explain`; those of `place follow` are in `follow/commands.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stowplan.apps.flags import (
    FROM,
    OUTPUT,
    PLUGIN_PATH,
    Duration,
    WholeHelp,
    election_options,
    election_settings,
    serving_options,
)
from stowplan.apps.place.follow.commands import follow

HYSTERESIS = click.option(
    "--hysteresis",
    type=click.IntRange(0, 100),
    default=0,
    show_default=True,
    metavar="POINTS",
    help="Scores may vary by this much, up and down, without a change of decisions; 0: none, as in Open Cluster "
    "Management. The annotation stowplan.io/hysteresis of a placement comes first.",
)
EXIT_CODES = "Exit codes: 0 stopped by a signal, 1 the lease was lost or a task failed, 2 the input cannot be used."


@click.group(cls=WholeHelp, epilog=EXIT_CODES, invoke_without_command=True)
@click.option("--config", type=click.Path(path_type=Path), help="A PlacementConfiguration; read again when it changes.")
@PLUGIN_PATH
@click.option("--kubeconfig", default="", help="The kubeconfig of the hub.")
@click.option("--context", default="", help="The context of the kubeconfig.")
@election_options("stowplan-placement", "kube-system", "Decide")
@serving_options(8443)
@click.option(
    "--reschedule-interval",
    "reschedule",
    type=Duration(),
    default="5m",
    show_default=True,
    help="Each placement is decided again after this time, even if nothing changed.",
)
@click.option(
    "--compatibility",
    type=click.Choice(["none", "ocm"]),
    default="none",
    show_default=True,
    help="ocm: decide as Open Cluster Management does, without our additions.",
)
@HYSTERESIS
@click.option(
    "--taint-unavailable",
    is_flag=True,
    help="Taint clusters as unavailable or unreachable, by their Available condition and their lease. A cluster that "
    "has neither is left alone.",
)
@click.pass_context
def place(called: click.Context, /, **options: Any) -> None:
    """Choose clusters for the Placements of a hub, and write PlacementDecisions."""
    if called.invoked_subcommand is not None:
        return
    from stowplan.apps import import_path
    from stowplan.apps.place import service
    from stowplan.apps.place.options import PlaceOptions

    election = election_settings(options)
    if options["reschedule"] <= 0:
        raise click.BadParameter("found 0s, expected a duration such as 5m", param_hint="--reschedule-interval")
    ocm = options.pop("compatibility") == "ocm"
    _check_hysteresis(options["hysteresis"], ocm=ocm)
    import_path.leave_out_current_folder()
    sys.exit(service.run(PlaceOptions(election=election, ocm=ocm, **options)))


@place.command(
    epilog="Exit codes: 0 the placement gets all clusters that it asks for, 1 it does not, 2 the input cannot be used.",
)
@click.argument("name", default="")
@click.option(
    "-n", "--namespace", default="", help="The namespace of the placement; the default is that of the context."
)
@FROM
@click.option(
    "-f",
    "--filename",
    type=click.Path(path_type=Path),
    help="A file with a Placement, instead of NAME.",
)
@click.option("--config", type=click.Path(path_type=Path), help="The PlacementConfiguration to use.")
@PLUGIN_PATH
@click.option("--compatibility", type=click.Choice(["none", "ocm"]), default="none", show_default=True)
@HYSTERESIS
@click.option("--kubeconfig", default="", help="The kubeconfig of the hub.")
@click.option("--context", default="", help="The context of the kubeconfig.")
@OUTPUT
@click.pass_context
def explain(called: click.Context, /, **options: Any) -> None:
    """Explain which clusters the placement NAME would get now, and why not others. Changes nothing."""
    from stowplan.apps.place import explain as command

    assert called.parent is not None
    for flag in (
        "config",
        "plugin_path",
        "kubeconfig",
        "context",
        "compatibility",
        "hysteresis",
    ):  # these may also stand before the word explain
        if called.get_parameter_source(flag) == click.core.ParameterSource.DEFAULT:
            options[flag] = called.parent.params[flag]
    _check_hysteresis(options["hysteresis"], ocm=options["compatibility"] == "ocm")
    sys.exit(command.run(command.PlacementExplainOptions(**options)))


def _check_hysteresis(points: int, *, ocm: bool) -> None:
    if points and ocm:
        problem = f"found {points} with --compatibility=ocm: Open Cluster Management has no hysteresis"
        raise click.BadParameter(f"{problem}; leave one of them out", param_hint="--hysteresis")


place.add_command(follow)
