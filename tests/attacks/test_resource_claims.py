"""Pods that need resource claims, not allocated yet: each is told so, and others get their nodes meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from tests.attacks.survivor import unharmed
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, a_live_pod, condition

pytestmark = pytest.mark.controlplane

SAYS = "this scheduler does not allocate resource claims yet, and the pod needs [gpu]"


def test_a_pod_with_a_claim_is_told_that_it_waits_in_vain(
    plane: ControlPlane, namespace: str, attacked: Stowplan
) -> None:
    claims = [{"name": "gpu", "resourceClaimName": "nobody-made-it"}]
    with unharmed(plane, namespace, attacked):
        plane.api().must("POST", f"/api/v1/namespaces/{namespace}/pods", a_live_pod("claims", resourceClaims=claims))
        found = until(
            "the pod has a condition", lambda: condition(plane, namespace, "claims"), explain=attacked.explain
        )
        assert (found["status"], found["reason"]) == ("False", "Unschedulable")
        assert SAYS in found["message"]
        until("there is an event", lambda: notes(plane, namespace, "claims"), explain=attacked.explain)
    assert {SAYS in note for note in notes(plane, namespace, "claims")} == {True}
    assert SAYS in attacked.tail(10_000)


def notes(plane: ControlPlane, namespace: str, pod: str) -> list[str]:
    """What the events about a pod's failed attempts say."""
    events: list[dict[str, Any]] = plane.api().must("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    about = (each for each in events if each["involvedObject"]["name"] == pod)
    return [each["message"] for each in about if each["reason"] == "FailedScheduling"]
