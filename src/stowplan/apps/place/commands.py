"""`stowplan place` and `stowplan place explain`: what they can be told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stowplan.apps.flags import FROM, OUTPUT, Duration, served

EXIT_CODES = "Exit codes: 0 told to stop, 1 the lease was lost or a part failed, 2 the input cannot be used."


@click.group(epilog=EXIT_CODES, invoke_without_command=True)
@click.option("--kubeconfig", default="", help="How to reach the hub.")
@click.option("--context", default="", help="The kubeconfig's context to use.")
@click.option(
    "--leader-elect",
    type=click.BOOL,
    default=True,
    is_flag=False,
    flag_value=True,
    show_default=True,
    help="Write only while holding a lease.",
)
@click.option("--leader-elect-resource-name", "lease_name", default="stowplan-placement", show_default=True)
@click.option("--leader-elect-resource-namespace", "lease_namespace", default="kube-system", show_default=True)
@click.option("--leader-elect-lease-duration", "lease_duration", type=Duration(), default="15s", show_default=True)
@click.option("--leader-elect-renew-deadline", "renew_deadline", type=Duration(), default="10s", show_default=True)
@click.option("--leader-elect-retry-period", "retry_period", type=Duration(), default="2s", show_default=True)
@served(8443)
@click.option(
    "--reschedule-interval",
    "reschedule",
    type=Duration(),
    default="5m",
    show_default=True,
    help="Every placement is looked at again after this long, whatever happens or not.",
)
@click.option(
    "--compatibility",
    type=click.Choice(["none", "ocm"]),
    default="none",
    show_default=True,
    help="ocm: as Open Cluster Management's scheduler decides, without our additions.",
)
@click.option(
    "--taint-unavailable",
    is_flag=True,
    help="Keep the taints unavailable and unreachable of clusters, from their Available condition and their lease.",
)
@click.pass_context
def place(called: click.Context, /, **options: Any) -> None:
    """Choose clusters for the Placements of a hub, and write PlacementDecisions."""
    if called.invoked_subcommand is not None:
        return
    from stowplan.apps.leader_election import ElectionSettings
    from stowplan.apps.place import service
    from stowplan.apps.place.options import PlaceOptions

    named = ("lease_duration", "renew_deadline", "retry_period")
    times = {name: options.pop(name) for name in named}
    if not times["lease_duration"] > times["renew_deadline"] > times["retry_period"] > 0:
        problem = f"found {', '.join(f'{value:g}s' for value in times.values())}"
        raise click.UsageError(f"{problem}; a lease must last longer than its renewal may take, that longer than a try")
    if options["reschedule"] <= 0:
        raise click.BadParameter("found 0s, expected a duration such as 5m", param_hint="--reschedule-interval")
    election = ElectionSettings(name=options.pop("lease_name"), namespace=options.pop("lease_namespace"), **times)
    ocm = options.pop("compatibility") == "ocm"
    sys.exit(service.run(PlaceOptions(election=election, ocm=ocm, **options)))


@place.command(
    epilog="Exit codes: 0 the placement gets all it asks for, 1 it does not, 2 the input cannot be used.",
)
@click.argument("name", default="")
@click.option("-n", "--namespace", default="", help="The placement's namespace; without it the context's.")
@FROM
@click.option(
    "-f",
    "--filename",
    type=click.Path(path_type=Path),
    help="A Placement that is not saved, instead of NAME.",
)
@click.option("--compatibility", type=click.Choice(["none", "ocm"]), default="none", show_default=True)
@click.option("--kubeconfig", default="", help="How to reach the hub.")
@click.option("--context", default="", help="The kubeconfig's context to use.")
@OUTPUT
@click.pass_context
def explain(called: click.Context, /, **options: Any) -> None:
    """Say which clusters the placement NAME would get as things stand, and what others lack. Changes nothing."""
    from stowplan.apps.place import explain as command

    assert called.parent is not None
    for flag in ("kubeconfig", "context", "compatibility"):  # before the word explain, too
        if called.get_parameter_source(flag) == click.core.ParameterSource.DEFAULT:
            options[flag] = called.parent.params[flag]
    sys.exit(command.run(command.PlacementExplainOptions(**options)))
