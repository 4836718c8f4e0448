"""Pods with the same value of a label get different nodes, whatever namespaces they are in."""

from collections.abc import Iterator

from stowplan.plugin import Nodes, Pod, Reject, pods_with


class Exclusive:
    def __init__(self, label: str = "exclusive") -> None:
        self.label = label

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        if self.label in pod.labels:
            taken = nodes.count(pods_with({self.label: pod.labels[self.label]})) > 0
            yield Reject(taken, f"node(s) had a pod with the same label {self.label}")
