"""The statistics of the GPU fragmentation study: six policies with seeds of our own, compared with what was published.

    python -m benchmarks.fgd                      # all traces, ten seeds: an hour of two cores
    python -m benchmarks.fgd --traces default --seeds 1 --policies FGD     # the CPU time of one run
    python -m benchmarks.fgd --journal fgd.jsonl  # the same command goes on where it was interrupted
    python -m benchmarks.fgd --on tcp://10.0.0.5:8786                      # on a Dask cluster
    make bench-fgd ARGS='--traces default gpuspec33 --seeds 2'             # a part of it

It is one sweep of all runs. The table that it prints first, and that `--table FILE` has, is the same on any number of
processes and after any interruption; the CPU times below it are not. With `--on` each run has a new process, which
imports what it needs while its time is taken.

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
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks import gpu_study_loop
from stowplan.apps.sweep import sweep
from stowplan.apps.sweep.local_runner import LocalRunner
from stowplan.apps.sweep.sweep_inputs import inputs_of, relative
from stowplan.apps.sweep.sweep_run import SweepRun
from stowplan.objects.errors import StowplanError
from stowplan.simulation import gpu_arrivals, gpu_study, openb

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
FIRST_SEED = 1000  # the study's own are 42 to 51
WITHIN = 3  # deviations

Means = Mapping[str, Sequence[float]]  # allocated percentage at each point, by policy


class Measured(NamedTuple):
    """A run's curve, its CPU time in seconds, that of the plain loop, and whether both placed the same."""

    curve: list[float]
    seconds: float
    plain: float
    same: bool


def run(node_list: str, pod_list: str, policy: str, seed: int, loop: bool) -> dict[str, Any]:
    """Do one run, in a process of the sweep."""
    nodes = openb.read_nodes(Path(node_list).read_bytes(), node_list)
    pods = openb.read_pods(Path(pod_list).read_bytes(), pod_list)
    whole, generator = gpu_study.capacity(nodes), np.random.default_rng(seed)
    order = gpu_arrivals.arrivals(pods, whole, generator)
    ordered = [nodes[at] for at in generator.permutation(len(nodes)).tolist()]
    draw = generator if policy == gpu_study.RANDOM else None
    begin = time.process_time()
    profile = gpu_study.profile_of(policy, pods)
    found = gpu_study.run(nodes, pods, order, profile, [node.name for node in ordered], draw)
    curve = gpu_study.curve(found, whole)
    told = {"curve": curve, "seconds": time.process_time() - begin, "plain": None, "same": True}
    if loop:
        begin = time.process_time()
        plain = gpu_study_loop.run(policy, ordered, pods, order, generator)
        told |= {"plain": time.process_time() - begin, "same": draw is not None or plain == found}
    return told


def measured(told: Mapping[str, Any]) -> Measured:
    """Return what a run told. What is not a number has no word in JSON but null."""
    curve = [_number(each) for each in told["curve"]]
    return Measured(curve, told["seconds"], _number(told["plain"]), told["same"])


def _number(found: float | None) -> float:
    return float("nan") if found is None else found


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
    options = _options()
    results = json.loads((options.shared / "golden" / "fgd" / "results.json").read_bytes())
    traces, points = options.traces or list(results["traces"]), results["demand_percent"]
    found = _swept(results, traces, options)
    wrong, told, rows = list[str](), {}, list[str]()
    for trace in traces:
        published = results["traces"][trace]
        runs = {policy: [found[trace, policy, seed] for seed in _seeds(options)] for policy in options.policies}
        wrong += [
            f"{trace}: {policy}, seed {seed}: the plain loop placed other pods"
            for policy in runs for seed, one in zip(_seeds(options), runs[policy], strict=True) if not one.same
        ]  # fmt: skip
        means = {
            policy: np.mean([[one.curve[point] for point in points] for one in each], axis=0).tolist()
            for policy, each in runs.items()
        }
        wrong += [f"{trace}: {problem}" for problem in problems(published, means, points, results["sd_floor"])]
        rows += [_row(trace, policy, values, published["policies"][policy]) for policy, values in means.items()]
        told[trace] = {"means": means, "cpu": {policy: _times(each) for policy, each in runs.items()}}
    table = "\n".join((_head(points), *rows, *wrong, _verdict(wrong)))
    if options.table:
        options.table.write_text(f"{table}\n", encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(told, indent=1), encoding="utf-8")
    print(f"{table}\n")
    for trace, each in told.items():
        for policy, times in each["cpu"].items():
            beside = f"; plain loop {times['loop']:.2f} s, ratio {times['engine'] / times['loop']:.1f}"
            print(f"{trace}: {policy:14} {times['engine']:.2f} s of CPU{beside if options.loop else ''}")
    return 1 if wrong else 0


def _swept(
    results: Mapping[str, Any], traces: Sequence[str], options: argparse.Namespace
) -> dict[tuple[str, str, int], Measured]:
    """Do all runs. Return what each told, by trace, policy and seed."""
    lists = options.shared / "data" / "openb"
    nodes = relative(lists / results["node_list"])
    pods = {trace: relative(lists / results["traces"][trace]["pod_list"]) for trace in traces}
    keys = [(trace, policy, seed) for trace in traces for policy in options.policies for seed in _seeds(options)]
    runs = [
        SweepRun(
            (trace, policy, f"seed {seed}"),
            "benchmarks.fgd:run",
            {"node_list": nodes, "pod_list": pods[trace], "policy": policy, "seed": seed, "loop": options.loop},
        )
        for trace, policy, seed in keys
    ]
    code = [ROOT / "benchmarks" / name for name in ("__init__.py", "fgd.py", "gpu_study_loop.py")]
    files = [*map(Path, (nodes, *pods.values())), *code]
    inputs = inputs_of(files, {"loop": options.loop}, (ROOT,))
    answers = sweep.swept(runs, inputs, _runner(options), options.journal)
    return {key: measured(answer.value) for key, answer in zip(keys, answers, strict=True)}


def _runner(options: argparse.Namespace) -> sweep.Runner:
    if options.on:
        from stowplan.apps.sweep.dask_runner import DaskRunner

        return DaskRunner(options.on)
    return LocalRunner(options.jobs)


def _seeds(options: argparse.Namespace) -> range:
    return range(FIRST_SEED, FIRST_SEED + options.seeds)


def _head(points: Sequence[int]) -> str:
    cells = "".join(f"{f'{point} %':>8}" for point in points)
    return f"{'trace':<13}{'policy':<14}{cells}  published at {points[-1]} %"


def _row(trace: str, policy: str, means: Sequence[float], published: Mapping[str, Any]) -> str:
    cells = "".join(f"{mean:>8.2f}" for mean in means)
    return f"{trace:<13}{policy:<14}{cells}  {published['mean'][-1]:.2f} ± {published['sd'][-1]:.2f}"


def _verdict(wrong: Sequence[str]) -> str:
    return f"{len(wrong)} differences" if wrong else "everything is as published"


def _times(runs: Sequence[Measured]) -> dict[str, float]:
    """The median CPU times of a policy's runs, in seconds."""
    return {"engine": median(one.seconds for one in runs), "loop": median(one.plain for one in runs)}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", nargs="*", help="names of golden/fgd/results.json  [default: all]")
    parser.add_argument("--policies", nargs="*", default=gpu_study.POLICIES, choices=gpu_study.POLICIES)
    parser.add_argument("--seeds", type=_positive, default=10)
    parser.add_argument("--jobs", "--processes", type=_positive, default=2)
    parser.add_argument("--on", default="", help="the scheduler of a Dask cluster: tcp://10.0.0.5:8786")
    parser.add_argument("--journal", type=Path, help="each run that is done; the same command goes on from there")
    parser.add_argument("--no-loop", dest="loop", action="store_false", help="leave out the plain NumPy loop")
    parser.add_argument("--shared", type=Path, default=SHARED, help="the folder of golden/fgd and data/openb")
    parser.add_argument("--table", type=Path, help="write the table, without times")
    parser.add_argument("--json", type=Path, help="write the means and the CPU times")
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return number


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StowplanError as error:
        sys.exit(str(error))
