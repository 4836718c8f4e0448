"""NodePorts: only one pod on a node can use a host port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.cause_texts import few
from stowplan.framework.causes import Cause, Detail, NodeCause
from stowplan.framework.decision import SKIP, Reject, Skip
from stowplan.framework.interfaces import Wake
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.shape import ANY_ADDRESS, Use
from stowplan.plugins.nodes.default.holders import holders

REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts:
    local = "pods"
    pre_filters_by_shape = True
    filters_by_row = True
    ignores_requests = ignores_volumes = True

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Skip | None:  # noqa: ARG002
        return None if pod.shape.host_ports else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        taken = np.zeros(len(nodes), np.bool_)
        for use in _conflicting(pod):
            tally = nodes.used(use)
            if tally is not None:
                taken |= nodes.counts_of(tally) > 0
        yield Reject(taken, REASON)

    def fits(self, pod: Pod, node: OneNode) -> str | None:
        return REASON if any(node.uses(use) for use in _conflicting(pod)) else None

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        for address, protocol, port in dict.fromkeys(pod.shape.host_ports):
            rows, count, pods = holders(nodes, _against(address, protocol, port))
            where = "" if address == ANY_ADDRESS else f" of {address}"
            details: dict[str, Detail] = {"port": port, "protocol": protocol, "pods": tuple(pods), "count": count}
            text = f"host port {port}/{protocol}{where} is held by {few(pods, count)}"
            yield NodeCause(rows, Cause("port", text, details))

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Pod", ("Delete",), hint="pod_freed_port")
        yield Wake("Node", ("Add",))

    def pod_freed_port(self, pod: Pod, old: Pod | None, new: Pod | Node | None) -> bool:  # noqa: ARG002
        if old is None or not (old.node_name or old.nominated_node):
            return False
        wanted = {(protocol, port) for _, protocol, port in pod.shape.host_ports}
        return any((protocol, port) in wanted for _, protocol, port in old.shape.host_ports)


def _conflicting(pod: Pod) -> Iterator[Use]:
    """Yield the uses of ports that leave no room for the pod's own."""
    for address, protocol, port in pod.shape.host_ports:
        yield from _against(address, protocol, port)


def _against(address: str, protocol: str, port: int) -> Iterator[Use]:
    for other in ("*",) if address == ANY_ADDRESS else (ANY_ADDRESS, address):
        yield "port", protocol, port, other
