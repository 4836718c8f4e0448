"""Many pods with claims of their own and shared ones, and everything that can go wrong, drawn at random."""

from __future__ import annotations

import random

import pytest

from stowplan.objects.actions import Action, Bind, Patch
from stowplan.objects.changes import Result
from stowplan.objects.storage import SELECTED_NODE, PersistentVolumeClaim
from stowplan.testing.world import World
from tests.engine.binding.storage import a_claim, a_user, a_volume, a_world, change, control
from tests.engine.small_plugins import Gangs, profiles


def submit(world: World, draw: random.Random, number: int) -> None:
    shared, kind = draw.random() < 0.3, draw.choice(["local", "made"])
    claim = f"shared-{draw.randrange(3)}" if shared else f"own-{number}"
    if ("PersistentVolumeClaim", f"default/{claim}") not in world.objects:
        world.submit(a_claim(claim, kind))
    labels = {"gang": f"g{draw.randrange(2)}", "min": "2"} if draw.random() < 0.3 else {}
    world.submit(a_user(f"pod-{number}", claim, labels=labels))
    if draw.random() < 0.6:
        world.submit(a_volume(f"disk-{number}", draw.choice(["", "a", "b", "c"])))


def disturb(world: World, draw: random.Random) -> None:
    match draw.randrange(6):
        case 0:
            world.restart()
        case 1:
            world.delete(draw.choice([pod for pod in world.pods() if not pod.node_name] or [a_user("none")]))
        case 2:
            claims = [each for each in world.objects.values() if isinstance(each, PersistentVolumeClaim)]
            unbound = [each for each in claims if not each.bound]
            if unbound:
                body = {"metadata": {"annotations": {SELECTED_NODE: None, "tried": "yes"}}}
                change(world, "PersistentVolumeClaim", draw.choice(unbound).key, body)
        case 3:
            world.advance(draw.choice([1, 40, 650]))
        case _:
            control(world)


@pytest.mark.parametrize("seed", range(12))
def test_all_is_bound_in_the_end_and_nothing_is_left_behind(seed: int) -> None:
    draw = random.Random(seed)
    world = a_world("a", "b", "c", profiles=profiles(postBind=[Gangs()]))

    def answers(action: Action) -> Result | None:
        luck = draw.random() if isinstance(action, Patch | Bind) else 1.0
        if luck < 0.1:
            return None
        return Result(action.id, draw.choice([409, 500]), "no") if luck < 0.3 else Result(action.id)

    world.answers = answers
    for number in range(25):
        submit(world, draw, number)
        world.run()
        disturb(world, draw)
        world.check()
    world.answers = lambda action: Result(action.id)
    for at in range(25):
        world.submit(a_volume(f"plenty-{at}"))
    for _ in range(6):
        world.advance(400)
        control(world)
    left = [pod for pod in world.pods() if not pod.node_name]
    assert all("gang" in pod.labels for pod in left) and not world.scheduler.assumed_pods
    assert not world.scheduler.state.assumed.holders() and not world.scheduler.state.assumed._objects
