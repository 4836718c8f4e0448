"""What the policies beyond kube-scheduler's cost: 5,000 nodes and 50,000 bound pods that each policy has to count.

Each is compared with a basic decision by the default profile in the same cluster. The pod leaves again, off the clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, cycle
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import object_templates, workload
from benchmarks.figures import Comparison
from benchmarks.interleaving import compared
from benchmarks.workload import CreateNodes, Template
from stowplan.apps import profile_loader
from stowplan.apps.plugin_kit.interleaving import Measurement, interleave
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.columns.state import ClusterState
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.pods import Pod

NODES, PODS, BATCH, OWNERS = 5000, 50_000, 20, 1000
VISITED = 20  # nodes that each owner's pod has been on
ZONE = "topology.kubernetes.io/zone"
NAME, REFUSING = "policies", "policies-refusing"


@dataclass(frozen=True)
class Policy:
    """A case, its plugin, what objects that reads, and what its pods carry."""

    case: str
    name: str
    labels: dict[str, str] = field(default_factory=dict)
    owned: bool = False  # by one of many replica sets
    figure: str = NAME
    objects: tuple[tuple[str, dict[str, Any]], ...] = ()


def _replica_set(number: int, names: list[str]) -> dict[str, Any]:
    """Each has a history of its own, so that nothing worked out for one helps with the next."""
    counts = {name: 1 + (at + number) % 7 for at, name in enumerate(names[number : number + VISITED])}
    annotations = {"annotation.sp.io/schedule-state": json.dumps({"latest": names[number], "node_count": counts})}
    name = f"moved-{number}"
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
    return {"metadata": metadata, "spec": {"replicas": 1}}


def _workload_policy(name: str, zones: list[str], first: int) -> dict[str, Any]:
    """So many places in the first zone, twice as many in the second …; each zone has about 16,700 of the pods."""
    spec = {
        "topologyKey": ZONE,
        "labelSelector": {"matchLabels": {"counted": "yes"}},
        "allocationPolicy": [{"name": zone, "replicas": first * (at + 1)} for at, zone in enumerate(zones)],
        "allocationType": "Required",
    }
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def every(names: list[str], zones: list[str]) -> tuple[Policy, ...]:
    return (
        Policy("FlavourClusterWide", "FlavourClusterWide", {"flavour": "gold", "counted": "yes"}),
        Policy(
            "SPPriority",
            "SPPriority",
            owned=True,
            objects=tuple(("ReplicaSet", _replica_set(n, names)) for n in range(OWNERS)),
        ),
        *(
            Policy(
                f"WorkloadPolicy, {case}",
                "WorkloadPolicy",
                {"workload-policy/kosmos.io": name, "counted": "yes"},
                objects=(("WorkloadPolicy", _workload_policy(name, zones, first)),),
                figure=figure,
            )
            for case, name, first, figure in (
                ("all domains open", "open", 20_000, NAME),
                (
                    "one domain full",
                    "full",
                    10_000,
                    REFUSING,
                ),  # a third of the nodes is refused, which a basic pod has not
            )
        ),
    )


def run(default: Profile, rounds: int) -> Iterator[Comparison]:
    state = _cluster()
    state.add_pod(_pod(10**6 - 1), next(iter(state.table.row_of)))
    names = [name for name in state.table.names if name]
    zones = sorted({node.labels[ZONE] for node in state.table.nodes if node is not None})
    for number, policy in enumerate(every(names, zones)):
        # Others of its workload are there already, so its labels are not seen for the first time with each decision.
        state.add_pod(_pod(10**6 + number, policy.labels, owned=policy.owned), names[number])
        for kind, document in policy.objects:
            state.apply(Put(kinds.convert(kinds.KINDS[kind], document)))
        yield _compare(policy, state, default, _with(policy.name), rounds)


def _with(name: str) -> Profile:
    """The default profile and this plugin, wherever it belongs."""
    plugins = {"multiPoint": {"enabled": [{"name": name, "weight": 5}]}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    return profile_loader.configured(document)[1]["default-scheduler"]


def _compare(policy: Policy, state: ClusterState, default: Profile, profile: Profile, rounds: int) -> Comparison:
    measurements = [
        Measurement(_decisions(state, default, lambda n: _pod(n)), Yardstick(state)),
        Measurement(
            _decisions(state, profile, lambda number: _pod(number, policy.labels, owned=policy.owned)), Yardstick(state)
        ),
    ]
    interleave(measurements, rounds)
    return compared(policy.figure, policy.case, measurements, "against a basic decision", nodes=NODES, pods=PODS)


def _decisions(state: ClusterState, profile: Profile, made: Callable[[int], Pod]) -> Callable[[], tuple[float, int]]:
    generator, numbers = np.random.default_rng(0), count(10**7)

    def batch() -> tuple[float, int]:
        seconds = 0.0
        for pod in [made(next(numbers)) for _ in range(BATCH)]:
            start = perf_counter()
            decision = schedule_one(pod, state, profile, generator)
            if decision.node is None:
                raise RuntimeError(f"{pod.key}: {decision.error or decision.message}")
            state.add_pod(pod, decision.node)
            seconds += perf_counter() - start
            state.remove_pod(pod.uid)
        return seconds, BATCH

    return batch


def _cluster() -> ClusterState:
    """Worker nodes in zones, full of pods that the policies count."""
    state, generator = ClusterState(), np.random.default_rng(1)
    plan = next(step for step in workload.every()["spread"].workload_template if isinstance(step, CreateNodes))
    for node in object_templates.nodes(plan, NODES):
        node.metadata.labels["node-role.kubernetes.io/worker"] = ""
        state.apply(Put(node))
    flavours = cycle(("gold", "silver", "bronze"))
    for number, row in enumerate(generator.integers(NODES, size=PODS).tolist()):
        pod = _pod(number, {"flavour": next(flavours), "counted": "yes", "app": f"app-{number % 2000}"})
        state.add_pod(pod, state.table.names[row])
    return state


def _pod(number: int, labels: dict[str, str] | None = None, *, owned: bool = False) -> Pod:
    owner = f"moved-{number % OWNERS}"
    owners = [{"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": owner, "uid": owner, "controller": True}]
    metadata = {"name": f"pod-{number}", "labels": labels or {}, "ownerReferences": owners if owned else []}
    amounts = {"cpu": "100m", "memory": "100Mi"}
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"requests": amounts}}
    template: Template = {"metadata": metadata, "spec": {"containers": [container]}}
    return next(object_templates.pods([template], 1, "default", str(number)))
