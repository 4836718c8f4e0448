"""Which rounds of a live benchmark count, and what is due."""

from __future__ import annotations

from benchmarks.live import bounds
from benchmarks.live.figures import Both, Run, figure


def run(contender: str, number: int, others: float, last_bind_s: float) -> Run:
    return Run(
        contender=contender,
        round=number,
        pods=1001,
        first_bind_s=0.0,
        last_bind_s=last_bind_s,
        last_event_s=last_bind_s,
        cpu_s=0.5 if contender == "stowplan" else 5.0,
        peak_rss_mb=100.0,
        others_cores=others,
        apiserver_cpu_s=0.0,
        etcd_cpu_s=0.0,
        watching_cpu_s=0.0,
        watch_reopened=0,
    )


def a_round(number: int, *, noise: float = 0.0, seconds: float = 1.0) -> list[Run]:
    floors = [run(name, number, 0.0, seconds) for name in ("floor", "floor_with_events")]
    return [run("stowplan", number, 0.0, seconds), run("kube_scheduler", number, noise, 3.0), *floors]


def test_a_round_counts_if_nobody_disturbed_either_scheduler() -> None:
    found = figure("basic", 5000, Both(50.0, 70.0), [*a_round(1, noise=0.3, seconds=9.0), *a_round(2)])
    assert (found.rounds, found.counted_rounds) == (2, 1)
    assert found.stowplan_pods_per_s == 1000.0
    assert not list(bounds.missed([found], ["basic"]))


def test_without_a_quiet_round_the_bounds_are_missed() -> None:
    found = figure("basic", 5000, Both(50.0, 70.0), a_round(1, noise=0.3))
    assert found.counted_rounds == 0
    assert any("quiet rounds" in sentence for sentence in bounds.missed([found], ["basic"]))
