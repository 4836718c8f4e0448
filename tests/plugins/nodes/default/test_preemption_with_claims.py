"""A dry run of preemption meets a claim that ends a decision in an error: other nodes may be candidates."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.evaluation import schedule_one
from stowplan.objects.devices import DeviceClass
from stowplan.objects.kinds import convert
from stowplan.objects.resource_claims import ResourceClaim
from stowplan.objects.resource_slices import ResourceSlice
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state

DRIVER = "gpu.example.com"
UPDATED = (
    'running "DynamicResources" filter plugin: claim default/mine, request gpu: asks for all devices, '
    f"but resource pool {DRIVER}/{{}} is currently being updated"
)


def a_slice(node: str, *, complete: bool) -> ResourceSlice:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1 if complete else 2}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return convert(ResourceSlice, {"metadata": {"name": node}, "spec": spec})


def decided(*complete: bool) -> Any:
    """A pod that needs all devices of a node, and all its CPU, on full nodes; their pools are complete, or not."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    meta = {"name": "mine", "namespace": "default", "uid": "claim-mine"}
    claim = convert(ResourceClaim, {"metadata": meta, "spec": {"devices": {"requests": [request]}}})
    names = "abc"[: len(complete)]
    state = a_state(
        nodes=[a_node(name, cpu=1) for name in names],
        pods=[a_pod(f"low-{name}", node=name, requests={"cpu": "1"}, priority=-1) for name in names],
        others=[
            convert(DeviceClass, {"metadata": {"name": "gpu"}}), claim,
            *(a_slice(name, complete=each) for name, each in zip(names, complete, strict=True)),
        ],
    )  # fmt: skip
    entry = {"name": "gpu", "resourceClaimName": "mine"}
    profile = a_profile()
    profile.attach(state)
    return schedule_one(a_pod("high", requests={"cpu": "1"}, resourceClaims=[entry]), state, profile).post_filter


@pytest.mark.parametrize(
    ("complete", "reason"),
    [
        pytest.param((False,), f"preemption: {UPDATED.format('a')}", id="one node"),
        pytest.param(
            (False, False), f"preemption: [{UPDATED.format('a')}, {UPDATED.format('b')}]", id="two nodes, two errors"
        ),
    ],
)
def test_without_a_candidate_the_errors_are_told(complete: tuple[bool, ...], reason: str) -> None:
    found = decided(*complete)
    assert (found.candidate, found.reasons) == (None, (reason,))


def test_a_node_where_the_claim_can_be_allocated_is_a_candidate() -> None:
    found = decided(False, True)
    assert found.candidate is not None
    assert (found.candidate.node, [pod.name for pod in found.candidate.victims]) == ("b", ["low-b"])
