"""`python -m benchmarks.live`: a control plane, both schedulers on it in turns, figures as a table and as JSON."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from tests.controlplane.build import CannotBuildError
from tests.controlplane.plane import ControlPlane

from benchmarks import workload
from benchmarks.live import bounds, bytecode, profiling, report
from benchmarks.live.cluster import LiveCluster
from benchmarks.live.contenders import everybody
from benchmarks.live.figures import Figure, Missing, Run
from benchmarks.live.rounds import NAMES, Plan, Rounds
from stowplan.kube import credentials, event_loop
from stowplan.kube.client import Client
from stowplan.kube.transport import Transport

SERVER = (
    "--delete-collection-workers=16",  # between runs
    "--event-ttl=24h",  # none may expire during another measurement, which is work
)
EXIT_CODES = "Exit codes: 0 fine, 1 a run failed, an event is missing, or a bound is missed (--check)."


def chosen(_context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(name for name in value.split(",") if name)
    for name in names:
        if name not in NAMES:
            raise click.BadParameter(f"{name} is not one of {', '.join(NAMES)}", param=parameter)
    return names


def numbers(_context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(sorted(int(number) for number in value.split(",") if number))
    except ValueError:
        raise click.BadParameter("sizes are numbers with commas in between", param=parameter) from None


@click.command(epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--workloads", "names", default=",".join(NAMES), callback=chosen, show_default=True, help="With commas in between."
)
@click.option("--sizes", default="1000,5000", show_default=True, callback=numbers, help="Numbers of nodes.")
@click.option("--pods", type=click.IntRange(2), default=5000, show_default=True, help="Fewer where they find no room.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="The figures are their medians.")
@click.option("--quick", is_flag=True, help="A first look: one round, 1,000 nodes, 1,000 pods.")
@click.option("--json", "file", type=click.Path(path_type=Path), default="build/bench-live.json", show_default=True)
@click.option("--check", is_flag=True, help="Exit 1 and name every bound that is missed; they are due at 5,000 nodes.")
@click.option(
    "--profile", type=click.Path(path_type=Path), help="Folder for profiles of Stowplan's runs; needs py-spy."
)
def main(
    names: tuple[str, ...], sizes: tuple[int, ...], pods: int, rounds: int, quick: bool, file: Path, check: bool,
    profile: Path | None,
) -> None:  # fmt: skip
    """Measure Stowplan and kube-scheduler in turns at one real kube-apiserver (built first if need be, which takes Go).

    The schedulers' logs go to bench-live/ beside the JSON file.
    """
    if profile is not None and profiling.sampler() is None:
        raise click.UsageError("--profile needs py-spy, which is not installed here")
    if quick:
        sizes, pods, rounds = (1000,), 1000, 1
    bytecode.compile_all()
    plan = Plan(names, sizes, pods, rounds, file.parent / "bench-live", profile, any_noise=quick)
    try:
        figures = measure(plan)
    except CannotBuildError as error:
        raise click.ClickException(str(error)) from None
    report.show(figures)
    report.write_json(figures, file)
    missed = list(bounds.missed(figures, names)) if check else []
    for sentence in missed:
        click.echo(f"missed: {sentence}")
    sys.exit(1 if missed or any(isinstance(figure, Missing) for figure in figures) else 0)


def measure(plan: Plan) -> list[Figure | Missing]:
    with (
        ControlPlane(benchmark=True, apiserver_flags=SERVER) as plane,
        Progress(console=Console(stderr=True), transient=True, redirect_stdout=False, refresh_per_second=1) as progress,
        asyncio.Runner(loop_factory=event_loop.new) as runner,
    ):
        return runner.run(all_figures(plan, plane, progress))


async def all_figures(plan: Plan, plane: ControlPlane, progress: Progress) -> list[Figure | Missing]:
    task = progress.add_task("", total=plan.runs)

    def told(name: str, nodes: int, run: Run) -> None:
        progress.console.print(report.line(name, nodes, run), soft_wrap=True, highlight=False)
        progress.advance(task)

    client = Client(Transport(credentials.load(str(plane.kubeconfig()))))
    try:
        rounds = Rounds(plan, LiveCluster(client), everybody(plane), told)
        figures: list[Figure | Missing] = []
        for nodes in plan.sizes:
            progress.update(task, description=f"{nodes:,} nodes")
            figures += await figures_at(rounds, nodes, progress)
        return figures
    finally:
        await client.close()


async def figures_at(rounds: Rounds, nodes: int, progress: Progress) -> list[Figure | Missing]:
    """One for each workload; what keeps one from being had does not keep the others."""
    workloads = [workload.every()[name] for name in rounds.plan.names]
    for each in workloads:
        await rounds.prepare(each, nodes)
    idle = await rounds.idle(nodes)
    figures: list[Figure | Missing] = []
    for each in workloads:
        try:
            figures.append(await rounds.figure(each, nodes, idle))
        except Exception as error:
            figures.append(Missing(each.name, nodes, why(error)))
            progress.console.print(f"{each.name} at {nodes:,} nodes failed: {why(error)}", highlight=False)
    return figures


def why(error: Exception) -> str:
    """What went wrong first where several things were done at once."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
