"""The results of runs: medians over the rounds, one object for each workload and size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import msgspec

from benchmarks.live.contenders import FLOOR, FLOOR_WITH_EVENTS, KUBE_SCHEDULER, STOWPLAN

BOTH = (STOWPLAN, KUBE_SCHEDULER)
NOISE = 0.2  # cores that others may keep busy; kube-scheduler suffers more from them than we do


class Run(msgspec.Struct, frozen=True):
    """Times are since the process was started, CPU seconds until the last event was written.

    `others_cores`: how many cores other programs kept busy until the last bind. `watching`: the measuring itself.
    """

    contender: str
    round: int
    pods: int
    first_bind_s: float
    last_bind_s: float
    last_event_s: float | None
    cpu_s: float
    peak_rss_mb: float
    others_cores: float
    apiserver_cpu_s: float
    etcd_cpu_s: float
    watching_cpu_s: float
    watch_reopened: int

    @property
    def quiet(self) -> bool:
        return self.others_cores <= NOISE

    @property
    def pods_per_s(self) -> float:
        return (self.pods - 1) / max(self.last_bind_s - self.first_bind_s, 1e-9)

    @property
    def pods_per_s_from_start(self) -> float:
        return self.pods / self.last_bind_s


class Both(msgspec.Struct, frozen=True):
    stowplan: float
    kube_scheduler: float


class Figure(msgspec.Struct, frozen=True):
    """A workload at a size. Rates are from the first to the last bind unless they say `from_start`.

    `ratio` is the lower of two: that of these rates and that of the rates from the start of the process. Of `rounds`
    those count in which others left the machine to both schedulers (`counted_rounds`). If there is none, all do, and
    the figure says little.
    """

    workload: str
    nodes: int
    pods: int
    rounds: int
    counted_rounds: int
    stowplan_pods_per_s: float
    kube_scheduler_pods_per_s: float
    ratio: float
    floor_pods_per_s: float
    floor_with_events_pods_per_s: float
    pods_per_s_from_start: Both
    cpu_s_per_1000_pods: Both
    peak_rss_mb: Both
    idle_rss_mb: Both
    last_event_s: Both
    others_cores: Both
    runs: list[Run]

    @property
    def of_floor_with_events(self) -> float:
        return self.stowplan_pods_per_s / self.floor_with_events_pods_per_s

    @property
    def cpu_ratio(self) -> float:
        return self.cpu_s_per_1000_pods.stowplan / self.cpu_s_per_1000_pods.kube_scheduler


class Missing(msgspec.Struct, frozen=True):
    """A figure that could not be had, and why."""

    workload: str
    nodes: int
    why: str


def quiet_rounds(runs: Sequence[Run]) -> set[int]:
    """The rounds in which nobody disturbed either scheduler."""
    disturbed = {run.round for run in runs if run.contender in BOTH and not run.quiet}
    return {run.round for run in runs} - disturbed


def figure(workload: str, nodes: int, idle_rss_mb: Both, runs: Sequence[Run]) -> Figure:
    counted = quiet_rounds(runs)

    def typical(contender: str, value: Callable[[Run], float]) -> float:
        of_both = contender in BOTH
        found = [run for run in runs if run.contender == contender]
        quiet = [run for run in found if (run.round in counted if of_both else run.quiet)]
        return median(value(run) for run in quiet or found)

    def both(value: Callable[[Run], float]) -> Both:
        return Both(*(typical(contender, value) for contender in BOTH))

    rate, from_start = both(lambda run: run.pods_per_s), both(lambda run: run.pods_per_s_from_start)
    return Figure(
        workload=workload,
        nodes=nodes,
        pods=runs[0].pods,
        rounds=max(run.round for run in runs),
        counted_rounds=len(counted),
        stowplan_pods_per_s=rate.stowplan,
        kube_scheduler_pods_per_s=rate.kube_scheduler,
        ratio=min(each.stowplan / each.kube_scheduler for each in (rate, from_start)),
        floor_pods_per_s=typical(FLOOR, lambda run: run.pods_per_s),
        floor_with_events_pods_per_s=typical(FLOOR_WITH_EVENTS, lambda run: run.pods_per_s),
        pods_per_s_from_start=from_start,
        cpu_s_per_1000_pods=both(lambda run: run.cpu_s / run.pods * 1000),
        peak_rss_mb=both(lambda run: run.peak_rss_mb),
        idle_rss_mb=idle_rss_mb,
        last_event_s=both(lambda run: run.last_event_s or 0.0),
        others_cores=both(lambda run: run.others_cores),
        runs=list(runs),
    )


def plain(figures: Sequence[Figure | Missing]) -> Any:
    return _rounded(msgspec.to_builtins(figures))


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return round(value, 3)
        case dict():
            return {name: _rounded(each) for name, each in value.items()}
        case list() | tuple():
            return [_rounded(each) for each in value]
        case _:
            return value
