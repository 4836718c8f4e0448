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
