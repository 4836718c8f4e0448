"""The statistics of the GPU fragmentation study: six policies with seeds of our own, compared with what was published.

    python -m benchmarks.fgd                      # all traces, ten seeds: an hour of two cores
    python -m benchmarks.fgd --traces default --seeds 1 --policies FGD     # the CPU time of one run

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
from typing import Any, NamedTuple

import numpy as np

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


def run(asked: OneRun) -> tuple[list[float], float]:
    """Return the curve of a run, and its CPU time in seconds."""
    nodes = openb.read_nodes(asked.node_list.read_bytes(), str(asked.node_list))
    pods = openb.read_pods(asked.pod_list.read_bytes(), str(asked.pod_list))
    whole, generator = gpu_study.capacity(nodes), np.random.default_rng(asked.seed)
    order = gpu_arrivals.arrivals(pods, whole, generator)
    names = [nodes[at].name for at in generator.permutation(len(nodes)).tolist()]
    draw = generator if asked.policy == gpu_study.RANDOM else None
    begin = time.process_time()
    found = gpu_study.run(nodes, pods, order, gpu_study.profile_of(asked.policy, pods), names, draw)
    return gpu_study.curve(found, whole), time.process_time() - begin


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
    results = json.loads((SHARED / "golden" / "fgd" / "results.json").read_bytes())
    lists, points = SHARED / "data" / "openb", results["demand_percent"]
    traces = options.traces or list(results["traces"])
    wrong, measured = 0, {}
    for trace in traces:
        published = results["traces"][trace]
        asked = [
            OneRun(lists / results["node_list"], lists / published["pod_list"], policy, FIRST_SEED + number)
            for policy in options.policies
            for number in range(options.seeds)
        ]
        with ProcessPoolExecutor(options.processes) as pool:
            found = list(pool.map(run, asked))
        curves: dict[str, list[list[float]]] = {}
        for each, (curve, seconds) in zip(asked, found, strict=True):
            curves.setdefault(each.policy, []).append([curve[point] for point in points])
            print(f"{trace:12} {each.policy:14} seed {each.seed}: {seconds:.1f} s of CPU", file=sys.stderr)
        means = {policy: np.mean(values, axis=0).tolist() for policy, values in curves.items()}
        measured[trace] = {"means": means, "cpu": {a.policy: s for a, (_, s) in zip(asked, found, strict=True)}}
        for problem in problems(published, means, points, results["sd_floor"]):
            wrong += 1
            print(f"{trace}: {problem}")
        print(f"{trace}: " + ", ".join(f"{policy} {values[-1]:.2f}" for policy, values in means.items()))
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    print(f"{wrong} differences" if wrong else "everything is as published")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", nargs="*", default=[])
    parser.add_argument("--policies", nargs="*", default=gpu_study.POLICIES, choices=gpu_study.POLICIES)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
