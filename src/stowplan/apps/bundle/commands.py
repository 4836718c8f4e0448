"""The command `stowplan bundle`, with its flags. What it does is imported when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click


@click.command(
    epilog="Exit codes: 0 the bundle has all that was asked for, 1 something of it could not be read, 2 the input "
    "cannot be used."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default="stowplan-bundle.tar.gz", show_default=True,
    help="The file to write.",
)  # fmt: skip
@click.option(
    "--config", "configs", multiple=True, type=click.Path(path_type=Path),
    help="A configuration to put in, without secrets and comments; can be repeated.",
)  # fmt: skip
@click.option(
    "--pages", multiple=True, metavar="URL",
    help="The pages of a running Stowplan: metrics, health, the configuration in force; can be repeated.",
)  # fmt: skip
@click.option("--token-file", type=click.Path(path_type=Path), help="A file with the bearer token for the pages.")
@click.option("--ca-file", type=click.Path(path_type=Path), help="The certificates that the pages are signed by.")
@click.option(
    "--insecure-skip-tls-verify", "insecure", is_flag=True,
    help="Do not check the certificate of the pages: for those that Stowplan makes itself.",
)  # fmt: skip
@click.option("--decision-log", type=click.Path(path_type=Path), help="The file of `stowplan run --decision-log`.")
@click.option("--log", type=click.Path(path_type=Path), help="A file with the log of Stowplan.")
@click.option(
    "--cluster/--no-cluster", default=True, show_default=True, help="Ask the cluster who leads, and its version."
)
@click.option("--kubeconfig", default="", help="The kubeconfig of the cluster.")
@click.option("--context", default="", help="The context of the kubeconfig.")
def bundle(**options: Any) -> None:
    """Write what a maintainer needs to know about a running Stowplan into one file. Secrets are left out."""
    from stowplan.apps.bundle import command

    sys.exit(command.run(command.BundleOptions(**options)))
