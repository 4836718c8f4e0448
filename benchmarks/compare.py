"""`python -m benchmarks.compare OTHER`: the figures of two trees, measured by turns in one run.

OTHER is a checkout of another commit with a `.venv` of its own (`make setup` there). Each workload runs in both trees,
one after the other, several times. For each figure the medians are compared, so that what else the machine does
changes both sides alike. `--worst` is the largest ratio that is allowed; the exit code is 1 if a figure exceeds it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks import workload
from benchmarks.__main__ import COMPARISONS

HERE = Path(__file__).parents[1]
Key = tuple[str, str, int]  # workload, case, nodes


@click.command()
@click.argument("other", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--workloads", default="", help="Names with commas in between; all if not given.")
@click.option("--sizes", default="5000", show_default=True, help="Numbers of nodes, with commas in between.")
@click.option("--rounds", default=3, show_default=True, help="How often each workload runs in each tree.")
@click.option("--quick", is_flag=True, help="Fewer rounds and pods within each run.")
@click.option("--worst", default=1.1, show_default=True, help="The largest ratio of a figure here to the one there.")
def main(other: Path, workloads: str, sizes: str, rounds: int, quick: bool, worst: float) -> None:
    """Compare this tree's figures with those of the tree OTHER."""
    names = [name for name in workloads.split(",") if name] or [*workload.every(), *COMPARISONS]
    here: dict[Key, list[float]] = defaultdict(list)
    there: dict[Key, list[float]] = defaultdict(list)
    for name in names:
        for turn in range(rounds):
            click.echo(f"{name}: round {turn + 1} of {rounds}", err=True)
            for tree, figures in ((HERE, here), (other.resolve(), there)):
                for key, value in measure(tree, name, sizes, quick).items():
                    figures[key].append(value)
    ratios = {key: median(here[key]) / median(there[key]) for key in here if there.get(key) and median(there[key])}
    show(here, there, ratios, worst)
    sys.exit(1 if any(ratio > worst for ratio in ratios.values()) else 0)


def measure(tree: Path, name: str, sizes: str, quick: bool) -> dict[Key, float]:
    """Run one workload in one tree. Return its figures: the less, the better."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        arguments = ["--workloads", name, "--sizes", sizes, "--json", str(file), *(["--quick"] if quick else [])]
        command = [str(tree / ".venv" / "bin" / "python"), "-m", "benchmarks", *arguments]
        subprocess.run(command, cwd=tree, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    return {_key(figure): _cost(figure) for figure in found if _cost(figure) > 0}


def _key(figure: dict[str, Any]) -> Key:
    return figure["workload"], figure.get("case", ""), figure.get("nodes", 0)


def _cost(figure: dict[str, Any]) -> float:
    """Yardsticks where there are some, since they leave out how fast the machine is just now; else the ratio."""
    return float(figure.get("yardsticks") or figure.get("ratio") or 0.0)


def show(
    here: dict[Key, list[float]], there: dict[Key, list[float]], ratios: dict[Key, float], worst: float
) -> None:  # fmt: skip
    table = Table(title="This tree against the other one; less is better", title_justify="left")
    for heading in ("workload", "case", "nodes", "here", "there", "ratio", ""):
        table.add_column(heading, justify="right" if heading in ("nodes", "here", "there", "ratio") else "left")
    for key, ratio in ratios.items():
        name, case, nodes = key
        mark = "worse" if ratio > worst else ""
        cells = (f"{median(here[key]):.2f}", f"{median(there[key]):.2f}", f"{ratio:.2f}")
        table.add_row(name, case, f"{nodes:,}", *cells, mark)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
