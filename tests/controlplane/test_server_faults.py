"""A server that is killed, or forgets its past, under a scheduler at work: nothing is lost and nothing done twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.fault_endings import LONG_LEASE, QUICK_LEASE, ROOM, SIZES, configuration, settle
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import a_deployment, apply, bound, stowplan

pytestmark = pytest.mark.controlplane


@pytest.fixture
def nodes(plane: ControlPlane) -> Iterator[list[str]]:
    with plane.nodes(6, prefix="fault", capacity=ROOM) as names:
        yield names


@pytest.mark.parametrize(("number", "times"), SIZES)
def test_the_api_server_is_killed_and_comes_back(
    plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path, number: int, times: int
) -> None:
    config = configuration(tmp_path, namespace, LONG_LEASE)  # it must live through this, however long it is
    with stowplan(plane, "killed-server", "--config", config) as program:
        for round_ in range(times):
            apply(plane, namespace, a_deployment(f"web-{round_}", number))
            until("some are bound", lambda: bound(plane, namespace), 60, program.explain)
            plane.kill_apiserver()
            plane.restart_apiserver()
        settle(plane, namespace, number * times, program)


@pytest.mark.parametrize(("number", "times"), SIZES)
def test_history_is_compacted_under_its_watches(
    plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path, number: int, times: int
) -> None:
    no_lease = QUICK_LEASE.replace("leaderElect: true", "leaderElect: false")
    with stowplan(plane, "compacted", "--config", configuration(tmp_path, namespace, no_lease)) as program:
        for round_ in range(times):
            apply(plane, namespace, a_deployment(f"web-{round_}", number))
            plane.compact_etcd()
            plane.restart_apiserver()  # its own cache of the past goes with it
        settle(plane, namespace, number * times, program)
