"""The replay of a journal gives the same actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.objects.actions import Bind
from stowplan.objects.changes import Result
from stowplan.testing.builders import a_node, a_pod, a_profile
from stowplan.testing.journal import replayed
from stowplan.testing.world import World

ZONES = ("a", "b", "c")
SPREAD = {
    "maxSkew": 2,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param(600, id="six hundred pods with churn"),
        pytest.param(10_000, id="ten thousand pods with churn", marks=pytest.mark.full),
    ],
)
def test_a_replay_gives_identical_actions(pods: int) -> None:
    profiles = {"default-scheduler": a_profile()}
    world = World(profiles=profiles, seed=7, checks=False)
    dice = np.random.default_rng(11)
    world.answers = lambda action: Result(action.id, 500 if isinstance(action, Bind) and dice.random() < 0.02 else 200)
    world.submit(*(a_node(f"n{n}", cpu=8, labels={"zone": ZONES[n % 3]}) for n in range(40)))
    for number in range(pods):
        wishes: dict[str, Any] = {"topologySpreadConstraints": [SPREAD]} if number % 5 == 0 else {}
        world.submit(a_pod(f"p{number}", cpu="500m", priority=number % 3, labels={"app": "x"}, **wishes))
        world.advance(0.05)
        if number == pods // 2:
            world.restart()
        bound = [pod for pod in world.pods() if pod.node_name] if number % 20 == 19 else []
        for at in sorted(dice.choice(len(bound), size=min(15, len(bound)), replace=False).tolist()):
            world.delete(bound[at])
    world.advance(30)
    assert sum(isinstance(action, Bind) for action in world.actions) >= pods // 2
    assert replayed(world.journal, profiles, seed=7) == world.actions
