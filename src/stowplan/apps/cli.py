"""The command `stowplan`. Commands import what they need when they run, so that --help stays quick."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any

import click

from stowplan.objects.errors import StowplanError

EXIT_CODES = "Exit codes: 0 fine, 1 the answer is no (something differs), 2 the input cannot be used."


class Commands(click.Group):
    """Errors of our own end in one line and exit code 2, never in a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except StowplanError as error:
            click.echo(f"stowplan: {error}", err=True)
            ctx.exit(2)


class Level(click.types.IntParamType):
    """A whole number; `-v=4`, as Go's programs are given it, reaches us as "=4"."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        digits: Any = value.removeprefix("=") if isinstance(value, str) else value
        return super().convert(digits, param, ctx)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(None, "-V", "--version", package_name="stowplan", message="%(prog)s %(version)s")
def main() -> None:
    """Decide where work runs on Kubernetes, with policies written in Python, and say why."""


@main.command()
def demo() -> None:
    """Place the pods of a small cluster in memory, and say why each went where it went."""
    from stowplan.apps import demo as command

    sys.exit(command.run())


@main.command(epilog=EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--show", type=click.IntRange(min=0), default=3, show_default=True, help="Show the first N that differ.")
@click.option("--json", "out", type=click.File("w"), help="Write our answer to every scenario, one JSON line each.")
def parity(files: tuple[Path, ...], show: int, out: IO[str] | None) -> None:
    """Replay recorded decisions of the real kube-scheduler (.jsonl or .jsonl.gz) and compare every field."""
    from stowplan.apps import parity as command

    sys.exit(command.run(files, show, out))


@main.command(epilog="Exit codes: 0 told to stop, 1 the lease was lost or a part failed, 2 the input cannot be used.")
@click.option(
    "--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration; looked at again on change."
)
@click.option("--kubeconfig", default="", help="How to reach the API server; wins over clientConnection.kubeconfig.")
@click.option("--context", default="", help="The kubeconfig's context to use.")
@click.option(
    "--leader-elect",
    type=click.BOOL,
    default=None,
    is_flag=False,
    flag_value=True,  # the flag alone, as in many manifests
    help="Overrides leaderElection.leaderElect.",
)
@click.option("--leader-elect-resource-name", "lease_name", default="", help="The lease's name.")
@click.option("--leader-elect-resource-namespace", "lease_namespace", default="", help="The lease's namespace.")
@click.option("--authentication-kubeconfig", default="", help="Where tokens are reviewed, if elsewhere.")
@click.option("--authorization-kubeconfig", default="", help="Where access is reviewed, if elsewhere.")
@click.option("--bind-address", default="0.0.0.0", show_default=True, help="Address of the secure port.")
@click.option("--secure-port", type=click.IntRange(0, 65535), default=10259, show_default=True, help="0: none.")
@click.option(
    "--plain-port", type=click.IntRange(0, 65535), default=0, help="The same over HTTP, on the loopback only."
)
@click.option("--tls-cert-file", default="", help="The secure port's certificate; one is made if none is given.")
@click.option("--tls-private-key-file", default="", help="Its key.")
@click.option("-v", "--v", "v", type=Level(), default=0, show_default=True, help="How much to say: 2 each binding.")
@click.option("--logging-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--pod-max-in-unschedulable-pods-duration",
    "longest_wait",
    default="5m",
    show_default=True,
    help="A pod is tried again after this long, whatever happens or not.",
)
@click.option("--replace", is_flag=True, help="Serve default-scheduler although kube-scheduler still holds its lease.")
def run(longest_wait: str, **options: Any) -> None:
    """Schedule the pods of a cluster. Without --config: those whose schedulerName is "stowplan"."""
    from stowplan.apps import options as told
    from stowplan.apps import scheduler
    from stowplan.framework.document import duration

    wait = duration(longest_wait)
    if wait is None or wait <= 0:
        raise click.BadParameter(f"{longest_wait!r} is not a duration such as 5m", param_hint="longest wait")
    sys.exit(scheduler.run(told.Options(longest_wait=wait, **options)))


@main.command(epilog="Exit codes: 0 it has a place, 1 it has none, 2 the input cannot be used.")
@click.argument("pod")
@click.option("-n", "--namespace", default="default", show_default=True, help="The pod's namespace.")
@click.option(
    "--from",
    "files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Files or folders of `kubectl get … -o yaml` instead of a cluster; may be given several times.",
)
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration to decide by.")
@click.option("--kubeconfig", default="", help="How to reach the API server.")
@click.option("--context", default="", help="The kubeconfig's context to use.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def explain(pod: str, **options: Any) -> None:
    """Say where POD would go as things stand, and why not elsewhere. Changes nothing."""
    from stowplan.apps import explain as command

    sys.exit(command.run(pod, **options))


@main.command(epilog=EXIT_CODES)
@click.option("--nodes", type=click.IntRange(min=0), default=3, show_default=True, help="How many nodes to make.")
@click.option("--zones", type=click.IntRange(min=1), default=3, show_default=True, help="Over how many zones.")
@click.option("--cpu", default="4", show_default=True, help="What each node has.")
@click.option("--memory", default="16Gi", show_default=True)
@click.option(
    "--from",
    "files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Manifests or a dump of a real cluster (`kubectl get … -o yaml`), files or folders.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    default="stowplan.kubeconfig",
    show_default=True,
    help="Where to write how to reach it.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Anything but loopback needs a --token.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0: any free one.")
@click.option("--token", default="", help="What clients must show.")
@click.option("--scheduler/--no-scheduler", default=True, show_default=True, help="Run Stowplan in it.")
@click.option("--config", type=click.Path(path_type=Path), help="The scheduler's KubeSchedulerConfiguration.")
@click.option("-v", "--v", "v", type=Level(), default=0, show_default=True, help="How much the scheduler says.")
def up(**options: Any) -> None:
    """Start a cluster in this process, for first tries: kubectl talks to it, pods run in name only."""
    from stowplan.apps import up as command

    sys.exit(command.run(command.Wanted(**options)))


@main.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as installed

    click.echo(f"stowplan {installed('stowplan')}")


@main.group()
def config() -> None:
    """Look at a KubeSchedulerConfiguration."""


@config.command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Say whether FILE could be used, and if not, where it is wrong and what would be right."""
    from stowplan.apps import wiring

    configuration, profiles = wiring.read_configuration(file)
    for note in configuration.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{file}: fine, {len(profiles)} profile(s): {', '.join(profiles)}")


@config.command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path), required=False)
def show(file: Path | None) -> None:
    """Who runs at which point, in which order, with which weight, after defaulting and expansion."""
    from stowplan.apps import wiring

    _, profiles = wiring.defaults() if file is None else wiring.read_configuration(file)
    for name, profile in profiles.items():
        click.echo(name)
        for point, bounds in profile.points.items():
            if bounds:
                listed = (f"{bound.name}*{bound.weight}" if point == "score" else bound.name for bound in bounds)
                click.echo(f"  {point}: {', '.join(listed)}")


if __name__ == "__main__":
    main()
