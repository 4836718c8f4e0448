"""A driver in a group that counts its executors: the slots that are reserved for them count until they exist."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.applications import KUBENEXUS
from stowplan.objects.errors import ConfigError
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
    bound,
    held,
    profiles,
    rivals,
)

LABELS = {f"{KUBENEXUS}/name": "gang", f"{KUBENEXUS}/min-available": "5"}


def a_world(*nodes: str, **arguments: Any) -> World:
    (profile,) = profiles(**arguments).values()
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


# -- the two labels alone, without annotations: all pods of the group's number but the driver are executors


def test_the_two_labels_alone_are_enough() -> None:
    world = a_world("a", "b")
    world.submit(grouped(a_driver(annotations={})))
    world.run()
    assert "app-driver" in world.bindings and held(world).total() == 4
    world.submit(*rivals(8))
    world.run()
    assert len(bound(world, "rival")) == 3, "the others leave the room of the executors alone"
    world.restart()
    world.submit(*(grouped(an_executor(number)) for number in range(4)))
    world.advance(5)
    assert len(bound(world, "app")) == 5 and not held(world)


def test_each_executor_is_taken_to_be_as_large_as_the_driver() -> None:
    world = a_world("a", "b")
    world.submit(*rivals(4))
    world.run()
    world.submit(grouped(a_driver(annotations={})))
    world.run()
    assert "app-driver" not in world.bindings, "four CPUs are free, five are needed"
    world.delete(world.pod("rival-0"))
    world.advance(15)
    assert "app-driver" in world.bindings and held(world).total() == 4


def test_executors_beyond_the_number_get_nodes_like_other_pods() -> None:
    world = a_world("a", "b")
    world.submit(grouped(a_driver(annotations={})), *(grouped(an_executor(number)) for number in range(6)))
    world.advance(15)
    assert len(bound(world, "app")) == 7 and not held(world)


def test_no_executor_gets_a_node_without_its_driver() -> None:
    """The driver's slots count as members of the group; but only with the driver."""
    world = a_world("a", "b")
    world.submit(*rivals(4), grouped(a_driver(annotations={})), *(grouped(an_executor(number)) for number in range(4)))
    world.advance(30)
    assert not bound(world, "app")
    world.delete(world.pod("rival-0"))
    world.advance(30)
    assert len(bound(world, "app")) == 5


def test_the_size_of_executors_can_be_configured() -> None:
    world = a_world("a", "b", executorResources={"cpu": "500m", "memory": "512Mi"})
    world.submit(*rivals(5), grouped(a_driver(annotations={})))
    world.run()
    assert "app-driver" in world.bindings
    assert {amounts["cpu"] for _, amounts in world.scheduler.state.held.values()} == {500}


def test_switched_off_a_driver_that_says_nothing_is_told_what_would_help() -> None:
    world = a_world("a", "b", executorsFromGroup=False)
    world.submit(grouped(a_driver(annotations={})))
    world.advance(5)
    assert not world.bindings
    (note,) = world.event_notes("app-driver", "FailedScheduling")
    assert "1 of 5 pods exist (a driver creates its executors when it runs:" in note
    assert "spark-executor-cpu, spark-executor-mem and spark-executor-count, or with executorsFromGroup" in note


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param({"executorsFromGroup": "yes"}, "executorsFromGroup", id="no truth value"),
        pytest.param({"executorResources": {"cpu": "one"}}, "executorResources.cpu", id="no quantity"),
        pytest.param({"executorResources": {"cpu": "-1"}}, "executorResources.cpu", id="a negative quantity"),
        pytest.param({"executorResources": ["cpu"]}, "executorResources", id="no resources"),
    ],
)
def test_arguments_that_are_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        profiles(**given)


# -- slots


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
