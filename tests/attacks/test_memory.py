"""Pods with large annotations that come and go, a few at a time: nothing of them stays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from tests.attacks.survivor import unharmed
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, a_live_pod

pytestmark = pytest.mark.controlplane

AT_A_TIME = 8
LETTERS = 248_000  # as many as the API server takes, nearly
_cpu = count(1)


@pytest.mark.parametrize("pods", [110, pytest.param(1200, marks=pytest.mark.full)])
def test_pods_with_large_annotations_leave_nothing(
    plane: ControlPlane, namespace: str, attacked: Stowplan, pods: int
) -> None:
    def live_and_die(number: int) -> None:
        api, path = plane.api(), f"/api/v1/namespaces/{namespace}/pods"
        pod = a_live_pod(f"fat-{number}", cpu=f"{next(_cpu)}u")  # each has a shape of its own
        pod["metadata"]["annotations"] = {"a": f"{number:08d}" * (LETTERS // 8)}
        api.must("POST", path, pod)
        until("a fat pod is bound", lambda: b'"nodeName":' in api.get(f"{path}/fat-{number}").body, 30, attacked.tail)
        api.must("DELETE", f"{path}/fat-{number}?gracePeriodSeconds=0")

    with unharmed(plane, namespace, attacked), ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(live_and_die, range(AT_A_TIME)))  # what eight of them take is taken before and after
    with unharmed(plane, namespace, attacked), ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(live_and_die, range(AT_A_TIME, pods)))
