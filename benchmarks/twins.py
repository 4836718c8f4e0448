"""Array plugins against their twins that look at one node after the other; both must refuse the same nodes.

The twins are in `tests/plugins/nodes/default/per_node_twins.py`. Tests there compare their verdicts on random clusters.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from statistics import median
from time import perf_counter
from typing import Protocol, TypeVar

import numpy as np

from benchmarks import object_templates
from benchmarks.figures import AnyFigure, Comparison, Missing
from benchmarks.workload import CreateNodes, LabelStrategy, Template
from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Reject
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default.node_affinity import NodeAffinityPlugin
from stowplan.plugins.nodes.default.node_resources_fit import NodeResourcesFit
from stowplan.plugins.nodes.default.taint_toleration import TaintToleration

NODES, EACH = 5000, 20
TWINS = "tests.plugins.nodes.default.per_node_twins"
Answer = TypeVar("Answer")


class Plugin(Protocol):
    def filter(self, pod: Pod, nodes: Nodes, /) -> Iterable[Reject]: ...


class Twin(Protocol):
    """Answers nothing (None, or an empty list) for a node that fits."""

    def fits(self, pod: Pod, node: OneNode, /) -> object: ...


PAIRS: dict[str, tuple[Callable[[], Plugin], str]] = {
    "TaintToleration": (TaintToleration, "TaintTwin"),
    "NodeResourcesFit": (NodeResourcesFit, "FitTwin"),
    "NodeAffinity": (NodeAffinityPlugin, "AffinityTwin"),
}


class LeanFit:
    """The twin in the tests parses quantities for each node; this one reads the parsed numbers."""

    def fits(self, pod: Pod, node: OneNode) -> bool:
        wanted = {"pods": 1, **pod.request}
        return any(amount > node.free(resource) for resource, amount in wanted.items())


def run(rounds: int) -> list[AnyFigure]:
    try:
        twins = importlib.import_module(TWINS)
    except ModuleNotFoundError as error:
        return [Missing("per-node-twins", f"{TWINS} cannot be imported: {error}")]
    state, pod = _cluster(), _pod("incoming", "100m")
    pairs: dict[str, tuple[Plugin, Twin]] = {
        name: (make(), getattr(twins, twin)()) for name, (make, twin) in PAIRS.items()
    }
    pairs["NodeResourcesFit, lean twin"] = NodeResourcesFit(), LeanFit()
    return [_compare(name, plugin, twin, state, pod, rounds) for name, (plugin, twin) in pairs.items()]


def _compare(name: str, plugin: Plugin, twin: Twin, state: ClusterState, pod: Pod, rounds: int) -> Comparison:
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(max(rounds // 4, 3)):
        at_once, seconds = _timed(lambda: [_refused(plugin, state, pod) for _ in range(EACH)])
        ours.append(1e6 * seconds / EACH)
        one_by_one, seconds = _timed(lambda: [bool(twin.fits(pod, node)) for node in Cluster(state).nodes])
        theirs.append(1e6 * seconds)
        if at_once[0].tolist() != one_by_one:
            raise RuntimeError(f"{name} and its twin do not refuse the same nodes")
    ratio = median(slow / fast for slow, fast in zip(theirs, ours, strict=True))
    return Comparison(
        "per-node-twins", name, NODES, 1, "µs", median(ours), median(theirs), ratio, note="against its twin"
    )


def _refused(plugin: Plugin, state: ClusterState, pod: Pod) -> Bools:
    refused = np.zeros(NODES, np.bool_)
    for reject in plugin.filter(pod, Cluster(state).nodes):
        refused |= reject.rows
    return refused


def _timed(work: Callable[[], Answer]) -> tuple[Answer, float]:
    start = perf_counter()
    answer = work()
    return answer, perf_counter() - start


def _cluster() -> ClusterState:
    """Every tenth node is tainted, every fourth is full, zones and disks differ."""
    state = ClusterState()
    for number, taints in enumerate([[], [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]]):
        plan = CreateNodes(
            "$initNodes", _node(number, taints), LabelStrategy("topology.kubernetes.io/zone", ["a", "b", "c"])
        )
        for node in object_templates.nodes(plan, NODES // 10 * (9, 1)[number]):
            state.apply(Put(node))
    for row, name in enumerate(list(state.table.names)):
        state.add_pod(_pod(f"load-{row}", "3950m" if row % 4 == 0 else "1"), name)
    return state


def _node(number: int, taints: list[dict[str, str]]) -> Template:
    return {
        "metadata": {"generateName": f"node-{number}-", "labels": {"disk": ("ssd", "hdd")[number]}},
        "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
    }


def _pod(name: str, cpu: str) -> Pod:
    zones = [{"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": zones}}
    amounts = {"cpu": cpu, "memory": "500Mi"}
    spec = {
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": required},
        "tolerations": [{"key": "other", "operator": "Exists"}],
        "containers": [{"name": "main", "resources": {"requests": amounts}}],
    }
    return kinds.convert(Pod, {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec})
