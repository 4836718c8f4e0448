"""NodeName: reject all nodes but the one that the pod names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import Reject
from stowplan.framework.interfaces import Wake
from stowplan.objects.pods import Pod

REASON = "node(s) didn't match the requested node name"


class NodeName:
    local = "node"
    ignores_volumes = True

    def filters_by_row(self, pod: Pod) -> bool:
        """True for pods that name no node: the name is not part of a pod's shape."""
        return not pod.node_name

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        if pod.node_name:
            yield Reject(nodes.name != pod.node_name, REASON, resolvable=False)

    def fits(self, pod: Pod, node: OneNode) -> tuple[str, bool] | None:
        return (REASON, False) if pod.node_name and pod.node_name != node.name else None

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        name = pod.node_name
        exists = nodes.cluster.nodes.position(name) is not None
        text = f"the pod names node {name}" + ("" if exists else ", which does not exist")
        yield NodeCause(nodes.name != name, Cause("node-name", text, {"node": name, "exists": exists}))

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("Add",))
