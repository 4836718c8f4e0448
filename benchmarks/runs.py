"""Runs of workloads. All sizes of a workload take turns, so that a slow moment of the machine does not look like
growth.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from benchmarks.figures import Figure
from benchmarks.workload import Workload
from benchmarks.workload_cluster import WorkloadCluster
from stowplan.apps.plugin_kit.interleaving import Measurement, interleave
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.framework.profile import Profile


def run(
    workload: Workload, sizes: Sequence[int], profile: Profile, rounds: int, done: Sequence[Figure]
) -> list[Figure]:
    """A figure for each size; `done` has those of other workloads, to compare with."""
    cases = [case for size in sorted(sizes) if (case := workload.at(size)) is not None]
    clusters = [WorkloadCluster(workload, case, profile, rounds) for case in cases]
    there = [len(cluster.state.pods) for cluster in clusters]
    measurements = [Measurement(cluster.batch, Yardstick(cluster.state)) for cluster in clusters]
    interleave(measurements, rounds)
    growths = [None, *(larger.ratio_to(smaller) for smaller, larger in pairwise(measurements))]
    return [
        _figure(workload, cluster, measurement, growth, before, done)
        for cluster, measurement, growth, before in zip(clusters, measurements, growths, there, strict=True)
    ]


def _figure(
    workload: Workload,
    cluster: WorkloadCluster,
    measurement: Measurement,
    growth: float | None,
    before: int,
    done: Sequence[Figure],
) -> Figure:
    same_size = {figure.workload: figure.yardsticks for figure in done if figure.nodes == cluster.nodes}
    same_size[workload.name] = measurement.yardsticks
    basic, preemption = same_size.get("basic"), same_size.get("preemption")
    preempts = workload.name.startswith("preemption")
    return Figure(
        workload=workload.name,
        nodes=cluster.nodes,
        pods=measurement.decisions,
        pods_per_s=measurement.decisions / measurement.seconds,
        microseconds=measurement.microseconds,
        yardsticks=measurement.yardsticks,
        yardstick_microseconds=measurement.pass_microseconds,
        growth=growth,
        times_basic=None if basic is None else measurement.yardsticks / basic,
        bytes_per_node=cluster.bytes_per_node,
        bytes_per_pod=cluster.bytes_per_pod,
        bound_before=before,
        placed=cluster.placed,
        preempted=cluster.preempted,
        without_node=cluster.without_node,
        times_preemption=measurement.yardsticks / preemption if preemption is not None and preempts else None,
    )
