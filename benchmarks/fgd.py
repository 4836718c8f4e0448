"""The statistics of the GPU fragmentation study: six policies with seeds of our own, compared with what was published.

    python -m benchmarks.fgd                      # all traces, ten seeds: an hour of two cores
    python -m benchmarks.fgd --traces default --seeds 1 --policies FGD     # the CPU time of one run
    make bench-fgd ARGS='--traces default gpuspec33 --seeds 2'             # a part of it

Each run is followed by the same run as a plain NumPy loop, in the same process: its CPU time is the yardstick, and
every decision of a policy without randomness has to place the same demand. `--no-loop` leaves that out.

A mean may lie within three deviations of the published one, and policies that the study tells apart must be in the same
order. The lists and results are data of others: they are looked for in ../shared beside this folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import Progress

from benchmarks import gpu_study_loop
from stowplan.simulation import gpu_arrivals, gpu_study, openb

SHARED = Path(__file__).parents[2] / "shared"
FIRST_SEED = 1000  # the study's own are 42 to 51
WITHIN = 3  # deviations

Means = Mapping[str, Sequence[float]]  # allocated percentage at each point, by policy


class OneRun(NamedTuple):
    """What a process is asked for."""

    node_list: Path
    pod_list: Path
    policy: str
    seed: int
    loop: bool = True


class Measured(NamedTuple):
    """A run's curve, its CPU time in seconds, that of the plain loop, and whether both placed the same."""

    curve: list[float]
    seconds: float
    plain: float = float("nan")
    same: bool = True


def run(asked: OneRun) -> Measured:
    nodes = openb.read_nodes(asked.node_list.read_bytes(), str(asked.node_list))
    pods = openb.read_pods(asked.pod_list.read_bytes(), str(asked.pod_list))
    whole, generator = gpu_study.capacity(nodes), np.random.default_rng(asked.seed)
    order = gpu_arrivals.arrivals(pods, whole, generator)
    ordered = [nodes[at] for at in generator.permutation(len(nodes)).tolist()]
    draw = generator if asked.policy == gpu_study.RANDOM else None
    begin = time.process_time()
    profile = gpu_study.profile_of(asked.policy, pods)
    found = gpu_study.run(nodes, pods, order, profile, [node.name for node in ordered], draw)
    curve = gpu_study.curve(found, whole)
    seconds = time.process_time() - begin
    if not asked.loop:
        return Measured(curve, seconds)
    begin = time.process_time()
    plain = gpu_study_loop.run(asked.policy, ordered, pods, order, generator)
    return Measured(curve, seconds, time.process_time() - begin, draw is not None or plain == found)


def problems(published: Mapping[str, Any], means: Means, points: Sequence[int], floor: float) -> Iterator[str]:
    """Yield where our means of one trace are not what the study's are."""
    for policy, ours in means.items():
        theirs = published["policies"][policy]
        for at, mean, deviation, found in zip(points, theirs["mean"], theirs["sd"], ours, strict=True):
            if not abs(found - mean) <= WITHIN * max(deviation, floor):
                yield f"{policy} at {at} %: {found:.3f}, published {mean} ± {deviation}"
    for at, point in enumerate(points):
        for lower, higher in published["separated"].get(str(point), ()):
            if {lower, higher} <= means.keys() and not means[lower][at] < means[higher][at]:
                yield f"{lower} is not below {higher} at {point} %: {means[lower][at]:.3f}, {means[higher][at]:.3f}"


def main() -> int:
    results = json.loads((SHARED / "golden" / "fgd" / "results.json").read_bytes())
    options = _options(list(results["traces"]))
    points = results["demand_percent"]
    wrong, measured = 0, {}
    for trace in options.traces:
        published = results["traces"][trace]
        asked = _asked(results["node_list"], published["pod_list"], options)
        found = _all(trace, asked, options.processes)
        curves: dict[str, list[list[float]]] = {}
        for each, (curve, _, _, same) in zip(asked, found, strict=True):
            curves.setdefault(each.policy, []).append([curve[point] for point in points])
            if not same:
                wrong += 1
                print(f"{trace}: {each.policy}, seed {each.seed}: the plain loop placed other pods")
        means = {policy: np.mean(values, axis=0).tolist() for policy, values in curves.items()}
        times = {policy: _times(policy, asked, found) for policy in means}
        measured[trace] = {"means": means, "cpu": times}
        for problem in problems(published, means, points, results["sd_floor"]):
            wrong += 1
            print(f"{trace}: {problem}")
        for policy, values in means.items():
            ours, plain = times[policy]["engine"], times[policy]["loop"]
            beside = f"; plain loop {plain:.2f} s, ratio {ours / plain:.1f}" if options.loop else ""
            print(f"{trace}: {policy:14} {values[-1]:.2f} %, {ours:.2f} s of CPU{beside}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    print(f"{wrong} differences" if wrong else "everything is as published")
    return 1 if wrong else 0


def _asked(node_list: str, pod_list: str, options: argparse.Namespace) -> list[OneRun]:
    lists = SHARED / "data" / "openb"
    return [
        OneRun(lists / node_list, lists / pod_list, policy, FIRST_SEED + number, options.loop)
        for policy in options.policies
        for number in range(options.seeds)
    ]


def _all(trace: str, asked: Sequence[OneRun], processes: int) -> list[Measured]:
    """Run them all, with progress where somebody looks."""
    found: list[Measured] = []
    console = Console(stderr=True)
    with (
        ProcessPoolExecutor(processes) as pool,
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        task = progress.add_task(trace, total=len(asked))
        for each, one in zip(asked, pool.map(run, asked), strict=True):
            found.append(one)
            progress.update(task, advance=1, description=f"{trace} {each.policy}")
    return found


def _times(policy: str, asked: Sequence[OneRun], found: Sequence[Measured]) -> dict[str, float]:
    """The median CPU times of a policy's runs, in seconds."""
    own = [one for each, one in zip(asked, found, strict=True) if each.policy == policy]
    return {"engine": median(one.seconds for one in own), "loop": median(one.plain for one in own)}


def _options(traces: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", nargs="*", default=traces, choices=traces)
    parser.add_argument("--policies", nargs="*", default=gpu_study.POLICIES, choices=gpu_study.POLICIES)
    parser.add_argument("--seeds", type=_positive, default=10)
    parser.add_argument("--processes", type=_positive, default=2)
    parser.add_argument("--no-loop", dest="loop", action="store_false", help="leave out the plain NumPy loop")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return number


if __name__ == "__main__":
    sys.exit(main())
