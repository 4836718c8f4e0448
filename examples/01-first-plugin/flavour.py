"""Spread pods of one flavour evenly over the cluster, whatever namespace they are in: a policy in one file."""

import numpy as np

from stowplan.plugin import Ints, Nodes, Pod, pods_with


class Flavour:
    def __init__(self, label_name: str = "flavour") -> None:
        self.label_name = label_name

    def score(self, pod: Pod, nodes: Nodes) -> Ints | None:
        if self.label_name not in pod.labels:
            return None
        alike = pods_with({self.label_name: pod.labels[self.label_name]})
        fewest = nodes.cluster.nodes.count(alike).min()
        return np.where(nodes.count(alike) == fewest, 100, 0)
