"""Without an attack both programs are unharmed: else the other tests of this folder would say nothing."""

from __future__ import annotations

import pytest

from tests.attacks.survivor import decides_unharmed, unharmed
from tests.controlplane.place_process import Hub
from tests.controlplane.plane import ControlPlane
from tests.controlplane.served_hub import ServedHub
from tests.controlplane.stowplan_process import Stowplan

pytestmark = pytest.mark.controlplane


def test_nothing_happens_to_the_scheduler(plane: ControlPlane, namespace: str, attacked: Stowplan) -> None:
    with unharmed(plane, namespace, attacked):
        pass


def test_nothing_happens_to_placements(hub: Hub, attacked_hub: ServedHub) -> None:
    with decides_unharmed(hub, attacked_hub.program):
        pass
