"""Prefer nodes that are not spot instances."""

import numpy as np

from stowplan.plugin import Ints, Nodes, Pod


class SpotLast:
    def __init__(self, label_key: str = "example.com/spot") -> None:
        self.label_key = label_key

    def score(self, pod: Pod, nodes: Nodes) -> Ints:  # noqa: ARG002
        return np.where(nodes.label(self.label_key) == "true", 0, 100)
