"""NodeUnschedulable: reject cordoned nodes, unless the pod tolerates the taint of cordoned nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import Reject
from stowplan.framework.interfaces import Wake
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.taints import NO_SCHEDULE, Taint, tolerated

CORDONED = Taint("node.kubernetes.io/unschedulable", NO_SCHEDULE)
REASON = "node(s) were unschedulable"


class NodeUnschedulable:
    local = "node"
    filters_by_row = True
    ignores_volumes = True

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        cordoned = nodes.unschedulable
        if cordoned.any() and not tolerated(CORDONED, pod.tolerations):
            yield Reject(cordoned, REASON, resolvable=False)

    def fits(self, pod: Pod, node: OneNode) -> tuple[str, bool] | None:
        return (REASON, False) if node.unschedulable and not tolerated(CORDONED, pod.tolerations) else None

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:  # noqa: ARG002
        yield NodeCause(nodes.unschedulable, Cause("cordoned", "cordoned"))

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("Add", "UpdateNodeTaint"), hint="node_uncordoned")
        yield Wake("Pod", ("UpdatePodToleration",), own=True)

    def node_uncordoned(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        """True if the node is new or was cordoned, and is schedulable for this pod now."""
        if new is None or (new.spec.unschedulable and not tolerated(CORDONED, pod.tolerations)):
            return False
        return old is None or old.spec.unschedulable
