"""Measurements side by side on a noisy machine: short batches in turns, then medians.

Each batch of a measurement runs right after a few passes of the yardstick. Measurements that are compared take turns
batch by batch, so that a slow moment of the machine hits all of them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from statistics import median

from stowplan.apps.plugin_kit.yardstick import Yardstick


class Measurement:
    """`batch` does some work and answers how many seconds of it count, and how many decisions that was."""

    def __init__(self, batch: Callable[[], tuple[float, int]], yardstick: Yardstick) -> None:
        self._batch, self._yardstick = batch, yardstick
        self.costs: list[float] = []
        self.passes: list[float] = []
        self.seconds, self.decisions = 0.0, 0

    def run(self) -> None:
        self.passes.append(self._yardstick.seconds())
        seconds, decisions = self._batch()
        self.costs.append(seconds / decisions)
        self.seconds += seconds
        self.decisions += decisions

    @property
    def microseconds(self) -> float:
        return 1e6 * median(self.costs)

    @property
    def pass_microseconds(self) -> float:
        return 1e6 * median(self.passes)

    @property
    def yardsticks(self) -> float:
        return median(cost / one for cost, one in zip(self.costs, self.passes, strict=True))

    def ratio_to(self, other: Measurement) -> float:
        """Return how many times the cost of another measurement this one costs."""
        return median(mine / its for mine, its in zip(self.costs, other.costs, strict=True))

    def forget(self) -> None:
        self.costs, self.passes, self.seconds, self.decisions = [], [], 0.0, 0


def interleave(measurements: Sequence[Measurement], rounds: int, on_round: Callable[[], object] = lambda: None) -> None:
    """Run all measurements in turns. The first batch of each warms up and does not count."""
    gc.collect()
    gc.freeze()  # a collection during one measurement's batch must not walk the clusters of the others
    try:
        for measurement in measurements:
            measurement.run()
            measurement.forget()
        for _ in range(rounds):
            for measurement in measurements:
                measurement.run()
            on_round()
    finally:
        gc.unfreeze()
