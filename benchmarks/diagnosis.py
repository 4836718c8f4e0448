"""What a diagnosis with remedies costs: 5,000 nodes and 50,000 bound pods, one pending pod.

one-cause    a taint that the pod does not tolerate on every node: its remedies change the pod or a node
evictions    the nodes are full: the remedies are a lower request, more nodes, pods to delete, a higher priority; and
             the same for a pod that would preempt
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from time import perf_counter

import msgspec
import numpy as np

from benchmarks import object_templates, workload
from benchmarks.figures import Comparison
from benchmarks.interleaving import compared
from benchmarks.workload import CreateNodes, Template
from stowplan.apps.plugin_kit.interleaving import Measurement, interleave
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.columns.state import ClusterState
from stowplan.diagnosis.search import diagnose
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Put
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.taints import Taint

NODES, PODS = 5000, 50_000
ONE_CAUSE, EVICTIONS = "diagnosis", "diagnosis-evictions"
NAME = ONE_CAUSE


@dataclass(frozen=True)
class Pending:
    """A pod that gets no node: what it asks for, and what it is measured as."""

    name: str
    case: str
    cpu: str
    priority: int = 0


CASES = (
    Pending(ONE_CAUSE, "one cause: a taint on every node", "100m"),
    Pending(EVICTIONS, "full nodes, evictions among the remedies", "3500m"),
    Pending(EVICTIONS, "full nodes, and the pod would preempt", "3500m", priority=10),
)


def run(profile: Profile, rounds: int) -> Iterator[Comparison]:
    states = {ONE_CAUSE: _cluster(_with_taint), EVICTIONS: _cluster(lambda node: node)}
    for each in CASES:
        state = states[each.name]
        measurements = [
            Measurement(_decisions(state, profile, each), Yardstick(state)),
            Measurement(_diagnoses(state, profile, each), Yardstick(state)),
        ]
        interleave(measurements, rounds)
        note = "against the decision without a node"
        yield compared(each.name, each.case, measurements, note, nodes=NODES, pods=PODS)


def _diagnoses(state: ClusterState, profile: Profile, pending: Pending) -> Callable[[], tuple[float, int]]:
    numbers = count(2 * 10**7)

    def once() -> tuple[float, int]:
        pod = _pod(next(numbers), pending.cpu, pending.priority)
        start = perf_counter()
        found = diagnose(pod, state, profile)
        seconds = perf_counter() - start
        if not found.remedies:
            raise RuntimeError(f"{pod.key}: no remedy")
        return seconds, 1

    return once


def _decisions(state: ClusterState, profile: Profile, pending: Pending) -> Callable[[], tuple[float, int]]:
    numbers = count(10**7)

    def once() -> tuple[float, int]:
        pod = _pod(next(numbers), pending.cpu, pending.priority)
        start = perf_counter()
        decision = schedule_one(pod, state, profile)
        seconds = perf_counter() - start
        if decision.node is not None:
            raise RuntimeError(f"{pod.key} fits on {decision.node}")
        return seconds, 1

    return once


def _cluster(changed: Callable[[Node], Node]) -> ClusterState:
    state, generator = ClusterState(), np.random.default_rng(1)
    plan = next(step for step in workload.every()["spread"].workload_template if isinstance(step, CreateNodes))
    for node in object_templates.nodes(plan, NODES):
        state.apply(Put(changed(node)))
    rows = np.concatenate([np.repeat(np.arange(NODES), 8), generator.integers(NODES, size=PODS - 8 * NODES)])
    for number, row in enumerate(rows.tolist()):
        state.add_pod(_pod(number, "200m", priority=number % 5), state.table.names[row])
    return state


def _with_taint(node: Node) -> Node:
    number = sum(map(ord, node.name)) % 3
    taint = Taint("dedicated", "NoSchedule", f"team-{number}")
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=(taint,)))


def _pod(number: int, cpu: str, priority: int) -> Pod:
    amounts = {"cpu": cpu, "memory": "100Mi"}
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"requests": amounts}}
    metadata = {"name": f"pod-{number}", "labels": {"app": f"app-{number % 2000}"}}
    template: Template = {"metadata": metadata, "spec": {"containers": [container], "priority": priority}}
    return next(object_templates.pods([template], 1, "default", str(number)))
