"""The same policy as `roomy.py` for all nodes at once: what to write when the cluster has grown."""

from collections.abc import Iterator

import numpy as np

from stowplan.plugin import Ints, Nodes, Pod, Reject


class RoomyArrays:
    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        if "heavy" in pod.labels:
            yield Reject(nodes.free["cpu"] < 2000, "node(s) had less than two free cores")

    def score(self, pod: Pod, nodes: Nodes) -> Ints | int:
        if "heavy" not in pod.labels:
            return 0
        share = 100 * nodes.free["cpu"] // np.maximum(nodes.allocatable["cpu"], 1)
        return np.where(nodes.allocatable["cpu"] > 0, np.maximum(share, 0), 0)
