"""A pod with a claim for devices, in a cluster of 500 nodes with 8 devices each, against a basic pod.

one        one device: decided, reserved and assumed on its node
too many   one device more than any node has (kubernetes#131730): no node, and what post-filters say
new        the same, and every decision is about a claim that asks something nobody asked before, so that each of the
           4,000 devices is looked at. It has a name of its own, and no bound

All devices differ in an attribute, as real ones do.
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
from stowplan.objects.changes import Gone, Put
from stowplan.objects.pods import Pod

NAME, NODES, DEVICES, BATCH = "device-claims", 500, 8, 10
DRIVER = "gpu.example.com"
CASES = ((NAME, "one", 1, False), (NAME, "too many", DEVICES + 1, False), (f"{NAME}-new", "new", DEVICES + 1, True))


def run(profile: Profile, rounds: int) -> Iterator[Comparison]:
    for name, case, devices, new in CASES:
        states = _cluster(), _cluster()
        measurements = [
            Measurement(_decisions(states[0], profile, 0, new), Yardstick(states[0])),
            Measurement(_decisions(states[1], profile, devices, new), Yardstick(states[1])),
        ]
        interleave(measurements, rounds)
        yield compared(name, case, measurements, "against a basic pod", nodes=NODES, pods=BATCH)


def _decisions(state: ClusterState, profile: Profile, devices: int, new: bool) -> Callable[[], tuple[float, int]]:
    generator, numbers = np.random.default_rng(0), count()

    def batch() -> tuple[float, int]:
        seconds = 0.0
        for _ in range(BATCH):
            number = next(numbers)
            if devices:
                _put(state, "ResourceClaim", f"claim-{number}", _asking(devices, number if new else 0))
            pod = _pod(number, bool(devices))
            start = perf_counter()
            decision = schedule_one(pod, state, profile, generator)
            if decision.node is not None:
                state.add_pod(pod, decision.node)
                for enabled in profile.reservers:
                    call(enabled, enabled.plugin.reserve, pod, decision.node, Cluster(state))
            seconds += perf_counter() - start
            if decision.error or (decision.node is None) != (devices > DEVICES):
                raise RuntimeError(decision.error or decision.full_message)
            _take_back(state, pod, number, devices)
        return seconds, BATCH

    return batch


def _take_back(state: ClusterState, pod: Pod, number: int, devices: int) -> None:
    """The pod has gone: the cluster does not fill up, however many rounds there are."""
    state.assumed.release(pod.uid)
    if pod.uid in state.pods:
        state.remove_pod(pod.uid)
    if devices:
        state.apply(Gone(state.store.every(kinds.KINDS["ResourceClaim"])[f"default/claim-{number}"]))


def _asking(devices: int, variant: int) -> dict[str, Any]:
    """`variant`: a number that makes the expression another one."""
    selector = {"cel": {"expression": f'device.attributes["{DRIVER}"].index >= 0 || {variant} < 0'}}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": devices, "selectors": [selector]}
    return {"spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}}


def _cluster() -> ClusterState:
    state = ClusterState()
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    _put(state, "DeviceClass", "gpu", {"spec": {"selectors": [selector]}})
    for at in range(NODES):
        room = {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}}
        _put(state, "Node", f"node-{at}", {"status": room})
        listed = [
            {"name": f"gpu-{each}", "attributes": {"index": {"int": each}, "uuid": {"string": f"{at}-{each}"}}}
            for each in range(DEVICES)
        ]
        pool = {"name": f"node-{at}", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": f"node-{at}", "pool": pool, "devices": listed}
        _put(state, "ResourceSlice", f"slice-{at}", {"spec": spec})
    return state


def _put(state: ClusterState, kind: str, name: str, document: dict[str, Any]) -> None:
    metadata = {"name": name, "uid": name, **({"namespace": "default"} if kind == "ResourceClaim" else {})}
    state.apply(Put(kinds.convert(kinds.KINDS[kind], {**document, "metadata": metadata})))


def _pod(number: int, with_claim: bool) -> Pod:
    container = {"name": "main", "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}}
    claims = [{"name": "gpus", "resourceClaimName": f"claim-{number}"}] if with_claim else []
    metadata = {"name": f"pod-{number}", "namespace": "default", "uid": f"pod-{number}"}
    return kinds.convert(Pod, {"metadata": metadata, "spec": {"containers": [container], "resourceClaims": claims}})
