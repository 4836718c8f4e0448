"""ResourceReservation over time: rivals, executors that come, die and move, drivers that end, restarts, failures."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Action, Bind, Create, Delete, Evict, Patch
from stowplan.objects.changes import Result
from stowplan.objects.meta import OwnerReference
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ResourceReservation
from stowplan.testing.builders import a_node, a_pod, a_profile
from stowplan.testing.world import World
from tests.plugins.nodes.resource_reservation.reservations import (
    a_driver,
    a_reservation,
    a_world,
    an_executor,
    annotated,
    held,
    needs,
    places,
    profiles,
    reservation,
    told,
)

NO_SPOTS = "application has no free executor spots to schedule this one"


def a_plain_profile(name: str) -> Profile:
    return a_profile({"profiles": [{"schedulerName": name}]})


def rivals(number: int, **pod: Any) -> list[Pod]:
    return [a_pod(f"rival-{each}", **{"cpu": 1, **pod}) for each in range(number)]


def bound(world: World, prefix: str) -> set[str]:
    return {name for name in world.bindings if name.startswith(prefix)}


def a_running_app(*nodes: Any, annotations: Any = None, **options: Any) -> World:
    world = a_world(*(nodes or ("a", "b")), **options)
    world.submit(a_driver(annotations=annotations))
    world.run()
    assert "app-driver" in world.bindings
    return world


# -- room that is kept


def test_a_rival_gets_what_is_left_and_executors_their_places() -> None:
    world = a_running_app()
    world.submit(*rivals(8))
    world.run()
    assert len(bound(world, "rival")) == 3, "eight cores, one for the driver, four kept"
    world.submit(*(an_executor(number) for number in range(4)))
    world.run()
    assert len(bound(world, "app")) == 5
    assert held(world) == {}


def test_the_object_is_there_before_the_driver_is_bound() -> None:
    world = a_running_app()
    (create,) = (each for each in world.actions if isinstance(each, Create))
    (bind,) = (each for each in world.actions if isinstance(each, Bind))
    assert create.id < bind.id
    assert create.body["metadata"] == {
        "name": "app",
        "namespace": "default",
        "labels": {"scheduling.kubenexus.io/app-id": "app"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "app-driver", "uid": "uid-of-default-app-driver"}
        ],
    }
    assert create.body["apiVersion"] == "scheduling.kubenexus.io/v1alpha1"
    slots = create.body["spec"]["reservations"]
    assert list(slots) == ["driver", "executor-1", "executor-2", "executor-3", "executor-4"]
    assert slots["executor-1"]["resources"] == {"cpu": "1", "memory": "1Gi"}


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


# -- nobody else's business


def test_an_executor_is_not_evicted_for_room_that_stays_reserved() -> None:
    world = a_running_app("a", "b")
    world.submit(*(an_executor(number) for number in range(4)), *rivals(3, priority=5))
    world.run()
    world.submit(a_pod("important", cpu=1, priority=100))
    world.advance(30)
    evicted = {each.pod.name for each in world.actions if isinstance(each, Evict)}
    assert len(evicted) == 1 and not evicted & {f"app-{number}" for number in range(4)}
    assert "important" in world.bindings


def test_nobody_is_evicted_for_a_driver() -> None:
    """Room for one pod can be promised while victims leave; for its executors it could be lost to others."""
    world = a_world("a", "b")
    world.submit(*rivals(8))
    world.run()
    world.submit(a_driver(annotations=needs(2), priority=10), a_driver("lone", annotations=needs(0), priority=10))
    world.advance(30)
    assert "preemption: not eligible due to executors that need room as well." in told(world, "app-driver")
    assert sum(isinstance(each, Evict) for each in world.actions) == 1 and "lone-driver" in world.bindings


def test_hand_written_reservations() -> None:
    world = a_world("a", "b")
    world.submit(a_reservation(one=("a", {"cpu": 3}), two=("b", {"cpu": 4})))
    world.submit(*rivals(3))
    world.run()
    assert set(world.bindings.values()) == {"a"} and len(world.bindings) == 1
    label = {"scheduling.kubenexus.io/app-id": "kept"}
    world.submit(a_pod("by-label", cpu=3, labels=label))
    mine = annotated(a_pod("by-annotation", cpu=4), **{"scheduling.kubenexus.io/reservation": "kept"})
    world.submit(mine)
    world.advance(2)
    assert world.bindings["by-label"] == "a" and world.bindings["by-annotation"] == "b"
    found = reservation(world, "kept")
    assert found is not None
    assert found.status.pods == {"one": "by-label", "two": "by-annotation"}
    assert (found.status.reserved, found.status.taken) == (2, 2)


def test_room_of_a_reservation_that_is_deleted_wakes_those_who_wait() -> None:
    world = a_world("a")
    world.submit(kept := a_reservation(one=("a", {"cpu": 4})), a_pod("web", cpu=1))
    world.run()
    assert not world.bindings
    world.delete(kept)
    world.advance(10)
    assert world.bindings == {"web": "a"}


def test_an_unused_reservation_goes_after_its_time() -> None:
    world = a_world("a")
    world.submit(a_reservation(ttl=60, one=("a", {"cpu": 4})))
    world.advance(59)
    assert reservation(world, "kept") is not None
    user = a_pod("user", cpu=1, labels={"scheduling.kubenexus.io/app-id": "kept"})
    world.submit(user)
    world.advance(100)
    assert reservation(world, "kept") is not None, "somebody uses it"
    world.delete(world.pod("user"))
    world.advance(59)
    assert reservation(world, "kept") is not None
    world.advance(3)
    assert reservation(world, "kept") is None


def test_a_reservation_that_cannot_be_used_says_so() -> None:
    world = a_world("a")
    made = a_reservation(one=("a", {"cpu": "much"}))
    world.submit(made)
    world.advance(2)
    found = reservation(world, "kept")
    assert found is not None
    (active,) = (each for each in found.status.conditions if each.type == "ReservationActive")
    assert (active.status, active.reason) == ("False", "Invalid")
    assert active.message.startswith("spec.reservations.one.resources.cpu: expected a quantity")


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


def test_an_owner_that_is_heard_of_later_than_its_reservation() -> None:
    world = a_world("a")
    made = a_reservation(one=("a", {"cpu": 1}))
    owner = OwnerReference("Pod", "late", "uid-of-default-late", "v1")
    metadata = msgspec.structs.replace(made.metadata, owner_references=(owner,))
    world.submit(msgspec.structs.replace(made, metadata=metadata))
    world.advance(2)
    world.submit(a_pod("late", cpu=1, labels={"scheduling.kubenexus.io/app-id": "kept"}))
    world.advance(10)
    assert reservation(world, "kept") is not None
    world.delete(world.pod("late"))
    world.advance(2)
    assert reservation(world, "kept") is None


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


# -- what may go wrong


def test_a_reservation_that_cannot_be_written_binds_nobody_and_keeps_nothing() -> None:
    world = a_world("a", "b")
    world.answers = lambda action: Result(action.id, 403 if isinstance(action, Create) else 200, "forbidden")
    world.submit(a_driver())
    world.run()
    assert not world.bindings and held(world) == {}
    assert 'running PreBind plugin "ResourceReservation": forbidden' in told(world, "app-driver")
    world.answers = World.succeed
    world.advance(20)
    assert "app-driver" in world.bindings and held(world).total() == 4


def test_a_driver_whose_binding_failed_is_tried_again_with_the_same_object() -> None:
    world = a_world("a", "b")
    refused: list[Action] = []

    def once(action: Action) -> Result:
        if isinstance(action, Bind) and not refused:
            refused.append(action)
            return Result(action.id, 500, "no")
        return Result(action.id)

    world.answers = once
    world.submit(a_driver())
    world.run()
    assert held(world) == {} and reservation(world) is not None, "what is only written holds nothing"
    world.advance(20)
    assert "app-driver" in world.bindings and held(world).total() == 4
    writes = [type(each) for each in world.actions if isinstance(each, Create | Patch) and "status" not in each.body]
    assert writes == [Create, Patch]


def test_killed_between_the_object_and_the_binding() -> None:
    world = a_world("a", "b")
    world.answers = lambda action: None if isinstance(action, Bind) else Result(action.id)
    world.submit(a_driver())
    world.run()
    assert reservation(world) is not None and not world.bindings
    world.answers = World.succeed
    world.restart()
    world.advance(5)
    assert "app-driver" in world.bindings and held(world).total() == 4
    assert places(world).total() == 5


def test_a_driver_of_the_same_application_waits_for_the_end_of_the_first() -> None:
    world = a_running_app()
    second = msgspec.structs.replace(a_driver(), metadata=msgspec.structs.replace(
        a_driver().metadata, name="second", uid="second"
    ))  # fmt: skip
    world.submit(second)
    world.run()
    expected = "0/2 nodes are available: ResourceReservation app is there and belongs to pod app-driver."
    assert told(world, "second").startswith(expected)
    world.delete(world.pod("app-driver"))
    world.advance(20)
    assert "second" in world.bindings
    found = reservation(world)
    assert found is not None and found.owner == "second"


def test_a_name_that_objects_may_not_have() -> None:
    world = a_world("a", "b")
    driver = a_driver("App_1", annotations=needs(1))
    world.submit(msgspec.structs.replace(driver, metadata=msgspec.structs.replace(driver.metadata, name="d")))
    world.run()
    (found,) = (each for each in world.objects.values() if isinstance(each, ResourceReservation))
    assert found.name.startswith("app-1-")
    world.submit(an_executor(1, "App_1"))
    world.run()
    assert len(world.bindings) == 2 and not held(world)


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


def test_upkeep_writes_only_what_changed() -> None:
    world = a_running_app()
    world.advance(10)
    before = len(world.actions)
    world.submit(a_pod("stranger", cpu="1m"))
    world.advance(10)
    assert not [each for each in world.actions[before:] if isinstance(each, Patch | Delete | Create)]
    world.submit(an_executor(1))
    world.advance(10)
    assert sum(isinstance(each, Patch) for each in world.actions[before:]) == 1
    assert Counter(type(each).__name__ for each in world.actions)["Delete"] == 0
