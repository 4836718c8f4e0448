"""What `stowplan up` prints at its start: commands that work in the cluster as it is served."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from stowplan.embedded.manifests import LoadedManifests

_DEFAULT = "default-scheduler"


def show(
    kubeconfig: Path, url: str, loaded: LoadedManifests, schedulers: Sequence[str],
    *, rbac: bool = False, taken: Path | None = None, pages: str = "",
) -> None:  # fmt: skip
    """`schedulers` are the names of the profiles that are served; none without a scheduler. `taken`: the file that
    another cluster has, so that this one has the next. `pages`: the address of the pages that show the cluster.
    """
    click.echo(f"A cluster is up at {url}. Try:")
    click.echo("")
    for line in commands(schedulers):
        click.echo(f"    kubectl --kubeconfig {shlex.quote(str(kubeconfig))} {line}")
    click.echo("")
    if pages:
        click.echo(f"See what the scheduler sees: {pages}")
    if taken is not None:
        click.echo(f"{taken} belongs to another cluster that runs, so this one has {kubeconfig}.")
    for line in notes(schedulers, rbac=rbac):
        click.echo(line)
    if loaded.loaded:
        click.echo("Loaded: " + ", ".join(f"{number} {kind}" for kind, number in sorted(loaded.loaded.items())))
    if loaded.skipped:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(loaded.skipped.items()))
        click.echo(f"Ignored, since the cluster does not serve these kinds: {kinds}", err=True)
    click.echo("Ctrl-C ends it. Nothing is saved.")


def commands(schedulers: Sequence[str]) -> list[str]:
    """Arguments of kubectl: the pods that they make are for a scheduler that runs."""
    if not schedulers or _DEFAULT in schedulers:
        make = "create deployment web --image=nginx --replicas=5"
    else:  # `kubectl create deployment` has no way to name a scheduler
        spec = json.dumps({"spec": {"schedulerName": schedulers[0]}}, separators=(",", ":"))
        make = f"run web --image=nginx --overrides={shlex.quote(spec)}"
    return ["get nodes", make, "get pods -o wide"]


def notes(schedulers: Sequence[str], *, rbac: bool = False) -> list[str]:
    """What is good to know before the first command, a line each."""
    found = ["You are the administrator. `kubectl create token ACCOUNT` and `--as` act as another."] if rbac else []
    if not schedulers:
        found.append("No scheduler runs here: pods stay Pending until one of yours binds them.")
    elif _DEFAULT not in schedulers:
        names = ", ".join(schedulers)
        found.append(f"Served scheduler names: {names}. A pod that names none is for {_DEFAULT}, and stays Pending.")
    return found
