"""GangPacking: the pods of a group on few nodes.

A node is worth as many pods of the group as it has, and could take more of. So the first pod goes to a node that fits
most of the group, and the others follow it there. With NodeResourcesFit's strategy MostAllocated beside it, the fullest
of those nodes is chosen, and empty nodes stay empty. Pods without a group get no score.

                         free   of the group   worth, for a group of 4 pods with one CPU each
    a  ███████░            1         –           1
    b  ███░░░░░            5         –           4    chosen: the fullest of those that fit all
    c  ░░░░░░░░            8         –           4

Groups are those of Coscheduling: by labels, by a PodGroup of scheduling.x-k8s.io, or by Kubernetes' own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.objects import applications
from stowplan.objects.actions import Write
from stowplan.objects.applications import BY_KUBERNETES, BY_LABELS
from stowplan.objects.meta import Object
from stowplan.objects.pod_groups import PodGroup, SigsPodGroup
from stowplan.objects.pods import Pod

MOST = 99  # one more for a node that has a pod of the group
ENDLESS = np.int64(1 << 40)


class GangPacking:
    reads = ("PodGroup", "SigsPodGroup")
    reconciles = ("Pod",)
    one_for_all = True  # one instance is told where pods are, and that one must be asked for scores

    def __init__(self) -> None:
        self._node_of: dict[str, tuple[str, str]] = {}  # group and node of each pod with a node, by uid
        self._on: dict[str, Counter[str]] = {}  # by group: how many of its pods each node has

    # -- which pods of groups are where

    def reserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:  # noqa: ARG002
        self._put(pod, node_name)

    def unreserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:  # noqa: ARG002
        self._drop(pod.uid)

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterable[Write]:
        if changed is None:
            self._node_of.clear()
            self._on.clear()
        for pod in cluster.known_pods() if changed is None else changed:
            if isinstance(pod, Pod) and _group(pod):
                now = cluster.pod(pod.uid)  # on a node, or assumed to be
                if now is None or now.pod.terminating:
                    self._drop(pod.uid)
                else:
                    self._put(now.pod, cluster.state.table.names[now.row])
        return ()

    def _put(self, pod: Pod, node_name: str) -> None:
        self._drop(pod.uid)
        group = _group(pod)
        if group:
            self._node_of[pod.uid] = group, node_name
            self._on.setdefault(group, Counter())[node_name] += 1

    def _drop(self, uid: str) -> None:
        group, node_name = self._node_of.pop(uid, ("", ""))
        if group:
            there = self._on[group]
            there[node_name] -= 1
            if not there[node_name]:
                del there[node_name]
            if not there:
                del self._on[group]

    # -- the score

    def score(self, pod: Pod, nodes: Nodes) -> Ints | None:
        group = _group(pod)
        if not group:
            return None
        on = self._on.get(group, Counter())
        missing = max(_minimum(pod, group, nodes.cluster) - on.total(), 1)
        there = np.zeros(len(nodes), np.int64)
        for name, at in nodes.positions(on).items():
            there[at] = on[name]
        worth = there + np.minimum(_fitting(pod, nodes), missing)
        score: Ints = worth * MOST // max(int(worth.max(initial=0)), 1) + (there > 0)
        return score


def _fitting(pod: Pod, nodes: Nodes) -> Ints:
    """Return how many pods like this one fit on each node, by what they request."""
    fits = np.full(len(nodes), ENDLESS)
    for resource, amount in {"pods": 1, **pod.request}.items():
        if amount > 0:
            fits = np.minimum(fits, np.maximum(nodes.free[resource], 0) // amount)
    return fits


def _group(pod: Pod) -> str:
    found = applications.identity(pod)
    return f"{pod.namespace}/{found.group}" if found.group and not found.problem else ""


def _minimum(pod: Pod, group: str, cluster: Cluster) -> int:
    """Return how many pods of the group must run together; 1 if its PodGroup does not exist."""
    found = applications.identity(pod)
    if found.source == BY_LABELS:
        return found.minimum
    kind: type[PodGroup] | type[SigsPodGroup] = PodGroup if found.source == BY_KUBERNETES else SigsPodGroup
    known = cluster.get(kind, group)
    return 1 if known is None else known.minimum
