"""The flags of `stowplan place follow`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stowplan.apps.flags import Duration, election_options, election_settings, serving_options

EPILOG = (
    "Exit codes: 0 stopped by a signal, or with --once every cluster is as it should be; 1 with --once some are not, "
    "or the lease was lost; 2 the input cannot be used, or the hub cannot be reached."
)


@click.command(epilog=EPILOG)
@click.argument("placement")
@click.option(
    "-n", "--namespace", default="", help="The namespace of the Placement, unless PLACEMENT is NAMESPACE/NAME."
)
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="Manifests of the workload: a file or a folder; can be repeated. Read again when they change.",
)
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME=KUBECONFIG",
    help="A cluster and its kubeconfig; can be repeated.",
)
@click.option(
    "--clusters-dir",
    type=click.Path(path_type=Path),
    help="A folder with one kubeconfig for each cluster, named after it: a mounted Secret, for example.",
)
@click.option("--kubeconfig", default="", help="The kubeconfig of the hub.")
@click.option("--context", default="", help="The context of the kubeconfig.")
@click.option(
    "--name",
    "follower",
    default="",
    help="Marks the objects that are made. Two followers of one Placement need two names.  [default: NAMESPACE.NAME]",
)
@click.option("--adopt", is_flag=True, help="Take over objects that exist already, and delete them like our own.")
@click.option(
    "--resync-interval",
    "resync",
    type=Duration(),
    default="30s",
    show_default=True,
    help="How often each cluster is compared with the manifest.",
)
@click.option(
    "--hold-removals",
    "hold",
    type=Duration(),
    default="5m",
    show_default=True,
    help="How long a chosen cluster that does not answer delays removals from others.",
)
@click.option("--once", is_flag=True, help="One round only; without leader election.")
@click.option("--dry-run", is_flag=True, help="Print what one round would write, and write nothing.")
@election_options("<stowplan-follow-NAME>", "<the namespace of the Placement>", "Write")
@serving_options(8444)
@click.pass_context
def follow(
    called: click.Context, /, placement: str, namespace: str, clusters: tuple[str, ...], follower: str, **options: Any
) -> None:
    """Keep a workload in exactly the clusters of PLACEMENT: create it in new ones, then delete it elsewhere.

    Objects of any kind, in the clusters that are named. What somebody changes or deletes there is brought back. Only
    objects that this program made are ever deleted, and only while the Placement itself says which clusters it has.
    """
    from stowplan.apps.place.follow import kubeconfigs, manifest, service
    from stowplan.apps.place.follow.options import FollowOptions

    _inherit(called, options, "kubeconfig", "context")
    within, _, name = placement.rpartition("/")
    if not name or (within and namespace and within != namespace) or "/" in within:
        raise click.BadParameter(
            f"found {placement!r}, expected NAMESPACE/NAME, or NAME with -n", param_hint="PLACEMENT"
        )
    within = within or namespace or "default"
    if options["resync"] <= 0:
        raise click.BadParameter("found 0s, expected a duration such as 30s", param_hint="--resync-interval")
    if not clusters and options["clusters_dir"] is None:
        raise click.UsageError("found neither --cluster nor --clusters-dir, expected the clusters to write to")
    follower = manifest.label_value(follower or f"{within}.{name}")
    options["lease_name"] = options["lease_name"] or f"stowplan-follow-{follower}"
    options["lease_namespace"] = options["lease_namespace"] or within
    election, elects = election_settings(options), options.pop("leader_elect")
    made = FollowOptions(
        namespace=within,
        placement=name,
        follower=follower,
        clusters=kubeconfigs.pairs(clusters),
        election=election if elects else None,
        **options,
    )
    sys.exit(service.run(made))


def _inherit(called: click.Context, options: dict[str, Any], *flags: str) -> None:
    """Flags of the hub may also stand before the word follow."""
    for flag in flags:
        if called.get_parameter_source(flag) == click.core.ParameterSource.DEFAULT and called.parent is not None:
            options[flag] = called.parent.params.get(flag, options[flag])
