"""A pod with an unbound claim, in a cluster with 5,000 static volumes, against a basic pod.

local      a volume on each node, which that node alone can access
zonal      volumes of three zones
two        a pod with two claims of local volumes, of which each node has two

Decided, reserved (the volume is taken) and assumed on its node. All volumes have the same class, and each claim is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.figures import Comparison
from benchmarks.interleaving import compared
from stowplan.apps.plugin_kit.interleaving import Measurement, interleave
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.plugin_calls import call
from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.pods import Pod

NAME, NODES, BATCH, ROUNDS = "static-volumes", 5000, 10, 20
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def run(profile: Profile, rounds: int) -> Iterator[Comparison]:
    for case, key, number, claims in (("local", HOST, 1, 1), ("zonal", ZONE, 1, 1), ("two claims, local", HOST, 2, 2)):
        states = _cluster("", 0), _cluster(key, number)
        measurements = [
            Measurement(_decisions(states[0], profile, 0, ""), Yardstick(states[0])),
            Measurement(_decisions(states[1], profile, claims, f"{key[0]}{number}"), Yardstick(states[1])),
        ]
        interleave(measurements, rounds)
        note = "against a basic pod"
        yield compared(NAME, case, measurements, note, nodes=NODES, pods=BATCH)


def _decisions(state: ClusterState, profile: Profile, claims: int, case: str) -> Callable[[], tuple[float, int]]:
    """`case`: a part of the claims' names. With the names of another case, shapes would be known from there."""
    generator, numbers = np.random.default_rng(0), count()

    def batch() -> tuple[float, int]:
        seconds = 0.0
        for _ in range(BATCH):
            number = next(numbers)
            for claim in range(claims):
                _put(state, "PersistentVolumeClaim", _claim(case, number, claim), CLAIM)
            pod = _pod(number, claims, case)
            start = perf_counter()
            decision = schedule_one(pod, state, profile, generator)
            if decision.node is None:
                raise RuntimeError(decision.full_message)
            state.add_pod(pod, decision.node)
            for enabled in profile.reservers:
                call(enabled, enabled.plugin.reserve, pod, decision.node, Cluster(state))
            seconds += perf_counter() - start
            assert len(state.assumed.taken_by(pod.uid)) == claims
        return seconds, BATCH

    return batch


CLAIM: dict[str, Any] = {
    "spec": {
        "storageClassName": "static",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Gi"}},
    },
    "status": {"phase": "Pending"},
}


def _cluster(key: str, number: int) -> ClusterState:
    """Nodes, and for each node so many volumes that are accessible by this label."""
    state = ClusterState()
    _put(state, "StorageClass", "static", {"provisioner": "kubernetes.io/no-provisioner", **WAITS})
    for at in range(NODES):
        labels = {HOST: f"node-{at}", ZONE: f"zone-{at % 3}"}
        room = {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}}
        _put(state, "Node", f"node-{at}", {"status": room}, labels=labels)
        for each in range(number):
            term = {"matchExpressions": [{"key": key, "operator": "In", "values": [labels[key]]}]}
            spec = {
                "storageClassName": "static",
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "10Gi"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            }
            _put(state, "PersistentVolume", f"volume-{at}-{each}", {"spec": spec, "status": {"phase": "Available"}})
    return state


WAITS = {"volumeBindingMode": "WaitForFirstConsumer"}


def _put(state: ClusterState, kind: str, name: str, document: dict[str, Any], **metadata: Any) -> None:
    about = {"name": name, "uid": name, **({"namespace": "default"} if kind == "PersistentVolumeClaim" else {})}
    state.apply(Put(kinds.convert(kinds.KINDS[kind], {**document, "metadata": {**about, **metadata}})))


def _claim(case: str, number: int, claim: int) -> str:
    return f"claim-{case}-{number}-{claim}"


def _pod(number: int, claims: int, case: str) -> Pod:
    names = [_claim(case, number, claim) for claim in range(claims)]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    container = {"name": "main", "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}}
    metadata = {"name": f"pod-{number}", "namespace": "default", "uid": f"pod-{number}"}
    return kinds.convert(Pod, {"metadata": metadata, "spec": {"containers": [container], "volumes": volumes}})
