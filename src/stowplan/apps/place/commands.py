"""The flags of `stowplan place` and `stowplan place explain`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stowplan.apps.flags import FROM, OUTPUT, PLUGIN_PATH, Duration, serving_options

EXIT_CODES = "Exit codes: 0 stopped by a signal, 1 the lease was lost or a task failed, 2 the input cannot be used."


@click.group(epilog=EXIT_CODES, invoke_without_command=True)
@click.option("--config", type=click.Path(path_type=Path), help="A PlacementConfiguration; read again when it changes.")
@PLUGIN_PATH
@click.option("--kubeconfig", default="", help="The kubeconfig of the hub.")
@click.option("--context", default="", help="The context of the kubeconfig.")
@click.option(
    "--leader-elect",
    type=click.BOOL,
    default=True,
    is_flag=False,
    flag_value=True,
    show_default=True,
    help="Decide only while this replica holds the lease.",
)
@click.option("--leader-elect-resource-name", "lease_name", default="stowplan-placement", show_default=True)
@click.option("--leader-elect-resource-namespace", "lease_namespace", default="kube-system", show_default=True)
@click.option("--leader-elect-lease-duration", "lease_duration", type=Duration(), default="15s", show_default=True)
@click.option("--leader-elect-renew-deadline", "renew_deadline", type=Duration(), default="10s", show_default=True)
@click.option("--leader-elect-retry-period", "retry_period", type=Duration(), default="2s", show_default=True)
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
@click.option(
    "--taint-unavailable",
    is_flag=True,
    help="Taint clusters as unavailable or unreachable, by their Available condition and their lease.",
)
@click.pass_context
def place(called: click.Context, /, **options: Any) -> None:
    """Choose clusters for the Placements of a hub, and write PlacementDecisions."""
    if called.invoked_subcommand is not None:
        return
    from stowplan.apps import import_path
    from stowplan.apps.leader_election import ElectionSettings
    from stowplan.apps.place import service
    from stowplan.apps.place.options import PlaceOptions

    named = ("lease_duration", "renew_deadline", "retry_period")
    times = {name: options.pop(name) for name in named}
    if not times["lease_duration"] > times["renew_deadline"] > times["retry_period"] > 0:
        found = ", ".join(f"{name} {value:g}s" for name, value in times.items())
        raise click.UsageError(f"found {found}; expected lease_duration > renew_deadline > retry_period > 0")
    if options["reschedule"] <= 0:
        raise click.BadParameter("found 0s, expected a duration such as 5m", param_hint="--reschedule-interval")
    election = ElectionSettings(name=options.pop("lease_name"), namespace=options.pop("lease_namespace"), **times)
    ocm = options.pop("compatibility") == "ocm"
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
    ):  # these may also stand before the word explain
        if called.get_parameter_source(flag) == click.core.ParameterSource.DEFAULT:
            options[flag] = called.parent.params[flag]
    sys.exit(command.run(command.PlacementExplainOptions(**options)))
