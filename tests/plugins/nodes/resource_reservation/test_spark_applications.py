"""Spark applications over time: rivals for their room, executors that come, die and move, drivers that end, restarts.

The objects that keep the room are in `test_reservation_objects.py`.
"""

from __future__ import annotations

import msgspec
import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Evict
from stowplan.testing.builders import a_node, a_pod, a_profile
from stowplan.testing.world import World
from tests.plugins.nodes.resource_reservation.reservations import (
    a_driver,
    a_running_app,
    a_world,
    an_executor,
    bound,
    held,
    needs,
    places,
    profiles,
    reservation,
    rivals,
    told,
)

NO_SPOTS = "application has no free executor spots to schedule this one"


def a_plain_profile(name: str) -> Profile:
    return a_profile({"profiles": [{"schedulerName": name}]})


# -- room for executors


def test_a_rival_gets_what_is_left_and_executors_their_places() -> None:
    world = a_running_app()
    world.submit(*rivals(8))
    world.run()
    assert len(bound(world, "rival")) == 3, "eight cores, one for the driver, four kept"
    world.submit(*(an_executor(number) for number in range(4)))
    world.run()
    assert len(bound(world, "app")) == 5
    assert held(world) == {}


def test_an_executor_too_many() -> None:
    """The reference's two executors: a third is refused; when one has ended the newcomer takes its place."""
    world = a_running_app(annotations=needs(2))
    world.submit(*(an_executor(number) for number in range(3)))
    world.run()
    (refused,) = {"app-0", "app-1", "app-2"} - set(world.bindings)
    assert told(world, refused).startswith(f"0/2 nodes are available: {NO_SPOTS}.")
    gone = next(name for name in world.bindings if name != "app-driver")
    place = world.bindings[gone]
    world.submit(
        msgspec.structs.replace(world.pod(gone), status=msgspec.structs.replace(world.pod(gone).status, phase="Failed"))
    )
    world.advance(15)
    assert world.bindings[refused] == place


def test_dynamic_allocation() -> None:
    """One place is kept, two more executors are let in where there is room, the fourth is refused."""
    world = a_running_app(annotations=needs(least=1, most=3))
    world.submit(*rivals(5))
    world.run()
    assert len(bound(world, "rival")) == 5 and held(world).total() == 1
    world.submit(an_executor(1))
    world.run()
    assert len(bound(world, "app")) == 2 and not held(world)
    world.submit(an_executor(2), an_executor(3))
    world.run()
    assert len(bound(world, "app")) == 3, "no room is kept for extra executors"
    world.delete(world.pod("rival-0"))
    world.advance(15)
    assert len(bound(world, "app")) == 4
    world.submit(an_executor(4))
    world.delete(world.pod("rival-1"))
    world.advance(15)
    assert told(world, "app-4").startswith(f"0/2 nodes are available: {NO_SPOTS}.")


def test_a_kept_place_is_filled_before_a_new_extra_one() -> None:
    world = a_running_app(annotations=needs(least=1, most=3))
    world.submit(an_executor(1))
    world.run()
    world.submit(an_executor(2))
    world.run()
    place = world.bindings["app-1"]
    world.delete(world.pod("app-1"))
    world.run()
    assert held(world) == {place: 1} and world.bindings["app-2"] != place
    world.submit(an_executor(3))
    world.run()
    assert held(world) == {}
    world.submit(an_executor(4))
    world.run()
    assert len(bound(world, "app")) == 4, "the driver, the kept place, two extra ones"


def test_an_executor_larger_than_its_place_goes_elsewhere_and_the_place_with_it() -> None:
    world = a_running_app("a", "b")
    world.submit(a_node("c", cpu=8), an_executor(1, cpu=5))
    world.run()
    assert world.bindings["app-1"] == "c" and held(world).total() == 3
    world.advance(3)
    assert places(world)["c"] == 1 and places(world).total() == 5, "the object says so, too"
    world.restart()
    assert held(world).total() == 3
    world.delete(world.pod("app-1"))
    world.run()
    assert held(world)["c"] == 1, "its place is there now"


def test_an_executor_whose_node_is_gone_takes_its_place_along() -> None:
    world = a_running_app("a", "b", "c")
    (node, *_) = (name for name in held(world) if name != world.bindings["app-driver"])
    number = held(world)[node]
    world.delete(world.objects["Node", node])
    world.submit(*(an_executor(each) for each in range(4)))
    world.advance(3)
    assert len(bound(world, "app")) == 5
    assert places(world)[node] == 0 and places(world).total() == 5
    assert number and held(world) == {}


def test_profiles_without_the_plugin_respect_it_too() -> None:
    named = {**profiles(), "plain": a_plain_profile("plain")}
    world = World(nodes=["a", "b"], profiles=named)
    world.submit(a_driver(), *rivals(8, schedulerName="plain"))
    world.run()
    assert "app-driver" in world.bindings and len(bound(world, "rival")) == 3


def test_what_people_who_watch_see() -> None:
    world = a_running_app()
    world.submit(an_executor(1))
    world.run()
    plugin = world.scheduler.profiles["default-scheduler"].plugin("ResourceReservation")
    assert plugin is not None
    figures = {each.name: each.value for each in plugin.gauges(Cluster(world.scheduler.state))}
    assert figures == {
        "reserved_places_free": 3,
        "reserved_cpu_free_cores": 3.0,
        "reserved_memory_free_bytes": 3 << 30,
    }


# -- preemption


def test_an_executor_is_not_evicted_for_room_that_stays_reserved() -> None:
    world = a_running_app("a", "b")
    world.submit(*(an_executor(number) for number in range(4)), *rivals(3, priority=5))
    world.run()
    world.submit(a_pod("important", cpu=1, priority=100))
    world.advance(30)
    evicted = {each.pod.name for each in world.actions if isinstance(each, Evict)}
    assert len(evicted) == 1 and not evicted & {f"app-{number}" for number in range(4)}
    assert "important" in world.bindings


def test_a_driver_without_executors_preempts_like_any_pod() -> None:
    """With executors: `test_preemption`."""
    world = a_world("a", "b")
    world.submit(*rivals(8))
    world.run()
    world.submit(a_driver("lone", annotations=needs(0), priority=10))
    world.advance(30)
    assert sum(isinstance(each, Evict) for each in world.actions) == 1 and "lone-driver" in world.bindings


# -- the end


@pytest.mark.parametrize("how", ["deleted", "succeeded"])
def test_the_drivers_end_frees_everything(how: str) -> None:
    world = a_running_app()
    world.submit(an_executor(1), *rivals(8))
    world.run()
    driver = world.pod("app-driver")
    if how == "deleted":
        world.delete(driver)
    else:
        status = msgspec.structs.replace(driver.status, phase="Succeeded")
        world.submit(msgspec.structs.replace(driver, status=status))
    assert held(world) == {}
    world.advance(5)
    assert reservation(world) is None
    world.advance(10)
    assert len(bound(world, "rival")) == 7, "what was the driver's, and what was kept"


def test_a_driver_that_ended_while_nobody_looked() -> None:
    world = a_running_app()
    driver = world.pod("app-driver")
    del world.objects["Pod", driver.key]
    world.restart()
    assert held(world) == {}
    world.advance(2)
    assert reservation(world) is not None, "the driver may only be late"
    world.advance(2)
    assert reservation(world) is None


def test_restarts_change_nothing() -> None:
    world = a_running_app()
    world.submit(an_executor(1), *rivals(8))
    world.run()
    before, there = held(world), dict(world.bindings)
    for _ in range(3):
        world.restart()
        world.advance(3)
        assert held(world) == before and world.bindings == there
    world.submit(*(an_executor(number) for number in range(2, 5)))
    world.advance(3)
    assert len(bound(world, "app")) == 5 and not held(world)
