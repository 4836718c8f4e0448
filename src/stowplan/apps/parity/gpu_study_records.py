"""`stowplan parity --data DIR replay.jsonl.gz`: runs of the GPU fragmentation study, replayed and compared.

A record is one run: the order in which the pods of a list arrived, the order of the nodes, and the curve of allocated
GPUs that each policy reached. The lists are data of others; they are found by name below DIR.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from stowplan.objects.errors import ConfigError
from stowplan.simulation import gpu_study, openb

FIELDS = ("trace", "seed", "pods", "nodes", "curves")
NODE_LIST = "openb_node_list_gpu_node.csv"
MOST_ARRIVALS = 1_000_000
TOLERANCE = 0.015  # curves are rounded means of rounded values
POINTS = 131  # 0 to 130 % of arrived demand
RIGHT = (
    "a record is an object with trace (a text), seed (a whole number), pods and nodes (lists of row numbers), and "
    f"curves (an object of lists of {POINTS} numbers, by policy)"
)


def run(files: Iterable[Path], data: Path, show: int, out: IO[str] | None) -> int:
    """Replay the files. Return 0 if every curve agrees at every point."""
    if not data.is_dir():
        raise ConfigError(
            "is not a folder", file=str(data), remedy="--data names the folder with the node and pod lists"
        )
    records = [each for file in files for each in read(file)]
    lists = Lists(data)
    for file, line, record in records:  # all that can be wrong is said before hours of replaying
        check(record, lists, file, line)
    console, notes = Console(highlight=False), Console(stderr=True, highlight=False)
    table = Table("trace", "seed", "policy", "points", "differ", "largest difference", box=None)
    differing = 0
    for _, _, record in track(records, "replaying", console=notes, disable=not sys.stderr.isatty()):
        curves = {policy: replayed(record, policy, lists) for policy in record["curves"]}
        if out is not None:
            print(
                json.dumps({"trace": record["trace"], "seed": record["seed"], "curves": curves}), file=out, flush=True
            )
        for policy, ours in curves.items():
            found = list(differences(record["curves"][policy], ours))
            largest = max(abs(mine - recorded) for _, recorded, mine in points(record["curves"][policy], ours))
            row = (escape(record["trace"]), str(record["seed"]), policy, str(len(ours)), str(len(found)))
            table.add_row(*row, f"{largest:.3f}")
            differing += bool(found)
            for at, recorded, mine in found[: show if differing <= show else 0]:
                console.print(
                    f"{record['trace']}, seed {record['seed']}, {policy} at {at} %: recorded {recorded}, ours {mine}"
                )
    console.print(table)
    return 1 if differing or not records else 0


def read(file: Path) -> Iterator[tuple[Path, int, dict[str, Any]]]:
    """Yield the records of a file, with their lines."""
    from stowplan.apps.parity.command import lines

    for number, found in lines(file):
        if not _is_record(found):
            raise ConfigError("not a record of the study", file=str(file), path=f"line {number}", remedy=RIGHT)
        yield file, number, found


def _is_record(found: object) -> bool:
    if not isinstance(found, dict) or set(FIELDS) - found.keys():
        return False
    return (
        isinstance(found["trace"], str)
        and type(found["seed"]) is int
        and all(
            isinstance(found[name], list) and all(type(at) is int for at in found[name]) for name in ("pods", "nodes")
        )
        and isinstance(found["curves"], dict)
        and bool(found["curves"])
        and all(_is_curve(each) for each in found["curves"].values())
    )


def _is_curve(found: object) -> bool:
    return (
        isinstance(found, list)
        and len(found) == POINTS
        and all(isinstance(each, int | float) and not isinstance(each, bool) for each in found)
    )


class Lists:
    """The node and pod lists below a folder, by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.nodes = lru_cache(maxsize=1)(self._nodes)
        self.pods = lru_cache(maxsize=32)(self._pods)

    def _nodes(self) -> list[openb.OpenBNode]:
        file = self._find(NODE_LIST)
        return openb.read_nodes(_bytes(file), str(file))

    def _pods(self, trace: str) -> list[openb.OpenBPod]:
        file = self._find(f"openb_pod_list_{trace}.csv")
        return openb.read_pods(_bytes(file), str(file))

    def _find(self, name: str) -> Path:
        if Path(name).name != name:
            raise ConfigError(f"{name!r} is no name of a file", file=str(self._folder))
        found = sorted(folder / name for folder in _folders(self._folder) if (folder / name).is_file())
        if not found:
            remedy = "--data names a folder with the lists of OpenB, in any folder below it"
            raise ConfigError(f"there is no {name} below it", file=str(self._folder), remedy=remedy)
        return found[0]


def _folders(folder: Path) -> Iterator[Path]:
    """Yield the folder and those below it, also behind symbolic links, each once."""
    seen: set[str] = set()
    for path, below, _ in os.walk(folder, followlinks=True):
        real = os.path.realpath(path)
        if real in seen:
            below.clear()
            continue
        seen.add(real)
        yield Path(path)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=str(file)) from None


def check(record: dict[str, Any], lists: Lists, file: Path, line: int) -> None:
    """Raise an error unless the record can be replayed with these lists."""

    def wrong(problem: str, remedy: str = "") -> ConfigError:
        return ConfigError(problem, file=str(file), path=f"line {line}", remedy=remedy)

    for policy in record["curves"]:
        if policy not in gpu_study.DETERMINISTIC:
            known = ", ".join(gpu_study.DETERMINISTIC)
            raise wrong(f"curves has {policy[:80]!r}, which cannot be replayed", f"the policies are {known}")
    nodes, pods = lists.nodes(), lists.pods(record["trace"])
    if sorted(record["nodes"]) != list(range(len(nodes))):
        raise wrong(f"nodes is no order of the {len(nodes)} nodes of {NODE_LIST}", "each row once, counted from 0")
    outside = next((at for at in record["pods"] if not 0 <= at < len(pods)), None)
    if outside is not None:
        raise wrong(f"pods has {outside}, and the list has the rows 0 to {len(pods) - 1}")
    if not 0 < len(record["pods"]) <= MOST_ARRIVALS:
        raise wrong(f"pods has {len(record['pods'])} arrivals", f"1 to {MOST_ARRIVALS} can be replayed")


def replayed(record: dict[str, Any], policy: str, lists: Lists) -> list[float | None]:
    """Return our curve of one policy; None where too little demand has arrived."""
    nodes, pods = lists.nodes(), lists.pods(record["trace"])
    order = [nodes[at].name for at in record["nodes"]]
    arrivals = gpu_study.run(nodes, pods, record["pods"], gpu_study.profile_of(policy, pods), order)
    found = gpu_study.curve(arrivals, gpu_study.capacity(nodes))
    return [None if math.isnan(each) else each for each in found]


def points(recorded: list[float], ours: list[float | None]) -> Iterator[tuple[int, float, float]]:
    """Yield each point of the two curves with both values; nan where we have none."""
    for at, (theirs, mine) in enumerate(zip(recorded, ours, strict=True)):
        yield at, theirs, math.nan if mine is None else mine


def differences(recorded: list[float], ours: list[float | None]) -> Iterator[tuple[int, float, float]]:
    """Yield the points at which the curves differ."""
    for at, theirs, mine in points(recorded, ours):
        if not abs(theirs - mine) <= TOLERANCE:  # nan is not within it
            yield at, theirs, mine
