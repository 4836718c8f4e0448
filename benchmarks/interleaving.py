"""Figures of measurements that took turns."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figures import Comparison
from stowplan.apps.plugin_kit.interleaving import Measurement

ROUNDS = 20


def compared(
    workload: str,
    case: str,
    measurements: Sequence[Measurement],
    note: str,
    *,
    nodes: int,
    pods: int,
    yardsticks: float | None = None,
) -> Comparison:
    """The second of two measurements against the first."""
    against, value = measurements
    return Comparison(
        workload=workload,
        case=case,
        nodes=nodes,
        pods=pods,
        unit="µs",
        value=value.microseconds,
        against=against.microseconds,
        ratio=value.ratio_to(against),
        yardsticks=value.yardsticks if yardsticks is None else yardsticks,
        pods_per_s=value.decisions / value.seconds,
        note=note,
    )
