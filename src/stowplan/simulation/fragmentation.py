"""How much of what is free nobody can use, for the pods that a run really has.

Of each resource: the free amount on nodes where a pod does not fit, as a part of all that is free. It is averaged over
the shapes of pods that arrived, weighed by how often they did. A pod fits if each resource that it requests is free on
the node, and a place for a pod; taints and the other rules of scheduling do not count here. Where GPUs are shared, as
many GPUs of the node must have as much free as the pod asks of each. 0: all that is free can be used by any pod; 1: no
pod fits anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stowplan.columns.nodes.table import NodeTable
from stowplan.objects.gpu_requests import COUNT, MILLI, GpuRequest
from stowplan.plugins.nodes.gpu_sharing.device_columns import DeviceColumns
from stowplan.plugins.nodes.gpu_sharing.sharing import milli_by_node

Requests = tuple[tuple[str, int], ...]  # sorted by name
SHAPES = 16  # the most frequent ones count

Amounts = npt.NDArray[np.int64]
Fits = npt.NDArray[np.bool_]


class ArrivedShape(NamedTuple):
    """What a pod that arrived requests; of GPUs, if they are shared."""

    requests: Requests
    gpus: GpuRequest | None = None

    def rank(self) -> tuple[Any, ...]:
        """For an order of shapes that does not depend on hashes."""
        gpus = self.gpus
        return self.requests, () if gpus is None else (gpus.count, gpus.milli, gpus.memory, sorted(gpus.models))


def fragmentation(
    table: NodeTable, arrived: Mapping[ArrivedShape, int], devices: DeviceColumns | None = None
) -> dict[str, float]:
    """Return the unusable part of what is free, by resource. Resources of which nothing is free are left out.

    `devices`: the GPUs of the nodes, if they are shared.
    """
    rows = np.flatnonzero(table.live)
    of_devices = () if devices is None else (COUNT, MILLI)
    free = {
        name: np.maximum(table.allocatable[name][rows] - table.requested[name][rows], 0)
        for name in table.allocatable
        if name != "pods" and name not in of_devices and table.allocatable[name][rows].any()
    }
    if devices is not None:
        free[MILLI] = devices.free[rows].sum(axis=1)
    places = table.allocatable["pods"][rows] - table.requested["pods"][rows]
    weights = _frequent(arrived)
    total = sum(weights.values())
    sums = {name: float(amounts.sum()) for name, amounts in free.items()}
    unusable = dict.fromkeys((name for name in sums if sums[name] > 0), 0.0)
    for shape, weight in weights.items():
        fits = _fits(shape.requests, free, places)
        if devices is not None and shape.gpus is not None:
            fits &= _has_devices(shape.gpus, devices, rows)
        for name in unusable:
            unusable[name] += weight / total * float(free[name][~fits].sum()) / sums[name]
    return unusable if weights else {}


def _fits(requests: Requests, free: Mapping[str, Amounts], places: Amounts) -> Fits:
    fits: Fits = places > 0
    for name, amount in requests:
        if amount:
            fits = fits & (free[name] >= amount) if name in free else np.zeros_like(fits)
    return fits


def _has_devices(asked: GpuRequest, devices: DeviceColumns, rows: Amounts) -> Fits:
    """Return where enough GPUs of an allowed model have enough free."""
    if asked.problem:
        return np.zeros(len(rows), np.bool_)
    milli = np.reshape(milli_by_node(asked, devices.memory[rows]), (-1, 1))
    enough: Fits = np.count_nonzero(devices.free[rows] >= milli, axis=1) >= asked.count
    return enough & devices.is_allowed(asked.models, devices.model[rows])


def _frequent(arrived: Mapping[ArrivedShape, int]) -> dict[ArrivedShape, int]:
    """The most frequent shapes; of equally frequent ones the first in order."""
    ranked = sorted(arrived.items(), key=lambda each: (-each[1], each[0].rank()))
    return dict(ranked[:SHAPES])
