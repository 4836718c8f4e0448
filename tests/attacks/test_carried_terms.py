"""Bound pods that carry many affinity terms which match everybody's pods: a plain pod's decision costs as before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.attacks.survivor import SOON, bind_plain_pod
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, a_live_pod, bound

pytestmark = pytest.mark.controlplane

CARRIERS, TERMS, PLAIN = 25, 1000, 20


def terms(number: int) -> dict[str, Any]:
    """Preferences against everybody that has not a label which nobody has."""
    found = [
        {
            "weight": 1,
            "podAffinityTerm": {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {
                    "matchExpressions": [{"key": "app", "operator": "NotIn", "values": [f"x{number}-{each}"]}]
                },
            },
        }
        for each in range(TERMS)
    ]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": found}}


def test_plain_pods_are_bound_soon_beside_pods_with_many_terms(
    plane: ControlPlane, namespace: str, attacked: Stowplan
) -> None:
    """If each term were looked at for each pod, twenty decisions would take some twenty seconds."""
    api, pods = plane.api(), f"/api/v1/namespaces/{namespace}/pods"
    for number in range(CARRIERS):
        api.must("POST", pods, a_live_pod(f"carrier-{number}", cpu="1m", affinity=terms(number), nodeName="attacked-0"))
    bind_plain_pod(plane, namespace, attacked, within=60)  # the carriers are read by then
    names = {f"web-{number}" for number in range(PLAIN)}
    for name in names:
        api.must("POST", pods, a_live_pod(name, cpu="1m"))
    until("all have a node", lambda: bound(plane, namespace).keys() >= names, SOON, attacked.tail)
    attacked.check()
