"""Pods that need resource claims, which nothing allocates yet: they are told so, and they hold up nobody."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.engine.unit import QueueStage
from stowplan.objects.actions import SetCondition
from stowplan.objects.devices import DeviceClass
from stowplan.objects.kinds import convert
from stowplan.objects.meta import Object
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.situations.recorders import attempts, of, where

SAYS = "this scheduler does not allocate resource claims yet"
CLAIM: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
GPU = "example.com/gpu"


def device_class(resource: str | None) -> Object:
    return convert(DeviceClass, {"metadata": {"name": "class"}, "spec": {"extendedResourceName": resource}})


def world_with(*objects: Object) -> World:
    world = World(nodes=[a_node("node", resources={GPU: 1})])
    world.submit(*objects)
    world.run()
    return world


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([a_pod("claims", **CLAIM)], f"{SAYS}, and the pod needs [gpu]", id="a claim in the spec"),
        pytest.param(
            [device_class(GPU), a_pod("claims", requests={GPU: 1})],
            f"{SAYS}, and device classes provide {GPU}, which the pod requests",
            id="an extended resource of a device class",
        ),
    ],
)
def test_the_pod_is_told(objects: list[Object], reason: str) -> None:
    world = world_with(*objects)
    (condition,) = of(world, SetCondition)
    assert (condition.status, condition.reason) == ("False", "Unschedulable")
    assert condition.message.startswith(f"0/1 nodes are available: {reason}.")
    assert world.event_notes("claims", "FailedScheduling") == [condition.message]
    assert reason in world.explain("claims").message


def test_it_does_not_hold_up_others_and_is_not_tried_again_and_again() -> None:
    world = world_with(a_pod("claims", priority=1000, **CLAIM), a_pod("plain"))
    assert set(world.bindings) == {"plain"}
    assert (where(world, "claims"), attempts(world, "claims")) == (QueueStage.UNSCHEDULABLE, 1)
    world.submit(a_node("another", resources={GPU: 8}), a_pod("later"))
    world.delete(world.pod("plain"))
    world.submit(device_class(GPU))
    world.advance(60)
    assert attempts(world, "claims") == 1
    world.advance(300)  # the longest that any pod waits
    assert attempts(world, "claims") == 2


def test_a_pod_with_an_extended_resource_is_tried_again_when_the_class_goes() -> None:
    provided = device_class(GPU)
    world = world_with(provided, a_pod("claims", requests={GPU: 1}))
    assert world.bindings == {}
    world.delete(provided)
    world.advance(60)
    assert world.bindings == {"claims": "node"}
