"""How much of a node's free GPUs typical pods could not use: its fragmentation, in thousandths of a GPU.

    F(node) = Σ over typical pods m of p(m) · w(m, node)

w is what is free on GPUs with less than m wants of one; but if the node has no room for m at all, or m wants no GPU, it
is all that is free. p is how often m is seen. All of this is added up in whole numbers (counts instead of p), so that
two equal fragmentations are exactly equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.objects.gpu_requests import WHOLE
from stowplan.plugins.nodes.gpu_sharing.device_columns import DeviceColumns
from stowplan.plugins.nodes.gpu_sharing.typical_pods import TypicalPod


class Fragmentation:
    """Measures nodes by typical pods. Columns of free GPUs have a row per node, and 0 for GPUs that do not exist."""

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        asking = [each for each in typical if each.gpus]
        self._counts = np.array([each.count for each in asking], np.float64)
        self._cpu = np.array([each.cpu_milli for each in asking], np.int64)
        self._number = np.array([each.gpus for each in asking], np.int64)
        self._levels = np.unique(np.array([each.gpu_milli for each in asking], np.int64))
        self._level = np.searchsorted(self._levels, [each.gpu_milli for each in asking])
        self._models = tuple(frozenset(each.models) for each in asking)
        self._constrained = any(self._models)
        self._without = sum(each.count for each in typical if not each.gpus)
        self.total = self._without + sum(each.count for each in asking)

    def allowed(self, devices: DeviceColumns, model: Ints) -> Bools | None:
        """Return which typical pods may use which of these nodes, by their models; None: every pod every node."""
        if not self._constrained:
            return None
        return devices.allowed(self._models, model)

    def of(self, cpu: Ints, free: Ints, allowed: Bools | None) -> Floats:
        """Return the fragmentation of nodes with so much free, times `total`."""
        fits = free[:, :, np.newaxis] >= self._levels
        small = (free[:, :, np.newaxis] * ~fits).sum(axis=1)
        return self.by_level(cpu, free.sum(axis=1), np.count_nonzero(fits, axis=1), small, allowed)

    def by_level(self, cpu: Ints, free: Ints, fitting: Ints, small: Ints, allowed: Bools | None) -> Floats:
        """The same, if it is known how many GPUs have at least each level, and what the others have free together."""
        has_room = (cpu[:, np.newaxis] >= self._cpu) & (fitting[:, self._level] >= self._number)
        if allowed is not None:
            has_room &= allowed
        wasted = np.where(has_room, small[:, self._level], free[:, np.newaxis])
        measured: Floats = wasted @ self._counts + self._without * free
        return measured

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


def after_whole(free: Ints, count: int, milli: Ints | int) -> Ints:
    """Return what is left free after a pod took the tightest GPUs that fit; nodes where too few fit are meaningless."""
    wanted = milli if isinstance(milli, int) else milli[:, np.newaxis]
    order = np.argsort(np.where(free >= wanted, free, 2 * WHOLE), axis=1, kind="stable")
    chosen = np.zeros(free.shape, np.bool_)
    np.put_along_axis(chosen, order[:, :count], True, axis=1)
    left: Ints = np.where(chosen, np.maximum(free - wanted, 0), free)
    return left
