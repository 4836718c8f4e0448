"""How much of a node's free GPUs typical pods could not use: its fragmentation, in thousandths of a GPU.

    F(node) = Σ over typical pods m of p(m) · w(m, node)

w is what is free on GPUs with less than m wants of one; but if the node has no room for m at all, or m wants no GPU, it
is all that is free. p is how often m is seen.

A score is 50 if F stays as it is, and 49 if it rises ever so little, so the rounding of the sum decides ties. The study
adds up what typical pods cannot use by the reason why, in the order of the typical pods, and then the reasons. It is
added up in the same way here, because only that gives the study's results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.objects.gpu_requests import WHOLE
from stowplan.plugins.nodes.gpu_sharing.device_columns import DeviceColumns
from stowplan.plugins.nodes.gpu_sharing.typical_pods import TypicalPod

# Why a typical pod cannot use what is free, in the order in which the study adds up the reasons. A node that lacks no
# GPUs for a pod may still have some that are too small for it. The last but one are for pods that want no GPU.
CPU_AND_GPUS, GPUS, CPU, WANTS_NONE, WANTS_NONE_LACKS_CPU, MODEL = range(6)
REASONS = 6
# By the CPU that is enough (1) and the GPUs that are enough (2).
OF_GPU_PODS = (CPU_AND_GPUS, GPUS, CPU, GPUS)
OF_CPU_PODS = (WANTS_NONE_LACKS_CPU, WANTS_NONE, WANTS_NONE_LACKS_CPU, WANTS_NONE)


class Fragmentation:
    """Measures nodes by typical pods. Columns of free GPUs have a row per node, and 0 for GPUs that do not exist.

    `pods`: how many pods the workload has of which these are typical; without it, only typical ones.
    """

    def __init__(self, typical: Sequence[TypicalPod], pods: int | None = None) -> None:
        self.parts = _parts([each.count for each in typical], pods)
        self._cpu = np.array([each.cpu_milli for each in typical], np.int64)
        self._number = np.array([each.gpus for each in typical], np.int64)
        self._wants_gpus = self._number > 0
        self._levels = np.unique([each.gpu_milli for each in typical])
        self._level = np.searchsorted(self._levels, [each.gpu_milli for each in typical])
        self._reasons = np.array([OF_GPU_PODS if each.gpus else OF_CPU_PODS for each in typical], np.int64).ravel()
        self._first_reason = len(OF_GPU_PODS) * np.arange(len(typical))
        self._models = tuple(frozenset(each.models) if each.gpus else frozenset() for each in typical)
        self._constrained = any(self._models)

    def allowed(self, devices: DeviceColumns, model: Ints) -> Bools | None:
        """Return which typical pods may use which of these nodes, by their models; None: every pod every node."""
        if not self._constrained:
            return None
        return devices.allowed(self._models, model)

    def of(self, cpu: Ints, free: Ints, allowed: Bools | None) -> Floats:
        """Return the fragmentation of nodes with so much free."""
        fits = free[:, :, np.newaxis] >= self._levels
        small = (free[:, :, np.newaxis] * ~fits).sum(axis=1)
        return self.by_level(cpu, free.sum(axis=1), np.count_nonzero(fits, axis=1), small, allowed)

    def by_level(self, cpu: Ints, free: Ints, fitting: Ints, small: Ints, allowed: Bools | None) -> Floats:
        """The same, if it is known how many GPUs have at least each level, and what the others have free together."""
        enough_cpu = cpu[:, np.newaxis] >= self._cpu
        enough_gpus = fitting[:, self._level] >= self._number
        reason = self._reasons[enough_cpu + 2 * enough_gpus + self._first_reason]
        has_room = enough_cpu & enough_gpus & self._wants_gpus
        if allowed is not None:
            has_room &= allowed
            reason = np.where(allowed, reason, MODEL)
        wasted = np.where(has_room, small[:, self._level], free[:, np.newaxis]) * self.parts
        return _by_reason(reason, wasted)

    def with_share(
        self, cpu: Ints, free: Ints, node: Ints, device: Ints, milli: Ints | int, allowed: Bools | None
    ) -> Floats:
        """The same after a share of a GPU was taken: for each pair of a node and one of its GPUs.

        Only that GPU differs, so that what holds for the others is counted once per node.
        """
        fits = free[:, :, np.newaxis] >= self._levels
        parts = free[:, :, np.newaxis] * ~fits
        before = free[node, device][:, np.newaxis]
        after = before - (milli if isinstance(milli, int) else milli[node][:, np.newaxis])
        fits_after = after >= self._levels
        fitting = np.count_nonzero(fits, axis=1)[node] - fits[node, device] + fits_after
        small = parts.sum(axis=1)[node] - parts[node, device] + after * ~fits_after
        left = free.sum(axis=1)[node] - (before - after)[:, 0]
        return self.by_level(cpu[node], left, fitting, small, None if allowed is None else allowed[node])


def _parts(counts: Sequence[int], pods: int | None) -> Floats:
    """Return the part of each typical pod, rounded as in the study: of all pods first, then of the typical ones."""
    typical = sum(counts)
    whole = pods or typical
    parts: Floats = np.array(counts, np.float64) / whole / (typical / whole)
    return parts


def _by_reason(reason: Ints, wasted: Floats) -> Floats:
    """Return the sums of rows, by reason and one after the other: bincount and accumulate add in order."""
    rows = len(reason)
    place = (reason + REASONS * np.arange(rows)[:, np.newaxis]).ravel()
    sums = np.bincount(place, wasted.ravel(), REASONS * rows).reshape(rows, REASONS)
    total: Floats = np.add.accumulate(sums, axis=1)[:, -1]
    return total


def after_whole(free: Ints, count: int, milli: Ints | int) -> Ints:
    """Return what is left free after a pod took the tightest GPUs that fit; nodes where too few fit are meaningless."""
    wanted = milli if isinstance(milli, int) else milli[:, np.newaxis]
    order = np.argsort(np.where(free >= wanted, free, 2 * WHOLE), axis=1, kind="stable")
    chosen = np.zeros(free.shape, np.bool_)
    np.put_along_axis(chosen, order[:, :count], True, axis=1)
    left: Ints = np.where(chosen, np.maximum(free - wanted, 0), free)
    return left
