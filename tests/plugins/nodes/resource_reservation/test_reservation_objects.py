"""ResourceReservation objects over time: written before a driver is bound, or by hand; used, kept up and deleted."""

from __future__ import annotations

from collections import Counter

import msgspec

from stowplan.objects.actions import Action, Bind, Create, Delete, Patch
from stowplan.objects.changes import Result
from stowplan.objects.meta import OwnerReference
from stowplan.objects.reservations import ResourceReservation
from stowplan.testing.builders import a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.resource_reservation.reservations import (
    a_driver,
    a_reservation,
    a_running_app,
    a_world,
    an_executor,
    annotated,
    held,
    needs,
    places,
    reservation,
    rivals,
    told,
)

# -- of drivers


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


# -- written by hand


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
