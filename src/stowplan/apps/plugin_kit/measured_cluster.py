"""A large random cluster, in which a node plugin is measured, and decisions of kube-scheduler's default profile."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from stowplan.apps import profile_loader
from stowplan.apps.plugin_kit.measuring import Batch
from stowplan.apps.plugin_kit.named_plugin import NamedPlugin
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework.checks.words import with_objects, words_of
from stowplan.framework.decision import SKIP, RejectPod
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import attach_plugin
from stowplan.framework.random_clusters import draw
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

DRAWN, ALWAYS, DECISIONS = 80, 12, 10  # drawn pods; so many of them are always asked about


class MeasuredCluster:
    """A cluster of so many nodes, with one pod for each node. `pods`: to measure with, instead of drawn ones."""

    def __init__(self, named: NamedPlugin, nodes: int, pods: Sequence[Pod], objects: Sequence[Object]) -> None:
        self._plugin, words = named.plugin, with_objects(words_of(named.plugin, named.twin), objects)
        drawn = draw(0, words, nodes=nodes, placed=nodes)
        self._nodes, self._state = nodes, ClusterState()
        attach_plugin(named.plugin, self._state)
        for each in (*drawn.others, *objects, *drawn.nodes, *drawn.placed):
            self._state.apply(Put(each))
        more = [draw(seed, kind, nodes=1, placed=0).pod for seed in range(DRAWN // 2) for kind in (words, None)]
        self.given = bool(pods)
        self.asked: Sequence[Any] = pods or (drawn.pod, *more[:ALWAYS])
        self.more: Sequence[Any] = () if pods else more[ALWAYS:]
        self.yardstick = Yardstick(self._state)

    def view(self, method: str, pod: Pod) -> Nodes | None:
        """Return the nodes in a new decision; filters may rely on what their pre-filter left in it.

        None if the pre-filter's answer means that the method is not called.
        """
        cluster = Cluster(self._state)
        if method in ("filter", "score") and callable(getattr(self._plugin, "pre_filter", None)):
            answer = self._plugin.pre_filter(pod, cluster)
            if isinstance(answer, RejectPod) or (answer is SKIP and method == "filter"):
                return None
        return cluster.nodes

    def decisions(self) -> Batch:
        """Return a batch of decisions in a cluster of plain nodes; each pod is put on its node."""
        profile = next(iter(profile_loader.defaults()[1].values()))
        state = ClusterState()
        for number in range(self._nodes):
            labels = {"kubernetes.io/hostname": f"n{number}", "topology.kubernetes.io/zone": f"zone-{number % 3}"}
            offered = {"cpu": "4", "memory": "32Gi", "pods": "110"}
            node = {"metadata": {"name": f"n{number}", "labels": labels}, "status": {"allocatable": offered}}
            state.apply(Put(kinds.convert(Node, node)))
        numbers = itertools.count()

        def batch() -> tuple[float, int]:
            pods = [_plain_pod(f"p{next(numbers)}") for _ in range(DECISIONS)]
            start = perf_counter()
            for pod in pods:
                decision = schedule_one(pod, state, profile)
                if decision.node is not None:  # with as many pods as a small cluster can take
                    state.add_pod(pod, decision.node)
            return perf_counter() - start, DECISIONS

        return batch


def _plain_pod(name: str) -> Pod:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}}]}
    return kinds.convert(Pod, {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec})
