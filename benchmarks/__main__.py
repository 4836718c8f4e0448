"""`python -m benchmarks`: workloads at all sizes, and comparisons, as a table, as JSON and, with a flag, against
bounds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import click
from rich.console import Console
from rich.progress import Progress

from benchmarks import (
    bound_pods,
    bounds,
    churn,
    decoding,
    device_claims,
    diagnosis,
    groups,
    placement,
    policies,
    report,
    runs,
    stepping,
    twins,
    volumes,
    workload,
)
from benchmarks.figures import AnyFigure, Figure, Missing
from benchmarks.interleaving import ROUNDS
from stowplan.apps import profile_loader
from stowplan.framework.profile import Profile

QUICK_ROUNDS = 5
CHURN, CHURN_QUICK = 1_000_000, 100_000
COMPARISONS = (
    *("bound-pods", "decode-pod", "per-node-twins", "churn-memory", *stepping.NAMES),
    *(volumes.NAME, device_claims.NAME, policies.NAME, groups.NAME, placement.NAME, diagnosis.NAME),
)


@dataclass(frozen=True)
class Plan:
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    quick: bool

    @property
    def rounds(self) -> int:
        return QUICK_ROUNDS if self.quick else ROUNDS


def split(_context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """Names as given on the command line; all there are if none is."""
    known = (*workload.every(), *COMPARISONS)
    names = tuple(name for name in value.split(",") if name)
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name} is not one of {', '.join(known)}", param=parameter)
    return names or known


def numbers(_context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in value.split(",") if number)
    except ValueError:
        raise click.BadParameter("sizes are numbers with commas in between", param=parameter) from None


@click.command()
@click.option("--sizes", default="500,5000,50000,100000", show_default=True, callback=numbers, help="Numbers of nodes.")
@click.option("--workloads", default="", callback=split, help="Workloads and comparisons to run; all if not given.")
@click.option("--quick", is_flag=True, help="Fewer rounds and pods: a first look within a minute or two.")
@click.option("--json", "file", type=click.Path(path_type=Path), default="build/bench.json", show_default=True)
@click.option("--check", is_flag=True, help="Exit 1 if a bound is missed.")
def main(sizes: tuple[int, ...], workloads: tuple[str, ...], quick: bool, file: Path, check: bool) -> None:
    """Measure decisions in memory, beside a yardstick: one plain NumPy pass over the same nodes."""
    figures = measure(Plan(workloads, sizes, quick))
    report.show(figures)
    report.write_json(figures, file)
    missed = [sentence for sentence in bounds.missed(figures) if check or "not measured" not in sentence]
    for sentence in missed:
        click.echo(f"missed: {sentence}")
    failed = any(isinstance(figure, Missing) for figure in figures)
    sys.exit(1 if (missed and check) or failed else 0)


def measure(plan: Plan) -> list[AnyFigure]:
    figures: list[AnyFigure] = []
    with Progress(console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("", total=len(plan.names))
        for name, step in steps(plan, figures):
            progress.update(task, description=name)
            start = perf_counter()
            try:
                figures += step()
            except Exception as error:  # the other figures are worth having nevertheless
                figures.append(Missing(name, f"{type(error).__name__}: {error}"))
            progress.console.print(f"{name}: {perf_counter() - start:.1f} s")
            progress.advance(task)
    return figures


def steps(plan: Plan, done: list[AnyFigure]) -> Iterator[tuple[str, Callable[[], list[AnyFigure]]]]:
    profile = profile_loader.defaults()[1]["default-scheduler"]
    for name, found in workload.every().items():
        before = [figure for figure in done if isinstance(figure, Figure)]
        if name in plan.names:
            yield name, lambda: list(runs.run(found, plan.sizes, profile, plan.rounds, before))  # noqa: B023
    comparisons: dict[str, Callable[[], list[AnyFigure]]] = {
        "bound-pods": lambda: list(bound_pods.run(profile, plan.rounds)),
        "decode-pod": lambda: list(decoding.run(plan.rounds)),
        "per-node-twins": lambda: twins.run(plan.rounds),
        "churn-memory": lambda: list(churn.run(CHURN_QUICK if plan.quick else CHURN)),
        volumes.NAME: lambda: list(volumes.run(profile, plan.rounds)),
        device_claims.NAME: lambda: list(device_claims.run(profile, plan.rounds)),
        policies.NAME: lambda: list(policies.run(profile, plan.rounds)),
        groups.NAME: lambda: list(groups.run(plan.rounds)),
        placement.NAME: lambda: list(placement.run(plan.quick)),
        diagnosis.NAME: lambda: list(diagnosis.run(profile, plan.rounds)),
        **{name: partial(_stepping, name, profile, plan.rounds) for name in stepping.NAMES},
    }
    yield from ((name, step) for name, step in comparisons.items() if name in plan.names)


def _stepping(name: str, profile: Profile, rounds: int) -> list[AnyFigure]:
    return [stepping.run(name, profile, rounds)]


if __name__ == "__main__":
    main()
