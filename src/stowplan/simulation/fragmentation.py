"""How much of what is free nobody can use, for the pods that a run really has.

Of each resource: the free amount on nodes where a pod does not fit, as a part of all that is free. It is averaged over
the shapes of pods that arrived, weighed by how often they did. A pod fits if each resource that it requests is free on
the node, and a place for a pod; taints and the other rules of scheduling do not count here. 0: all that is free can
be used by any pod; 1: no pod fits anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from stowplan.columns.nodes.table import NodeTable

Requests = tuple[tuple[str, int], ...]  # sorted by name
SHAPES = 16  # the most frequent ones count

Amounts = npt.NDArray[np.int64]


def fragmentation(table: NodeTable, arrived: Mapping[Requests, int]) -> dict[str, float]:
    """Return the unusable part of what is free, by resource. Resources of which nothing is free are left out."""
    rows = np.flatnonzero(table.live)
    free = {
        name: np.maximum(table.allocatable[name][rows] - table.requested[name][rows], 0)
        for name in table.allocatable if name != "pods" and table.allocatable[name][rows].any()
    }  # fmt: skip
    places = table.allocatable["pods"][rows] - table.requested["pods"][rows]
    weights = _frequent(arrived)
    total = sum(weights.values())
    sums = {name: float(amounts.sum()) for name, amounts in free.items()}
    unusable = dict.fromkeys((name for name in sums if sums[name] > 0), 0.0)
    for requests, weight in weights.items():
        out = ~_fits(requests, free, places)
        for name in unusable:
            unusable[name] += weight / total * float(free[name][out].sum()) / sums[name]
    return unusable if weights else {}


def _fits(requests: Requests, free: Mapping[str, Amounts], places: Amounts) -> npt.NDArray[np.bool_]:
    fits: npt.NDArray[np.bool_] = places > 0
    for name, amount in requests:
        if amount:
            fits = fits & (free[name] >= amount) if name in free else np.zeros_like(fits)
    return fits


def _frequent(arrived: Mapping[Requests, int]) -> dict[Requests, int]:
    """The most frequent shapes; of equally frequent ones the first in order."""
    ranked = sorted(Counter(arrived).items(), key=lambda each: (-each[1], each[0]))
    return dict(ranked[:SHAPES])
