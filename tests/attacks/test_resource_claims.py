"""A pod with a resource claim that does not exist waits, and others get their nodes meanwhile."""

from __future__ import annotations

import pytest

from tests.attacks.survivor import unharmed
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, a_live_pod, condition

pytestmark = pytest.mark.controlplane
CLAIM = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "nobody-made-it"}}]}}


def test_a_pod_without_its_claim_waits_and_is_tried_when_the_claim_is_there(
    plane: ControlPlane, namespace: str, attacked: Stowplan
) -> None:
    """Before the claim exists, kube-scheduler does not try the pod at all: there is no condition, and no event."""
    claims = [{"name": "gpu", "resourceClaimName": "mine"}]
    with unharmed(plane, namespace, attacked):
        plane.api().must("POST", f"/api/v1/namespaces/{namespace}/pods", a_live_pod("claims", resourceClaims=claims))
    assert not condition(plane, namespace, "claims")
    document = {"metadata": {"name": "mine"}, "spec": CLAIM}
    plane.api().must("POST", f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims", document)
    found = until("the pod has a condition", lambda: condition(plane, namespace, "claims"), explain=attacked.explain)
    assert (found["status"], found["reason"]) == ("False", "Unschedulable")
    assert "request gpu: device class nobody-made-it does not exist" in found["message"]
