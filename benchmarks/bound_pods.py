"""Does a decision get dearer with the pods that are there? The same nodes with 5,000 and with 50,000 bound pods.

The pods belong to 2,000 owners, each with a Service. Half of the owners are StatefulSets, whose pods all have labels of
their own. Half of the owners (of both sorts) spread their pods over zones and like to have them near each other; the
pods of the others have no constraints, so Kubernetes' default spreading counts what their Service selects.

    known owner    the owner was asked about before: a template that is scheduled over and over
    new owner      each decision is about an owner that no decision was about before
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, repeat
from time import perf_counter

import numpy as np

from benchmarks import object_templates, workload
from benchmarks.figures import Comparison
from benchmarks.interleaving import compared
from benchmarks.workload import CreateNodes, Template
from stowplan.apps.plugin_kit.interleaving import Measurement, interleave
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.columns.state import ClusterState
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Put
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import MapSelectorSpec, Service

NODES, OWNERS, FEW, MANY, BATCH = 5000, 2000, 5000, 50000, 10
CASES: dict[str, Callable[[], Iterator[int]]] = {
    "basic": lambda: repeat(OWNERS),
    "default spreading, known owner": lambda: repeat(2),
    "default spreading, new owner": lambda: (owner for owner in count() if _is_plain(owner)),
    "spread and affinity, known owner": lambda: repeat(0),
    "spread and affinity, new owner": lambda: (owner for owner in count() if not _is_plain(owner)),
}


def run(profile: Profile, rounds: int) -> list[Comparison]:
    few, many = (_cluster(pods) for pods in (FEW, MANY))
    return [_compare(case, owners, few, many, profile, rounds) for case, owners in CASES.items()]


def _compare(
    case: str,
    owners: Callable[[], Iterator[int]],
    few: ClusterState,
    many: ClusterState,
    profile: Profile,
    rounds: int,
) -> Comparison:
    measurements = [Measurement(Decisions(state, profile, owners()).batch, Yardstick(state)) for state in (few, many)]
    interleave(measurements, rounds)
    return compared("bound-pods", case, measurements, f"against {FEW:,} bound pods", nodes=NODES, pods=MANY)


class Decisions:
    """One pod of each owner in turn; it leaves again, off the clock, so that the cluster stays as it is."""

    def __init__(self, state: ClusterState, profile: Profile, owners: Iterator[int]) -> None:
        self._state, self._profile, self._owners = state, profile, owners
        self._generator = np.random.default_rng(0)
        self._number = count(10**6)

    def batch(self) -> tuple[float, int]:
        pods = [_pod(next(self._owners), next(self._number)) for _ in range(BATCH)]
        return sum(self._decide(pod) for pod in pods), BATCH

    def _decide(self, pod: Pod) -> float:
        start = perf_counter()
        decision = schedule_one(pod, self._state, self._profile, self._generator)
        if decision.node is None:
            raise RuntimeError(f"{pod.key}: {decision.error or decision.message}")
        self._state.add_pod(pod, decision.node)
        seconds = perf_counter() - start
        self._state.remove_pod(pod.uid)
        return seconds


def _cluster(pods: int) -> ClusterState:
    state, generator = ClusterState(), np.random.default_rng(1)
    plan = next(step for step in workload.every()["spread"].workload_template if isinstance(step, CreateNodes))
    for node in object_templates.nodes(plan, NODES):
        state.apply(Put(node))
    for owner in range(OWNERS):
        selector = MapSelectorSpec({"app": f"owner-{owner}"})
        state.put(Service(ObjectMeta(name=f"owner-{owner}", namespace="default"), selector))
    for number, row in enumerate(generator.integers(NODES, size=pods).tolist()):
        state.add_pod(_pod(number % OWNERS, number), state.table.names[row])
    return state


def _is_plain(owner: int) -> bool:
    return owner % 4 >= 2


def _pod(owner: int, number: int) -> Pod:
    return next(object_templates.pods([_template(owner, f"owner-{owner}-{number}")], 1, "default", str(number)))


def _template(owner: int, name: str) -> Template:
    """A pod of an owner; the owner after the last one has no Service and no labels: a basic pod."""
    labels = {"app": f"owner-{owner}"}
    amounts = {"cpu": "100m", "memory": "500Mi"}
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"requests": amounts}}
    spec = {"containers": [container]}
    if owner >= OWNERS:
        return {"metadata": {"name": name}, "spec": spec}
    if not _is_plain(owner):
        spec = {**spec, **_constraints(labels)}
    if owner % 2:
        labels = {**labels, "statefulset.kubernetes.io/pod-name": name}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _constraints(labels: dict[str, str]) -> Template:
    """Wide enough to leave every node feasible, so that both clusters have as many nodes to score."""
    zone, selector = "topology.kubernetes.io/zone", {"matchLabels": labels}
    spread = {"maxSkew": 100, "topologyKey": zone, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    near = {"weight": 10, "podAffinityTerm": {"topologyKey": zone, "labelSelector": selector}}
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near]}}
    return {"topologySpreadConstraints": [spread], "affinity": affinity}
