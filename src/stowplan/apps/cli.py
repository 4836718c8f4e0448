"""The command `stowplan`. Commands import what they need when they run, so that --help stays quick."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any

import click

from stowplan.apps.flags import FROM, OUTPUT, LogLevel, served
from stowplan.objects.errors import StowplanError

EXIT_CODES = "Exit codes: 0 fine, 1 the answer is no (something differs), 2 the input cannot be used."
KUBERNETES = "1.36"  # whose decisions ours are true to


class Commands(click.Group):
    """Errors of our own end in one line and exit code 2, never in a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except StowplanError as error:
            click.echo(f"stowplan: {error}", err=True)
            ctx.exit(2)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(None, "-V", "--version", package_name="stowplan", message="%(prog)s %(version)s")
def main() -> None:
    """Decide where work runs on Kubernetes, with policies written in Python, and say why."""


@main.command()
def demo() -> None:
    """Place the pods of a small cluster in memory, and say why each went where it went."""
    from stowplan.apps.demo import command

    sys.exit(command.run())


@main.command(epilog=EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--show", type=click.IntRange(min=0), default=3, show_default=True, help="Show the first N that differ.")
@click.option("--json", "out", type=click.File("w"), help="Write our answer to every scenario, one JSON line each.")
def parity(files: tuple[Path, ...], show: int, out: IO[str] | None) -> None:
    """Replay recorded decisions of the real kube-scheduler (.jsonl or .jsonl.gz) and compare every field."""
    from stowplan.apps.parity import command

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
@served(10259, how_much="How much to say: 2 each binding.")
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
    from stowplan.apps.run import options as told
    from stowplan.apps.run import service
    from stowplan.framework.config.document import duration

    wait = duration(longest_wait)
    if wait is None or wait <= 0:
        raise click.BadParameter(f"{longest_wait!r} is not a duration such as 5m", param_hint="longest wait")
    sys.exit(service.run(told.RunOptions(longest_wait=wait, **options)))


@main.command(epilog="Exit codes: 0 each pod has a place, 1 one has none, 2 the input cannot be used.")
@click.argument("pod", default="")
@click.option("-n", "--namespace", default="", help="The pod's namespace; without it the context's.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="The pending pods of all namespaces.")
@FROM
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration to decide by.")
@click.option("--kubeconfig", default="", help="How to reach the API server.")
@click.option("--context", default="", help="The kubeconfig's context to use.")
@OUTPUT
def explain(**options: Any) -> None:
    """Say where POD, or each pending pod, would go as things stand, and why not elsewhere. Changes nothing."""
    from stowplan.apps.explain import command

    sys.exit(command.run(command.ExplainOptions(**options)))


@main.command(epilog=EXIT_CODES)
@click.option("--nodes", type=click.IntRange(min=0), default=3, show_default=True, help="How many nodes to make.")
@click.option("--zones", type=click.IntRange(min=1), default=3, show_default=True, help="Over how many zones.")
@click.option("--cpu", default="4", show_default=True, help="What each node has.")
@click.option("--memory", default="16Gi", show_default=True)
@FROM
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
@click.option("-v", "--v", "v", type=LogLevel(), default=0, show_default=True, help="How much the scheduler says.")
def up(**options: Any) -> None:
    """Start a cluster in this process, for first tries: kubectl talks to it, pods run in name only."""
    from stowplan.apps.up import command

    sys.exit(command.run(command.UpOptions(**options)))


class Producers(click.Group):
    """Their many flags are in a module of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        from stowplan.apps.score_agent.commands import PRODUCERS

        return list(PRODUCERS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        from stowplan.apps.score_agent.commands import PRODUCERS

        return PRODUCERS.get(cmd_name)


@main.group("score-agent", cls=Producers)
def score_agent() -> None:
    """Keep scores of clusters written on a hub, for Placements to choose by."""


class Place(click.Command):
    """Its many flags, and what is below it, are in a module of their own."""

    def make_context(self, info_name: str | None, *arguments: Any, **more: Any) -> click.Context:
        from stowplan.apps.place.commands import place

        return place.make_context(info_name, *arguments, **more)


main.add_command(
    Place(
        "place",
        help="Choose clusters for the Placements of a hub, and write PlacementDecisions.",
        epilog="Exit codes: 0 told to stop, 1 the lease was lost or a part failed, 2 the input cannot be used.",
    )
)


@main.command()
@OUTPUT
def version(output: str) -> None:
    """Print the version, and that of the kube-scheduler whose decisions it makes."""
    from importlib.metadata import version as installed

    found = {"stowplan": installed("stowplan"), "kubernetes": KUBERNETES}
    _answer(found, output, f"stowplan {found['stowplan']} (as kube-scheduler {KUBERNETES})")


@main.command(epilog='For example: eval "$(stowplan completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that makes the shell complete what is typed after `stowplan`."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "stowplan", "_STOWPLAN_COMPLETE").source())


def complete_for_kubectl() -> None:
    """`kubectl_complete-stowplan`: kubectl calls it with the words so far, and wants one proposal a line."""
    from click.shell_completion import ShellComplete

    *words, last = sys.argv[1:] or [""]
    for found in ShellComplete(main, {}, "kubectl-stowplan", "").get_completions(words, last):
        click.echo(f"{found.value}\t{found.help}" if found.help else found.value)
    click.echo(":0")  # and otherwise names of files, as shells do


@main.group()
def config() -> None:
    """Look at a KubeSchedulerConfiguration."""


@config.command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Say whether FILE could be used, and if not, where it is wrong and what would be right."""
    from stowplan.apps import profile_loader

    configuration, profiles = profile_loader.read_configuration(file)
    for note in configuration.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{file}: fine, {len(profiles)} profile(s): {', '.join(profiles)}")


@config.command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@OUTPUT
def show(file: Path | None, output: str) -> None:
    """Who runs at which point, in which order, with which weight, after defaulting and expansion."""
    from stowplan.apps import profile_loader

    _, profiles = profile_loader.defaults() if file is None else profile_loader.read_configuration(file)
    lines, found = [], []
    for name, profile in profiles.items():
        points = {
            point: [
                {"name": enabled.name} | ({"weight": enabled.weight} if point == "score" else {}) for enabled in plugins
            ]
            for point, plugins in profile.points.items()
            if plugins
        }
        found.append({"schedulerName": name, "points": points})
        lines.append(name)
        for point, plugins in points.items():
            listed = (f"{each['name']}*{each['weight']}" if "weight" in each else each["name"] for each in plugins)
            lines.append(f"  {point}: {', '.join(map(str, listed))}")
    _answer({"profiles": found}, output, "\n".join(lines))


def _answer(found: Any, output: str, text: str) -> None:
    """As a text for people, or in a form for programs."""
    if output == "table":
        click.echo(text)
        return
    from stowplan.apps import printing

    printing.echo(found, output)


if __name__ == "__main__":
    main()
