"""What attacks ask for: a namespace of a real control plane, three nodes and a scheduler; a hub with clusters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane.place_process import Hub
from tests.controlplane.plane import ControlPlane
from tests.controlplane.served_hub import ServedHub, a_served_hub, with_three_clusters
from tests.controlplane.stowplan_process import Stowplan, stowplan


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """A fresh namespace; its pods are gone afterwards."""
    plane.check()
    with plane.namespace("attack") as name:
        yield name
    plane.check()


@pytest.fixture(scope="module")
def attacked(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Stowplan]:
    """`stowplan run` with its defaults and three nodes, one for the tests of a file: they must all be survived."""
    log = request.module.__name__.rpartition(".")[2]
    with plane.nodes(3, prefix="attacked"), stowplan(plane, log, "--leader-elect=false") as program:
        yield program


@pytest.fixture(scope="module")
def attacked_hub(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[ServedHub]:
    """`stowplan place` with its defaults, one for the tests of a file."""
    with a_served_hub(plane, request.module.__name__.rpartition(".")[2]) as found:
        yield found


@pytest.fixture
def hub(attacked_hub: ServedHub) -> Iterator[Hub]:
    """A fresh namespace of the hub, with three clusters."""
    with attacked_hub.namespace() as found:
        yield with_three_clusters(found)
