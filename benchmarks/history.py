"""`make bench-history`: adds the figures of the last runs to `history.csv`, a row for each commit and figure.

It reads what `make bench`, `make bench-live` and `make bench-scale` left in `build/`, as far as it is there and newer
than the last commit, and says which figures are worse than the best of the ten commits before. The file belongs into
the repository: a loss is then seen in review.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

FILE = Path(__file__).parent / "history.csv"
COLUMNS = ("date", "commit", "figure", "nodes", "value", "unit", "better", "others")
LOWER, HIGHER = "lower", "higher"
WORSE = 1.15  # times the best of the last commits: what is more than that is a loss, not noise
LAST = 10  # commits to compare with


@dataclass(frozen=True)
class Entry:
    """One figure at one commit. `others`: cores that other programs kept busy, where that was measured."""

    date: str
    commit: str
    figure: str
    nodes: int
    value: float
    unit: str
    better: str
    others: str = ""

    @property
    def key(self) -> tuple[str, int]:
        return self.figure, self.nodes

    def loss_to(self, earlier: Entry) -> float:
        """How many times worse it is."""
        one, two = (self.value, earlier.value) if self.better == LOWER else (earlier.value, self.value)
        return one / two if two else 1.0


def of_memory(figures: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int, float, str, str, str]]:
    for each in figures:
        if "why" in each:
            continue
        name = f"{each['workload']}: {each['case']}" if each.get("case") else each["workload"]
        if each.get("yardsticks") is not None:
            yield name, each["nodes"], each["yardsticks"], "yardsticks", LOWER, ""
        elif each.get("ratio") is not None:
            better = HIGHER if each["workload"] == "per-node-twins" else LOWER
            yield name, each["nodes"], each["ratio"], "ratio", better, ""


def of_live(figures: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int, float, str, str, str]]:
    for each in figures:
        if "why" in each or not each.get("counted_rounds"):
            continue  # a figure of disturbed rounds would only mislead
        name, nodes, others = f"live {each['workload']}", each["nodes"], f"{each['others_cores']['stowplan']:.2f}"
        yield f"{name}: ratio", nodes, each["ratio"], "times kube-scheduler", HIGHER, others
        yield f"{name}: CPU", nodes, each["cpu_s_per_1000_pods"]["stowplan"], "s/1,000 pods", LOWER, others
        yield f"{name}: peak RSS", nodes, each["peak_rss_mb"]["stowplan"], "MB", LOWER, others


def of_scale(sizes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int, float, str, str, str]]:
    for each in sizes:
        for field, value in each.items():
            if field not in ("nodes", "pods"):
                unit = "bytes" if field.startswith("bytes") else "MB" if field.endswith("mb") else "µs"
                yield f"scale {field}", each["nodes"], value, unit, LOWER, ""


SOURCES = {"bench.json": of_memory, "bench-live.json": of_live, "bench-scale.json": of_scale}


def entries(folder: Path, commit: str, since: float) -> Iterator[Entry]:
    """The figures in the files that were written after a time."""
    for name, read in SOURCES.items():
        file = folder / name
        if not file.exists() or file.stat().st_mtime < since:
            continue
        date = datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()
        for figure, nodes, value, unit, better, others in read(msgspec.json.decode(file.read_bytes())):
            yield Entry(date, commit, figure, nodes, float(f"{value:.4g}"), unit, better, others)


def read(file: Path) -> list[Entry]:
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        return [
            Entry(**{**row, "nodes": int(row["nodes"]), "value": float(row["value"])})  # type: ignore[arg-type]
            for row in csv.DictReader(lines)
        ]


def write(file: Path, known: Sequence[Entry]) -> None:
    with file.open("w", newline="", encoding="utf-8") as lines:
        rows = csv.writer(lines, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows([getattr(each, column) for column in COLUMNS] for each in known)


def merged(known: Sequence[Entry], new: Sequence[Entry]) -> list[Entry]:
    """A commit that is measured again has its last figures."""
    fresh = {(each.commit, *each.key) for each in new}
    return [each for each in known if (each.commit, *each.key) not in fresh] + list(new)


def losses(known: Sequence[Entry], new: Sequence[Entry]) -> Iterator[str]:
    """A sentence for each new figure that is worse than the best of the last commits."""
    commits = list(dict.fromkeys(each.commit for each in known))
    for each in new:
        recent = [commit for commit in commits if commit != each.commit][-LAST:]
        before = [old for old in known if old.key == each.key and old.commit in recent]
        if not before:
            continue
        best = max(before, key=each.loss_to)
        if (loss := each.loss_to(best)) > WORSE:
            yield (
                f"{each.figure} at {each.nodes:,} nodes: {each.value:g} {each.unit}, {loss:.2f} times worse than "
                f"{best.value:g} of {best.commit}"
            )


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--build", "folder", type=click.Path(path_type=Path), default="build", show_default=True)
@click.option("--file", type=click.Path(path_type=Path), default=FILE, help="The table; default: beside this module.")
@click.option("--check", is_flag=True, help="Exit 1 if a figure is worse than before.")
def main(folder: Path, file: Path, check: bool) -> None:
    """Add the figures of the last runs to the table over commits, and say what got worse."""
    commit, since = _git("rev-parse", "--short", "HEAD"), float(_git("log", "-1", "--format=%ct"))
    known, new = read(file), list(entries(folder, commit, since))
    write(file, merged(known, new))
    click.echo(f"{len(new)} figures of {commit}; {len(known)} were there")
    worse = list(losses(known, new))
    for sentence in worse:
        click.echo(f"worse: {sentence}")
    sys.exit(1 if check and worse else 0)


if __name__ == "__main__":
    main()
