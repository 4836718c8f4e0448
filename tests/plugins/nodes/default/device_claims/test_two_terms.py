"""A selector of nodes with two terms cannot be merged into that of an allocation: kube-scheduler fails in an error."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.evaluation import schedule_one
from stowplan.objects.devices import DeviceClass
from stowplan.objects.kinds import convert
from stowplan.objects.resource_claims import ResourceClaim
from stowplan.objects.resource_slices import ResourceSlice
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state

TERMS = [{"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]} for key in ("x", "y")]
ERROR = (
    'running "DynamicResources" filter plugin: create NodeSelector for claim mine: '
    "unsupported ResourceSlice.NodeSelector with 2 terms"
)


def error_of(spec: dict[str, Any], device: dict[str, Any]) -> str:
    pool = {"name": "rack", "generation": 1, "resourceSliceCount": 1}
    whole = {"driver": "gpu.example.com", "pool": pool, "devices": [{"name": "gpu-0", **device}], **spec}
    found = convert(ResourceSlice, {"metadata": {"name": "s"}, "spec": whole})
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    meta = {"name": "mine", "namespace": "default", "uid": "claim-mine"}
    claim = convert(ResourceClaim, {"metadata": meta, "spec": {"devices": {"requests": [request]}}})
    state = a_state(nodes=[a_node("a")], others=[convert(DeviceClass, {"metadata": {"name": "gpu"}}), claim, found])
    profile = a_profile()
    profile.attach(state)
    return schedule_one(a_pod(resourceClaims=[{"name": "c", "resourceClaimName": "mine"}]), state, profile).error


@pytest.mark.parametrize(
    ("terms", "expected"),
    [pytest.param(TERMS[:1], "", id="one term"), pytest.param(TERMS, ERROR, id="two terms")],
)
def test_of_a_slice_and_of_a_device(terms: list[dict[str, Any]], expected: str) -> None:
    selector = {"nodeSelector": {"nodeSelectorTerms": terms}}
    assert error_of(selector, {}) == expected
    assert error_of({"perDeviceNodeSelection": True}, selector) == expected
