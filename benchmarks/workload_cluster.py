"""A workload's cluster in memory, and the pods to decide on.

Objects are decoded beforehand. tracemalloc measures the memory of a node and of a pod while they are added: the typed
object, its row, its labels and everything else that the state keeps of it.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections import deque
from collections.abc import Iterator
from itertools import count, cycle
from time import perf_counter

import numpy as np

from benchmarks import object_templates
from benchmarks.interleaving import ROUNDS
from benchmarks.workload import Case, Churn, CreateNamespaces, CreateNodes, CreatePods, Workload
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Decision
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Put
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Namespace

SEED = 36


class WorkloadCluster:
    def __init__(self, workload: Workload, case: Case, profile: Profile, rounds: int = ROUNDS) -> None:
        self.nodes = case.nodes
        self.state = ClusterState()
        self.placed = self.preempted = self.without_node = 0
        self.bytes_per_node = self.bytes_per_pod = 0.0
        self._case, self._profile, self._rounds = case, profile, rounds
        self._generator = np.random.default_rng(SEED)
        self._measured: deque[Pod] = deque()
        self._batch = 0
        self._churned: Iterator[Pod] = iter(())
        self._guest: Pod | None = None
        self._numbers = count()
        tracemalloc.start()
        try:
            for operation in workload.workload_template:
                self._do(operation)
        finally:
            tracemalloc.stop()

    # -- making the cluster

    def _do(self, operation: CreateNodes | CreateNamespaces | CreatePods | Churn) -> None:
        match operation:
            case CreateNodes():
                self._create_nodes(operation)
            case CreateNamespaces():
                for index in range(operation.count):
                    self.state.put(Namespace(ObjectMeta(name=f"{operation.prefix}-{index}")))
            case CreatePods() if operation.collect_metrics:
                self._prepare(operation)
            case CreatePods():
                self._create_pods(operation)
            case Churn():
                self._churned = object_templates.pods(operation.pod_templates, 10**9, operation.namespace, self._name())

    def _name(self) -> str:
        return f"operation{next(self._numbers)}"

    def _create_nodes(self, operation: CreateNodes) -> None:
        before = allocated()
        for node in object_templates.nodes(operation, self.nodes):
            self.state.apply(Put(node))
        self.bytes_per_node = (allocated() - before) / self.nodes

    def _create_pods(self, operation: CreatePods) -> None:
        pods = object_templates.pods(
            operation.pod_templates, self._case.count(operation.count_param), operation.namespace, self._name()
        )
        before, there = allocated(), len(self.state.pods)
        for pod, node in zip(pods, cycle(self.state.table.names), strict=False):
            self.state.add_pod(pod, node)
        self.bytes_per_pod = (allocated() - before) / max(len(self.state.pods) - there, 1)

    def _prepare(self, operation: CreatePods) -> None:
        """Decode what is to be measured: one batch per round, and one more to warm up."""
        self._batch = self._case.count(operation.count_param) // ROUNDS
        wanted = self._batch * (self._rounds + 1)
        self._measured.extend(object_templates.pods(operation.pod_templates, wanted, operation.namespace, self._name()))

    # -- decisions

    def batch(self) -> tuple[float, int]:
        """Decide on the next few pods; the seconds that took."""
        seconds = 0.0
        for _ in range(self._batch):
            self._churn()
            pod = self._measured.popleft()
            start = perf_counter()
            decision = self._place(pod)
            seconds += perf_counter() - start
            self._note(decision)
        return seconds, self._batch

    def _place(self, pod: Pod) -> Decision:
        """What a scheduler does for a pod: decide, and assume the pod where it is to go."""
        decision = schedule_one(pod, self.state, self._profile, self._generator)
        room = decision.post_filter.candidate if decision.post_filter is not None else None
        if room is not None:
            for victim in room.victims:
                self.state.remove_pod(victim.uid)
        node = decision.node if room is None else room.node
        if node is not None:
            self.state.add_pod(pod, node)
        return decision

    def _churn(self) -> None:
        pod = next(self._churned, None)
        if pod is not None:
            if self._guest is not None:
                self.state.remove_pod(self._guest.uid)
            row = int(self._generator.integers(self.nodes))
            self.state.add_pod(pod, self.state.table.names[row])
            self._guest = pod

    def _note(self, decision: Decision) -> None:
        if decision.error:
            raise RuntimeError(f"{decision.pod.key}: {decision.error}")
        if len(self._measured) >= self._batch * self._rounds:
            return  # still warming up
        made_room = decision.post_filter is not None and decision.post_filter.candidate is not None
        self.placed += decision.node is not None
        self.preempted += made_room
        self.without_node += decision.node is None and not made_room


def allocated() -> int:
    """Bytes in use since tracing began."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
