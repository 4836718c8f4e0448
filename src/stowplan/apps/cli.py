"""The command `stowplan`. Each command imports its modules when it runs, so that --help is quick."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import IO, Any

import click

from stowplan.apps.bundle.commands import bundle
from stowplan.apps.capacity.commands import capacity
from stowplan.apps.flags import FEATURE_GATES, FROM, OUTPUT, PLUGIN_PATH, LogLevel, WholeHelp, serving_options
from stowplan.apps.followed_version import KUBERNETES
from stowplan.apps.kube_scheduler_flags import KubeSchedulerCommand, boolean_option, kube_scheduler_options
from stowplan.apps.run_flags import recording_options
from stowplan.apps.shadow.commands import shadow
from stowplan.apps.simulate.commands import simulate
from stowplan.apps.ui.commands import ui
from stowplan.apps.what_if.commands import what_if
from stowplan.objects.errors import ConfigError, StowplanError

EXIT_CODES = "Exit codes: 0 success, 1 the answer is no (something differs), 2 the input cannot be used."


class Commands(WholeHelp):
    """A StowplanError is printed as one line and ends with exit code 2, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except StowplanError as error:
            click.echo(f"stowplan: {error}", err=True)
            ctx.exit(2)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(None, "-V", "--version", package_name="stowplan", message="%(prog)s %(version)s")
def main() -> None:
    """Schedule pods and placements on Kubernetes, with policies written in Python, and explain each decision."""


@main.command()
@click.option("--pause", is_flag=True, help="On a terminal, wait for Enter before each scene.")
def demo(pause: bool) -> None:
    """Show the policies, one at a time, on clusters in memory, and why pods are where they are."""
    from stowplan.apps.demo import command

    sys.exit(command.run(pause=pause))


@main.command(epilog=EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--show", type=click.IntRange(min=0), default=3, show_default=True, help="Show the first N scenarios that differ."
)
@click.option("--json", "out", type=click.File("w"), help="Write our answer to each scenario, one JSON line each.")
@click.option(
    "--data", type=click.Path(path_type=Path), help="FILES are runs of the GPU study; DIR has its node and pod lists."
)
def parity(files: tuple[Path, ...], show: int, out: IO[str] | None, data: Path | None) -> None:
    """Replay recorded decisions of the real kube-scheduler (.jsonl or .jsonl.gz) and compare every field."""
    from stowplan.apps.parity import command

    sys.exit(command.run(files, show, out, data))


@main.command(
    cls=KubeSchedulerCommand,
    epilog="Exit codes: 0 stopped by a signal, 1 the lease was lost or a task failed, 2 the input cannot be used.",
)
@click.option(
    "--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration; read again when it changes."
)
@PLUGIN_PATH
@FEATURE_GATES
@click.option("--kubeconfig", default="", help="The kubeconfig; overrides clientConnection.kubeconfig.")
@click.option("--context", default="", help="The context of the kubeconfig.")
@boolean_option("--leader-elect", "leader_elect", "Overrides leaderElection.leaderElect.")
@click.option("--leader-elect-resource-name", "lease_name", default="", help="The name of the lease.")
@click.option("--leader-elect-resource-namespace", "lease_namespace", default="", help="The namespace of the lease.")
@serving_options(10259, verbosity="Verbosity of the log; 2 shows each binding.")
@kube_scheduler_options()
@click.option(
    "--pod-max-in-unschedulable-pods-duration",
    "longest_wait",
    default="5m",
    show_default=True,
    help="An unschedulable pod is attempted again after this time, even if nothing changed.",
)
@click.option("--replace", is_flag=True, help="Serve default-scheduler although kube-scheduler still holds its lease.")
@recording_options()
def run(
    longest_wait: str,
    tls_min_version: str,
    tls_cipher_suites: tuple[str, ...],
    always_allow_paths: tuple[str, ...] | None,
    **options: Any,
) -> None:
    """Schedule the pods of a cluster. Without --config these are the pods with schedulerName "stowplan"."""
    from stowplan.apps import quick_start

    with quick_start.imports():
        from stowplan.apps import import_path, serving_security
        from stowplan.apps.run import service
        from stowplan.apps.run.options import RunOptions
        from stowplan.framework.config.document import duration

    wait = duration(longest_wait)
    if wait is None or wait <= 0:
        hint = "--pod-max-in-unschedulable-pods-duration"
        raise click.BadParameter(f"{longest_wait!r} is not a duration such as 5m", param_hint=hint)
    import_path.leave_out_current_folder()
    security = serving_security.read(tls_min_version, tls_cipher_suites, always_allow_paths)
    sys.exit(service.run(RunOptions(longest_wait=wait, security=security, **options)))


@main.command(epilog="Exit codes: 0 each pod would get a node, 1 a pod would not, 2 the input cannot be used.")
@click.argument("names", nargs=-1, metavar="[POD|deploy/NAME|sts/NAME|job/NAME|rs/NAME]...")
@click.option("-n", "--namespace", default="", help="The namespace of the pods; the default is that of the context.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Explain the pending pods of all namespaces.")
@click.option("-l", "--selector", default="", help="Explain the pending pods with these labels.")
@click.option(
    "-f", "--filename", "filenames", multiple=True, help="A manifest with pods that do not exist yet; - is stdin."
)
@click.option("--replicas", type=click.IntRange(min=1), help="With -f: so many pods of each workload.")
@FROM
@click.option(
    "--node-templates",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Files with Nodes that could be added; can be repeated.",
)
@click.option(
    "--pool-label",
    default="karpenter.sh/nodepool",
    show_default=True,
    help="Nodes with the same value of this label are alike: more of them could be added.",
)
@click.option("--all-remedies", is_flag=True, help="Show all remedies with their commands, not only the best.")
@click.option("--pages", default="", metavar="URL", help="The pages of a running Stowplan: asked about its queue.")
@click.option("--config", type=click.Path(path_type=Path), help="The KubeSchedulerConfiguration to use.")
@PLUGIN_PATH
@FEATURE_GATES
@click.option("--kubeconfig", default="", help="The kubeconfig of the cluster.")
@click.option("--context", default="", help="The context of the kubeconfig.")
@OUTPUT
def explain(**options: Any) -> None:
    """Explain where pods would be scheduled now, why not elsewhere, and what would help. Changes nothing.

    Without names: all pending pods.
    """
    from stowplan.apps.explain import command

    sys.exit(command.run(command.ExplainOptions(**options)))


@main.command(epilog=EXIT_CODES)
@click.option(
    "--nodes", type=click.IntRange(min=0), help="The number of nodes to create.  [default: 3; 0 if --from has nodes]"
)
@click.option("--zones", type=click.IntRange(min=1), default=3, show_default=True, help="The number of zones.")
@click.option("--cpu", default="4", show_default=True, help="The CPU of each node.")
@click.option("--memory", default="16Gi", show_default=True, help="The memory of each node.")
@FROM
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    default="stowplan.kubeconfig",
    show_default=True,
    help="Where to write the kubeconfig.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Other addresses than the loopback need --token or --rbac."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0: any free port.")
@click.option("--token", default="", help="The bearer token that clients must send; with --rbac the administrator's.")
@click.option("--rbac", is_flag=True, help="Authenticate and authorize requests by RBAC, over HTTPS.")
@click.option("--scheduler/--no-scheduler", default=True, show_default=True, help="Run Stowplan in the cluster.")
@click.option("--ui/--no-ui", default=True, show_default=True, help="Serve the pages of `stowplan ui`.")
@click.option("--config", type=click.Path(path_type=Path), help="The KubeSchedulerConfiguration of the scheduler.")
@PLUGIN_PATH
@FEATURE_GATES
@click.option("-v", "--v", "v", type=LogLevel(), default=0, show_default=True, help="Verbosity of the scheduler's log.")
def up(**options: Any) -> None:
    """Start a cluster in this process, to try things out with kubectl. No container is started."""
    from stowplan.apps.up import command

    sys.exit(command.run(command.UpOptions(**options)))


for _each in (bundle, simulate, what_if, capacity, shadow, ui):
    main.add_command(_each)


@main.command(epilog=EXIT_CODES)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The file: JSON if it ends with .json, else YAML."
)
@FROM
@click.option("--anonymise", is_flag=True, help="Replace names, labels, images and addresses, alike in every place.")
@click.option("--seed", default="", help="Replace them by the same words each time; without it by other ones.")
@click.option(
    "--keep", multiple=True, metavar="WORD", help="A word that stays, or an annotation's key; can be repeated."
)
@click.option("--config", type=click.Path(path_type=Path), help="Dump what the plugins of this configuration read.")
@PLUGIN_PATH
@click.option("--kubeconfig", default="", help="The kubeconfig of the cluster.")
@click.option("--context", default="", help="The context of the kubeconfig.")
def dump(**options: Any) -> None:
    """Write what decisions depend on in a cluster into one file, to explain, simulate or share it."""
    from stowplan.apps.dump import command

    sys.exit(command.run(command.DumpOptions(**options)))


@main.command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--config", type=click.Path(path_type=Path), help="Another configuration than that of the recording.")
@PLUGIN_PATH
@OUTPUT
def replay(**options: Any) -> None:
    """Replay what `stowplan run --record` wrote, and say whether the scheduler does the very same again."""
    from stowplan.apps.replay import command

    sys.exit(command.run(command.ReplayOptions(**options)))


class ProducerGroup(WholeHelp):
    """The commands below `score-agent`; their module is imported when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        from stowplan.apps.score_agent.commands import PRODUCERS

        return list(PRODUCERS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        from stowplan.apps.score_agent.commands import PRODUCERS

        return PRODUCERS.get(cmd_name)


@main.group("score-agent", cls=ProducerGroup)
def score_agent() -> None:
    """Write scores of clusters to a hub, and keep them up to date, for Placements to use."""


class PluginGroup(WholeHelp):
    """The commands below `plugin`; their module is imported when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        from stowplan.apps.plugin_kit.commands import COMMANDS

        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        from stowplan.apps.plugin_kit.commands import COMMANDS

        return COMMANDS.get(cmd_name)


@main.group(cls=PluginGroup)
def plugin() -> None:
    """Write, check and measure plugins of your own."""


class PlaceCommand(click.Command):
    """`place`, and the commands below it; their module is imported when it is needed."""

    def make_context(self, info_name: str | None, *arguments: Any, **more: Any) -> click.Context:
        from stowplan.apps.place.commands import place

        return place.make_context(info_name, *arguments, **more)


main.add_command(
    PlaceCommand(
        "place",
        help="Choose clusters for the Placements of a hub, and write PlacementDecisions.",
        epilog="Exit codes: 0 stopped by a signal, 1 the lease was lost or a task failed, 2 the input cannot be used.",
    )
)


@main.command()
@OUTPUT
def version(output: str) -> None:
    """Print the version, and the version of kube-scheduler that decides the same."""
    from importlib.metadata import version as installed

    found = {"stowplan": installed("stowplan"), "kubernetes": KUBERNETES}
    _print(found, output, f"stowplan {found['stowplan']} (as kube-scheduler {KUBERNETES})")


@main.command(epilog='For example: eval "$(stowplan completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes `stowplan` commands in a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "stowplan", "_STOWPLAN_COMPLETE").source())


def kube_scheduler() -> None:
    """`kube-scheduler`, which units and manifests call with its own flags: `stowplan run`."""
    main(as_kube_scheduler(sys.argv[1:]), prog_name="kube-scheduler")


def as_kube_scheduler(given: list[str]) -> list[str]:
    """Return the arguments of `stowplan` for those of kube-scheduler."""
    return ["--version"] if given[:1] and given[0].split("=")[0] == "--version" else ["run", *given]


@main.group(cls=WholeHelp)
def config() -> None:
    """Check or show a KubeSchedulerConfiguration, or a PlacementConfiguration."""


@config.command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
@PLUGIN_PATH
@click.option("--rbac", is_flag=True, help="Print the ClusterRole that its plugins need beyond deploy/rbac.yaml.")
def check(file: Path, plugin_path: tuple[Path, ...], rbac: bool) -> None:
    """Check whether FILE can be used. If not, name each place where it is wrong, and what would be right."""
    from stowplan.apps import config_errors, profile_loader, rights
    from stowplan.apps.place import config_commands

    if config_commands.is_placement_configuration(file):
        if rbac:
            remedy = "deploy/placement/rbac.yaml has the rights of stowplan place"
            raise ConfigError("--rbac is for a KubeSchedulerConfiguration", file=str(file), remedy=remedy)
        with config_errors.all_told(file, plugin_path):
            config_commands.check(file, plugin_path)
        return
    with config_errors.all_told(file, plugin_path):
        configuration, profiles, arguments = profile_loader.read_files(file, plugin_path)
    for note in configuration.notes:
        click.echo(f"note: {note}", err=True)
    more = rights.beyond(profiles.values())
    if rbac:
        click.echo(rights.manifest(more, next(iter(profiles))))
        return
    click.echo(f"{file}: valid, {len(profiles)} profile(s): {', '.join(profiles)}")
    for source, text in arguments.items():
        click.echo(f"{source}: {'read, valid' if text else 'does not exist, so the configuration alone counts'}")
    if more:
        click.echo(f"Its plugins need rights that deploy/rbac.yaml does not grant: {rights.told(more)}.")
        flags = "".join(f" --plugin-path {folder}" for folder in plugin_path)
        grant = f"stowplan config check --rbac {file}{flags} | kubectl apply -f -"
        click.echo(f"To grant them to the service account of deploy/: {grant}")


@config.command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@PLUGIN_PATH
@OUTPUT
def show(file: Path | None, plugin_path: tuple[Path, ...], output: str) -> None:
    """Show the plugins of each extension point in order, with weights, and their arguments, with all defaults."""
    from stowplan.apps import config_show, profile_loader
    from stowplan.apps.place import config_commands

    if file is not None and config_commands.is_placement_configuration(file):
        found = config_commands.found(file, plugin_path)
        _print(found, output, "\n".join(config_show.lines(found, _width())))
        return
    read = profile_loader.read_configuration
    configuration, profiles = profile_loader.defaults() if file is None else read(file, plugin_path)
    found = config_show.of_profiles(configuration, profiles)
    _print(found, output, config_show.text(found, _width()))


def _width() -> int | None:
    """Return the width of the terminal; None if the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _print(found: dict[str, Any], output: str, text: str) -> None:
    """Print a text for people, or JSON or YAML for programs."""
    if output == "table":
        click.echo(text)
        return
    from stowplan.apps import json_output

    json_output.echo(found, output)


if __name__ == "__main__":
    main()
