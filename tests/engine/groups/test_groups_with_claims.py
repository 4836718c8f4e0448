"""Groups whose pods need devices: each its own, or one claim for all."""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.objects.devices import DeviceClass
from stowplan.objects.kinds import convert
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pod_parts import PodResourceClaim
from stowplan.objects.pods import Pod
from stowplan.objects.resource_claims import ResourceClaim
from stowplan.testing.builders import a_node
from stowplan.testing.world import World
from tests.columns.devices.slices_of import DRIVER, a_slice
from tests.engine.groups.test_groups import members
from tests.engine.small_plugins import Gangs, profiles

HALF, WHOLE = 1, 2


def a_partitionable_device(node: str) -> Object:
    """A device of two widgets: to be had as a whole, or as two halves."""

    def part(name: str, widgets: int) -> dict[str, Any]:
        counters = {"widgets": {"value": str(widgets)}}
        return {
            "name": name,
            "attributes": {"widgets": {"int": widgets}},
            "consumesCounters": [{"counterSet": "device", "counters": counters}],
        }

    parts = (part("whole", WHOLE), part("half-0", HALF), part("half-1", HALF))
    counters = [{"name": "device", "counters": {"widgets": {"value": "2"}}}]
    return a_slice(f"{node}-device", *parts, pool=node, nodeName=node, sharedCounters=counters)


def whole_or_half(name: str) -> ResourceClaim:
    def of(widgets: int) -> dict[str, Any]:
        selector = {"cel": {"expression": f'device.attributes["{DRIVER}"].widgets == {widgets}'}}
        return {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, "selectors": [selector]}

    alternatives = [{"name": "whole", **of(WHOLE)}, {"name": "half", **of(HALF)}]
    requests = [{"name": "device", "firstAvailable": alternatives}]
    metadata = {"name": name, "namespace": "default", "uid": f"claim-{name}"}
    return convert(ResourceClaim, {"metadata": metadata, "spec": {"devices": {"requests": requests}}})


def a_class() -> Object:
    return convert(DeviceClass, {"metadata": {"name": "gpu"}})


def world_of_groups(*nodes: Node) -> World:
    return World(nodes=nodes, profiles=profiles(postBind=[Gangs()]))


def with_claims(pods: list[Pod], *names: str) -> list[Pod]:
    return [
        msgspec.structs.replace(
            pod,
            spec=msgspec.structs.replace(
                pod.spec, resource_claims=(PodResourceClaim(name="device", resource_claim_name=name),)
            ),
        )
        for pod, name in zip(pods, names, strict=True)
    ]


def devices_of(world: World, name: str) -> list[str]:
    claim = world.objects["ResourceClaim", f"default/{name}"]
    assert isinstance(claim, ResourceClaim)
    return [] if claim.allocation is None else [each.device for each in claim.allocation.devices.results]


def test_members_share_what_one_of_them_would_take_alone() -> None:
    """kube-scheduler gives the whole device to the first member, and the group never fits (kubernetes#138765)."""
    world = world_of_groups(a_node("node"))
    world.submit(a_class(), a_partitionable_device("node"), whole_or_half("one"), whole_or_half("two"))
    world.submit(*with_claims(members(2, 2), "one", "two"))
    world.run()
    assert len(world.bindings) == 2
    assert sorted(devices_of(world, "one") + devices_of(world, "two")) == ["half-0", "half-1"]


def test_members_with_one_claim_are_placed_together() -> None:
    world = world_of_groups(a_node("first"), a_node("second"))
    world.submit(a_class(), *(a_partitionable_device(name) for name in ("first", "second")), whole_or_half("ours"))
    world.submit(*with_claims(members(3, 3), "ours", "ours", "ours"))
    world.run()
    assert len(set(world.bindings.values())) == 1
    assert len(world.bindings) == 3
    claim = world.objects["ResourceClaim", "default/ours"]
    assert isinstance(claim, ResourceClaim)
    assert len(claim.status.reserved_for) == 3


def test_a_group_that_does_not_fit_leaves_no_device_taken() -> None:
    world = world_of_groups(a_node("node"))
    names = [f"claim-{number}" for number in range(3)]
    world.submit(a_class(), a_partitionable_device("node"), *map(whole_or_half, names))
    world.submit(*with_claims(members(3, 3), *names))
    world.run()
    assert world.bindings == {}
    assert [devices_of(world, name) for name in names] == [[], [], []]
    world.submit(whole_or_half("alone"))
    (alone,) = with_claims(members(1, 1, name="other"), "alone")
    world.submit(alone)
    world.run()
    assert devices_of(world, "alone") == ["whole"]
