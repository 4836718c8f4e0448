"""A new configuration while the engine runs: no pod is lost, and binding cycles are finished."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stowplan.engine.unit import QueueStage
from stowplan.framework.config.settings import Extender
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Ask, Bind, Patch
from stowplan.objects.changes import Result
from stowplan.testing.builders import a_node, a_pod, a_profile
from stowplan.testing.world import World
from tests.engine import life_cycle_worlds

OTHERS = [
    life_cycle_worlds.gated,
    life_cycle_worlds.active,
    life_cycle_worlds.unschedulable,
    life_cycle_worlds.in_backoff,
    life_cycle_worlds.asking,
    life_cycle_worlds.waiting,
]


def renamed(name: str) -> dict[str, Profile]:
    return {name: Profile(name, a_profile().points)}


@pytest.mark.parametrize(
    "begin", [*OTHERS, life_cycle_worlds.pre_binding, life_cycle_worlds.binding], ids=lambda each: each.__name__
)
def test_no_pod_is_lost(begin: Callable[[], World]) -> None:
    world = begin()
    world.adopt({"default-scheduler": a_profile()})
    world.check()
    for late in [each for each in world.actions if isinstance(each, Bind | Patch)]:
        world.complete(late)
    world.answers = life_cycle_worlds.fine
    world.advance(700)
    world.check()
    expected = {} if begin in (life_cycle_worlds.gated, life_cycle_worlds.unschedulable) else {"web"}
    assert set(world.bindings) == set(expected)


@pytest.mark.parametrize("begin", OTHERS, ids=lambda each: each.__name__)
def test_pods_of_a_removed_profile_are_dropped_and_queued_again_when_it_returns(begin: Callable[[], World]) -> None:
    world = begin()
    world.adopt(renamed("another"))
    world.answers = life_cycle_worlds.fine
    world.advance(700)
    world.check()
    assert not world.scheduler.queue.units and not world.bindings
    world.adopt({"default-scheduler": a_profile()})
    assert world.scheduler.queue.units[life_cycle_worlds.UID].stage in (QueueStage.ACTIVE, QueueStage.GATED)


def test_extenders_come_and_go() -> None:
    world = World(nodes=["a", "b"])
    extender = Extender(url_prefix="http://one", filter_verb="filter", node_cache_capable=True)
    world.adopt({"default-scheduler": a_profile()}, extenders=(extender,))
    world.extender = lambda ask: Result(ask.id, body={"NodeNames": ["b"]})
    world.submit(a_pod("web"))
    world.run()
    assert world.bindings == {"web": "b"} and any(isinstance(each, Ask) for each in world.actions)
    world.adopt({"default-scheduler": a_profile()})
    asked = len(life_cycle_worlds.of(world, Ask))
    world.submit(a_pod("other"))
    world.run()
    assert "other" in world.bindings and len(life_cycle_worlds.of(world, Ask)) == asked


def test_new_backoffs_apply_from_now_on() -> None:
    world = World(nodes=["a"])
    world.answers = life_cycle_worlds.refused(Bind, 500)
    world.adopt({"default-scheduler": a_profile()}, initial_backoff=5.0, max_backoff=7.0)
    world.submit(a_node("a"), a_pod("web"))
    world.run()
    assert world.scheduler.next_deadline() == pytest.approx(5.0)
