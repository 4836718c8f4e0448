"""Pods with resource claims, from the claim to the binding: who gets which devices, and what happens if it fails."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from stowplan.objects.actions import Action, AllocateClaims, DeallocateClaim, ReleaseClaims, SetCondition
from stowplan.objects.changes import Result
from stowplan.objects.devices import DeviceClass
from stowplan.objects.kinds import convert
from stowplan.objects.meta import Object
from stowplan.objects.resource_claims import ResourceClaim
from stowplan.objects.resource_slices import ResourceSlice
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.situations.recorders import of

GPU = "example.com/gpu"


def a_class(resource: str | None = None) -> Object:
    selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    return convert(
        DeviceClass, {"metadata": {"name": "gpu"}, "spec": {"selectors": [selector], "extendedResourceName": resource}}
    )


def a_slice(node: str, devices: int = 2, **spec: Any) -> Object:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": f"gpu-{number}", **spec} for number in range(devices)]
    of_node = {"driver": "gpu.example.com", "pool": pool, "nodeName": node, "devices": listed}
    return convert(ResourceSlice, {"metadata": {"name": f"{node}-gpu"}, "spec": of_node})


def a_claim(name: str, count: int = 1) -> ResourceClaim:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    requests = [{"name": "gpus", "exactly": exactly}]
    metadata = {"name": name, "namespace": "default", "uid": f"claim-{name}"}
    return convert(ResourceClaim, {"metadata": metadata, "spec": {"devices": {"requests": requests}}})


def with_claim(name: str, claim: str, **fields: Any) -> Object:
    return a_pod(name, resourceClaims=[{"name": "devices", "resourceClaimName": claim}], **fields)


def a_world(*objects: Object, nodes: int = 1, devices: int = 2) -> World:
    names = [f"node-{number}" for number in range(nodes)]
    world = World(nodes=[a_node(name) for name in names])
    world.submit(a_class(), *(a_slice(name, devices) for name in names), *objects)
    world.run()
    return world


def claim_of(world: World, name: str) -> ResourceClaim:
    found = world.objects["ResourceClaim", f"default/{name}"]
    assert isinstance(found, ResourceClaim)
    return found


def devices_of(world: World, name: str) -> list[str]:
    allocation = claim_of(world, name).allocation
    return [] if allocation is None else [each.device for each in allocation.devices.results]


def test_a_claim_is_allocated_and_reserved_before_the_pod_is_bound() -> None:
    world = a_world(a_claim("mine"), with_claim("pod", "mine"))
    assert world.bindings == {"pod": "node-0"}
    claim = claim_of(world, "mine")
    assert devices_of(world, "mine") == ["gpu-0"]
    assert [each.name for each in claim.status.reserved_for] == ["pod"]
    assert claim.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert claim.allocation is not None
    assert claim.allocation.allocation_timestamp is not None


def test_no_device_is_given_to_two_claims() -> None:
    pods = [with_claim(f"pod-{number}", f"claim-{number}") for number in range(5)]
    world = a_world(*(a_claim(f"claim-{number}") for number in range(5)), *pods, nodes=2)
    assert len(world.bindings) == 4
    given = [(world.bindings[f"pod-{number}"], *devices_of(world, f"claim-{number}")) for number in range(4)]
    assert len(set(given)) == 4
    assert devices_of(world, "claim-4") == []


def test_two_pods_share_a_claim_on_one_node() -> None:
    world = a_world(a_claim("ours"), with_claim("one", "ours"), nodes=3)
    world.submit(with_claim("two", "ours"))
    world.run()
    assert world.bindings["one"] == world.bindings["two"]
    assert [each.name for each in claim_of(world, "ours").status.reserved_for] == ["one", "two"]


def test_a_pod_waits_for_its_claim_and_goes_on_when_it_is_there() -> None:
    world = a_world(with_claim("pod", "late"))
    assert world.bindings == {}
    gated_by = world.scheduler.queue.find(world.pod("pod").uid).queued.gated_by  # type: ignore[union-attr]
    assert gated_by is not None
    assert gated_by.reasons == ('could not find ResourceClaim "default/late"',)
    world.submit(a_claim("late"))
    world.advance(20)
    assert world.bindings == {"pod": "node-0"}


def test_a_claim_that_no_node_can_satisfy_is_told_as_by_kube_scheduler() -> None:
    world = a_world(a_claim("mine", count=3), with_claim("pod", "mine"))
    (condition,) = of(world, SetCondition)
    told = "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, "
    assert (condition.status, condition.reason) == ("False", "Unschedulable")
    assert condition.message.startswith(told)
    assert world.event_notes("pod", "FailedScheduling") == [condition.message]
    world.submit(a_slice("node-0", 3))
    world.advance(20)
    assert world.bindings == {"pod": "node-0"}


def test_an_expression_that_fails_is_an_error_of_the_cycle() -> None:
    bad = {"cel": {"expression": 'device.attributes["gpu.example.com"].model == "a"'}}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, "selectors": [bad]}
    claim = convert(
        ResourceClaim,
        {
            "metadata": {"name": "mine", "namespace": "default", "uid": "claim-mine"},
            "spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}},
        },
    )
    world = a_world(claim, with_claim("pod", "mine"))
    condition = of(world, SetCondition)[-1]
    assert condition.reason == "SchedulerError"
    problem = "claim default/mine: selector #0: CEL runtime error: no such key: model"
    assert condition.message == f'running "DynamicResources" filter plugin: {problem}'


@pytest.mark.parametrize("status", [pytest.param(403, id="refused"), pytest.param(500, id="failed")])
def test_devices_are_free_again_if_the_claim_cannot_be_written(status: int) -> None:
    world = World(nodes=[a_node("node-0")])
    refused: list[Action] = []

    def answers(action: Action) -> Result | None:
        if isinstance(action, AllocateClaims) and not refused:
            refused.append(action)
            return Result(action.id, status, "no")
        return World.succeed(action)

    world.answers = answers
    world.submit(a_class(), a_slice("node-0", 1), a_claim("first"), a_claim("second"), with_claim("one", "first"))
    world.run()
    assert world.bindings == {}
    world.submit(with_claim("two", "second"))
    world.run()
    assert world.bindings == {"two": "node-0"}
    assert devices_of(world, "first") == []


def test_a_pod_that_is_not_bound_gives_its_reservation_back() -> None:
    world = a_world(a_claim("mine"))
    world.fail_next_binding(422)
    world.submit(with_claim("pod", "mine"))
    world.run()
    assert of(world, ReleaseClaims)
    world.advance(30)
    assert world.bindings == {"pod": "node-0"}
    assert [each.name for each in claim_of(world, "mine").status.reserved_for] == ["pod"]


def test_a_claim_on_a_node_without_room_is_deallocated() -> None:
    world = a_world(a_claim("mine"), with_claim("first", "mine"), nodes=1)
    claim = claim_of(world, "mine")
    world.delete(world.pod("first"))
    world.delete(a_node("node-0"))
    world.submit(convert(ResourceClaim, _unreserved(claim)), a_node("node-1"), a_slice("node-1"))
    world.submit(with_claim("second", "mine"))
    world.run()
    assert of(world, DeallocateClaim)
    world.advance(30)
    assert world.bindings["second"] == "node-1"


def _unreserved(claim: ResourceClaim) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(msgspec.json.encode(claim, enc_hook=str))
    plain["status"].pop("reservedFor")
    return plain


def test_devices_stand_for_an_extended_resource() -> None:
    world = World(nodes=[a_node("node-0")])
    world.submit(a_class(GPU), a_slice("node-0", 2), *(a_pod(f"pod-{n}", requests={GPU: 1}) for n in range(3)))
    world.run()
    assert len(world.bindings) == 2
    made = [found for (kind, _), found in world.objects.items() if kind == "ResourceClaim"]
    given = {
        each.device
        for claim in made
        if isinstance(claim, ResourceClaim) and claim.allocation is not None
        for each in claim.allocation.devices.results
    }
    assert given == {"gpu-0", "gpu-1"}


def test_a_device_of_an_extended_resource_is_free_again_when_its_pod_is_gone() -> None:
    world = World(nodes=[a_node("node-0")])
    world.submit(
        a_class(GPU), a_slice("node-0", 1), a_pod("first", requests={GPU: 1}), a_pod("second", requests={GPU: 1})
    )
    world.run()
    (bound,) = world.bindings
    (made,) = [found for (kind, _), found in world.objects.items() if kind == "ResourceClaim"]
    world.delete(world.pod(bound))
    world.delete(made)  # as the garbage collector does; as in kube-scheduler, that wakes nobody
    world.run()
    world.advance(400)
    (other,) = {"first", "second"} - {bound}
    assert world.bindings.get(other) == "node-0"


def test_a_pod_waits_for_devices_that_must_be_prepared() -> None:
    world = World(nodes=[a_node("node-0")])
    prepared = {"bindingConditions": ["example.com/ready"], "bindingFailureConditions": ["example.com/failed"]}
    world.submit(a_class(), a_slice("node-0", 1, **prepared), a_claim("mine"), with_claim("pod", "mine"))
    world.run()
    assert world.bindings == {}
    (note,) = world.event_notes("pod", "BindingConditionsPending")
    assert note == "waiting for binding conditions for device on node node-0"
    world.submit(_reporting(claim_of(world, "mine"), "example.com/ready"))
    world.run()
    assert world.bindings == {"pod": "node-0"}


def _reporting(claim: ResourceClaim, condition: str) -> Object:
    plain: dict[str, Any] = json.loads(msgspec.json.encode(claim, enc_hook=str))
    (device,) = plain["status"]["allocation"]["devices"]["results"]
    told = {"type": condition, "status": "True", "reason": "Set", "message": ""}
    place = {key: device[key] for key in ("driver", "pool", "device")}
    plain["status"]["devices"] = [{**place, "conditions": [told]}]
    return convert(ResourceClaim, plain)


def test_devices_stay_taken_while_the_claim_is_written() -> None:
    """A claim is written twice. The first write, of the finalizer, does not free what the second will allocate."""
    world = World(nodes=[a_node("node-0")])
    held: list[Action] = []

    def answers(action: Action) -> Result | None:
        if isinstance(action, AllocateClaims) and not held:
            held.append(action)
            return None
        return World.succeed(action)

    world.answers = answers
    world.submit(a_class(), a_slice("node-0", 1), a_claim("first"), with_claim("one", "first"))
    world.run()
    finalized = claim_of(world, "first")
    metadata = msgspec.structs.replace(finalized.metadata, finalizers=("resource.kubernetes.io/delete-protection",))
    world.submit(msgspec.structs.replace(finalized, metadata=metadata))
    world.submit(a_claim("second"), with_claim("two", "second"))
    world.run()
    assert world.bindings == {}
    assert devices_of(world, "second") == []
    world.complete(held[0])
    world.run()
    assert world.bindings == {"one": "node-0"}
