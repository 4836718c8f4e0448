"""Nominated pods: pods without a node for which room on a node is set aside."""

from __future__ import annotations

from collections.abc import Callable

from stowplan.objects.pods import Pod


class NominatedPods:
    """Pods of equal or lower priority must leave room for the nominated pods of a node."""

    def __init__(self, journaled: Callable[[Callable[[], object]], None]) -> None:
        """`journaled` records how to undo a change that a trial made."""
        self.by_node: dict[str, dict[str, Pod]] = {}  # node name, then uid
        self.firm: dict[str, None] = {}  # uids: pods of higher priority that may not preempt must leave room, too
        self._node_of: dict[str, str] = {}
        self._journaled = journaled

    def __len__(self) -> int:
        return len(self._node_of)

    def node_of(self, uid: str) -> str:
        """Return the node that a pod is nominated to, or ""."""
        return self._node_of.get(uid, "")

    def add(self, pod: Pod, node_name: str, *, firm: bool = False) -> None:
        """Nominate a pod to this node and to no other."""
        self.drop(pod.uid)
        self.by_node.setdefault(node_name, {})[pod.uid] = pod
        self._node_of[pod.uid] = node_name
        if firm:
            self.firm[pod.uid] = None
        self._journaled(lambda: self.drop(pod.uid))

    def drop(self, uid: str) -> None:
        """Remove the nomination of a pod, if it has one."""
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        pods, firm = self.by_node[node_name], uid in self.firm
        pod = pods.pop(uid)
        self.firm.pop(uid, None)
        if not pods:
            del self.by_node[node_name]
        self._journaled(lambda: self.add(pod, node_name, firm=firm))
