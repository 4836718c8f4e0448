"""The yardstick: one plain NumPy pass over the nodes (or clusters), fit and LeastAllocated for cpu and memory.

It is about the least that any scheduler written with arrays must do for a decision, so costs given in such passes mean
something on any machine.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.fleet.views import Clusters
from stowplan.columns.state import ClusterState

PASSES = 20
CPU, MEMORY = 100, 500 * 1024**2


class Yardstick:
    """Plain arrays of as many rows as the cluster has nodes, or the fleet has clusters."""

    def __init__(self, these: ClusterState | Clusters) -> None:
        if isinstance(these, Clusters):
            self._cpu, self._memory = (np.maximum(these.allocatable[name], 1) for name in ("cpu", "memory"))
            self._cpu_taken, self._memory_taken = (np.zeros(len(these), np.int64) for _ in range(2))
            return
        rows, table = these.table.live_rows(), these.table
        self._cpu, self._memory = (table.allocatable[name][rows] for name in ("cpu", "memory"))
        self._cpu_taken, self._memory_taken = (table.requested[name][rows] for name in ("cpu", "memory"))

    def one_pass(self) -> tuple[Bools, Ints]:
        cpu_left = self._cpu - self._cpu_taken - CPU
        memory_left = self._memory - self._memory_taken - MEMORY
        fits = (cpu_left >= 0) & (memory_left >= 0)
        cpu_score = np.maximum(cpu_left, 0) * 100 // self._cpu
        memory_score = np.maximum(memory_left, 0) * 100 // self._memory
        return fits, (cpu_score + memory_score) // 2

    def seconds(self) -> float:
        """What one pass takes just now, on average of a few."""
        start = perf_counter()
        for _ in range(PASSES):
            self.one_pass()
        return (perf_counter() - start) / PASSES
