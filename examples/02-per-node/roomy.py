"""Pods with the label `heavy` get a node with at least two free cores, the emptiest first: one node at a time."""

from stowplan.plugin import OneNode, Pod, per_node


@per_node
class Roomy:
    def fits(self, pod: Pod, node: OneNode) -> str | None:
        if "heavy" in pod.labels and node.free("cpu") < 2000:
            return "node(s) had less than two free cores"
        return None

    def rate(self, pod: Pod, node: OneNode) -> int:
        if "heavy" not in pod.labels or node.allocatable("cpu") == 0:
            return 0
        return max(0, 100 * node.free("cpu") // node.allocatable("cpu"))
