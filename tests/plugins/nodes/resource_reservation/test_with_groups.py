"""A driver in a group that counts its executors: the slots that are reserved for them count until they exist."""

from __future__ import annotations

import dataclasses

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.applications import KUBENEXUS
from stowplan.objects.meta import OwnerReference
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.coscheduling.plugin import Coscheduling
from stowplan.plugins.nodes.resource_reservation.plugin import ResourceReservationPlugin
from stowplan.testing.builders import a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.resource_reservation.reservations import (
    a_driver,
    a_reservation,
    an_executor,
    held,
    profiles,
    told,
)

LABELS = {f"{KUBENEXUS}/name": "gang", f"{KUBENEXUS}/min-available": "5"}


def a_world(*nodes: str) -> World:
    (profile,) = profiles().values()
    points = {**profile.points, "postBind": (*profile.post_binders, EnabledPlugin("Coscheduling", Coscheduling()))}
    return World(nodes=nodes, profiles={"default-scheduler": dataclasses.replace(profile, points=points)})


def grouped(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, labels={**pod.labels, **LABELS})
    return msgspec.structs.replace(pod, metadata=metadata)


def test_a_driver_does_not_wait_for_executors_that_only_it_creates() -> None:
    world = a_world("a", "b")
    world.submit(grouped(a_driver()))
    world.run()
    assert "app-driver" in world.bindings and held(world).total() == 4
    world.submit(grouped(an_executor(1)))
    world.run()
    assert "app-1" in world.bindings and held(world).total() == 3
    world.restart()
    world.submit(*(grouped(an_executor(number)) for number in (2, 3, 4)))
    world.advance(5)
    assert len(world.bindings) == 5 and not held(world)


def test_a_driver_that_says_nothing_is_told_what_would_help() -> None:
    world = a_world("a", "b")
    world.submit(grouped(a_driver(annotations={})))
    world.advance(5)
    assert not world.bindings
    expected = "annotations spark-executor-cpu, spark-executor-mem and spark-executor-count on the driver would reserve"
    assert expected in told(world, "app-driver")


def test_slots_that_count_for_a_group() -> None:
    """The slots that a driver will reserve; once they are reserved, those that are free."""
    world, plugin = a_world("a", "b"), ResourceReservationPlugin()

    def slots_of(pod: Pod) -> int:
        return plugin.slots_of(pod, Cluster(world.scheduler.state))

    left = a_reservation("app", kept=("a", {"cpu": "1"}))
    owner = OwnerReference("Pod", "other-driver", "other", "v1")
    metadata = msgspec.structs.replace(left.metadata, owner_references=(owner,))
    world.submit(msgspec.structs.replace(left, metadata=metadata))
    assert slots_of(a_driver()) == 4, "the slots of another driver are not in force"
    assert slots_of(a_pod()) == 0
    world.delete(left)
    world.submit(a_driver(), an_executor(1))
    world.run()
    assert slots_of(world.pod("app-driver")) == 3
