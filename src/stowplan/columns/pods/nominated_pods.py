"""Nominated pods: pods without a node for which room on a node is set aside.

A pod may have companions: pods that do not exist yet, such as the executors of a Spark driver. Room is set aside for
them, too, as long as the pod itself is nominated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from stowplan.objects.pods import Pod

Companions: TypeAlias = Sequence[tuple[Pod, str]]  # stand-ins with uids of their own, and their nodes


class NominatedPods:
    """Pods of equal or lower priority must leave room for the nominated pods of a node."""

    def __init__(self, journaled: Callable[[Callable[[], object]], None]) -> None:
        """`journaled` records how to undo a change that a trial made."""
        self.by_node: dict[str, dict[str, Pod]] = {}  # node name, then uid
        self.firm: dict[str, None] = {}  # uids: pods of higher priority that may not preempt must leave room, too
        self.owner_of: dict[str, Pod] = {}  # by the uid of a companion, the pod that it is nominated with
        self._node_of: dict[str, str] = {}
        self._companions: dict[str, Companions] = {}
        self._journaled = journaled

    def __len__(self) -> int:
        return len(self._node_of)

    def node_of(self, uid: str) -> str:
        """Return the node that a pod is nominated to, or ""."""
        return self._node_of.get(uid, "")

    def companions_of(self, uid: str) -> Companions:
        return self._companions.get(uid, ())

    def add(self, pod: Pod, node_name: str, *, firm: bool = False, companions: Companions = ()) -> None:
        """Nominate a pod to this node and to no other, and its companions to theirs."""
        self.drop(pod.uid)
        self._put(pod, node_name)
        if firm:
            self.firm[pod.uid] = None
        if companions:
            self._companions[pod.uid] = companions
            for other, place in companions:
                self._put(other, place)
                self.owner_of[other.uid] = pod
        self._journaled(lambda: self.drop(pod.uid))

    def drop(self, uid: str) -> Companions:
        """Remove the nomination of a pod, if it has one. Return its companions, whose room is free now."""
        if uid not in self._node_of:
            return ()
        node_name, firm = self._node_of[uid], uid in self.firm
        pod, companions = self._take(uid), self._companions.pop(uid, ())
        self.firm.pop(uid, None)
        for other, _ in companions:
            self._take(other.uid)
            del self.owner_of[other.uid]
        self._journaled(lambda: self.add(pod, node_name, firm=firm, companions=companions))
        return companions

    def _put(self, pod: Pod, node_name: str) -> None:
        self.by_node.setdefault(node_name, {})[pod.uid] = pod
        self._node_of[pod.uid] = node_name

    def _take(self, uid: str) -> Pod:
        node_name = self._node_of.pop(uid)
        pods = self.by_node[node_name]
        pod = pods.pop(uid)
        if not pods:
            del self.by_node[node_name]
        return pod
