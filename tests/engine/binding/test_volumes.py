"""Pods with claims that are bound after a node is chosen: what is written for the volumes, and what is waited for.

One pod, several pods that share, groups; and a scheduler that starts again while pods wait. What goes wrong is in
`test_volume_failures.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.objects.actions import Patch
from stowplan.objects.changes import Result
from stowplan.objects.storage import SELECTED_NODE
from stowplan.testing.builders import a_profile
from stowplan.testing.world import World
from tests.engine.binding.storage import (
    BOTH,
    a_claim,
    a_host,
    a_user,
    a_volume,
    a_world,
    bind,
    body,
    change,
    claim,
    control,
    dynamic,
    patches,
    provision,
    stage,
    static,
    step,
)
from tests.engine.small_plugins import Gangs, Patience, profiles

# -- the good ways


def test_an_existing_volume_is_given_to_the_claim_and_awaited() -> None:
    world = static()
    (patch,) = patches(world)
    assert (patch.kind, patch.key) == ("PersistentVolume", "disk")
    assert body(patch)["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    named = body(patch)["spec"]["claimRef"]
    assert (named["kind"], named["apiVersion"], named["namespace"], named["name"], named["uid"]) == (
        "PersistentVolumeClaim", "v1", "default", "data", "uid-of-data",
    )  # fmt: skip
    assert named["resourceVersion"] == claim(world).metadata.resource_version
    assert step(world) is BindStep.PRE_BINDING and world.pod("web").nominated_node == "a"
    world.advance(599)
    assert not world.bindings
    bind(world, "data", "disk")
    world.run()
    assert world.bindings == {"web": "a"}


def test_a_volume_is_made_on_the_chosen_node() -> None:
    world = dynamic()
    (patch,) = patches(world)
    assert (patch.kind, patch.key) == ("PersistentVolumeClaim", "default/data")
    assert body(patch)["metadata"]["annotations"] == {SELECTED_NODE: "a"}
    assert body(patch)["metadata"]["resourceVersion"] and claim(world).annotations[SELECTED_NODE] == "a"
    world.advance(30)
    assert step(world) is BindStep.PRE_BINDING
    provision(world, "data", "a")
    world.run()
    assert world.bindings == {"web": "a"} and len(patches(world)) == 1


def test_a_claim_that_is_bound_to_an_unknown_volume_is_awaited() -> None:
    world = dynamic()
    body: dict[str, Any] = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    change(world, "PersistentVolumeClaim", "default/data", {**body, "spec": {"volumeName": "new"}})
    world.run()
    assert step(world) is BindStep.PRE_BINDING
    world.submit(a_volume("new", "a"))
    world.run()
    assert world.bindings == {"web": "a"}


def test_claims_of_both_kinds_and_one_that_is_mounted_twice() -> None:
    world = a_world("a")
    world.submit(a_claim("one", "made"), a_claim("two"), a_volume("disk"), a_volume("spare"))
    world.submit(a_user("web", "one", "two", "two"))
    world.run()
    assert [each.key for each in patches(world)] == ["disk", "default/one"]
    control(world)
    assert world.bindings == {"web": "a"}


# -- one volume, one claim, several pods


def test_of_two_pods_with_one_volume_between_them_one_gets_it() -> None:
    world = a_world()
    world.submit(a_claim("one"), a_claim("two"), a_volume("disk"))
    world.answers = lambda action: None if isinstance(action, Patch) else Result(action.id)
    world.submit(a_user("first", "one"), a_user("second", "two"))
    world.run()
    (placed,) = world.scheduler.assumed_pods.values()
    assert len(patches(world)) == 1
    other = "second" if placed.pod.name == "first" else "first"
    assert "didn't find available persistent volumes" in world.event_notes(other, "FailedScheduling")[-1]
    world.answers = lambda action: Result(action.id)
    world.delete(placed.pod)  # its patch was never carried out: the volume is free again, and the other one hears of it
    world.advance(2)
    assert step(world, other) is BindStep.PRE_BINDING
    control(world)
    assert set(world.bindings) == {other}


def test_pods_that_share_a_claim_agree_on_the_node_and_write_it_once() -> None:
    world = a_world()
    world.submit(a_claim("data", "made"))
    world.answers = lambda action: None if isinstance(action, Patch) else Result(action.id)
    world.submit(*(a_user(f"pod-{at}", "data") for at in range(4)))
    world.run()
    nodes = {each.node_name for each in world.scheduler.assumed_pods.values()}
    assert len(world.scheduler.assumed_pods) == 4 and len(nodes) == 1 and len(patches(world)) == 1
    world.complete(patches(world)[0])
    world.answers = lambda action: Result(action.id)
    control(world)
    assert len(world.bindings) == 4 and set(world.bindings.values()) == nodes


def test_pods_that_relied_on_a_failed_write_are_requeued() -> None:
    world = a_world()
    world.submit(a_claim("data", "made"))
    world.answers = lambda action: None if isinstance(action, Patch) else Result(action.id)
    world.submit(a_user("first", "data"), a_user("second", "data"))
    world.run()
    (lost,) = patches(world)
    world.answers = lambda action: Result(action.id)
    world.deliver_result(Result(lost.id, 500, "etcd is away"))
    world.run()
    assert not world.scheduler.assumed_pods and {stage(world, each) for each in ("first", "second")} == {
        QueueStage.BACKOFF
    }
    assert not world.scheduler.state.assumed.holders()
    world.advance(2)
    control(world)
    assert len(world.bindings) == 2


def test_a_pod_that_waits_for_its_permit_does_not_keep_another_one_waiting() -> None:
    world = a_world(profiles=profiles(permit=[Patience()]))
    world.submit(a_claim("data", "made"), a_user("slow", "data", labels={"patience": "300"}))
    world.run()
    world.submit(a_user("quick", "data"))
    world.run()
    control(world)
    assert set(world.bindings) == {"quick"} and step(world, "slow") is BindStep.WAITING
    world.allow(world.pod("slow").uid, "Patience")
    assert world.bindings["slow"] == world.bindings["quick"]


# -- groups


def gangs(*nodes: str) -> World:
    return a_world(*nodes, profiles=profiles(permit=[], postBind=[Gangs()]))


def members(number: int, shared: bool = False) -> list[Any]:
    labels = {"gang": "g", "min": str(number)}
    return [a_user(f"m{at}", "data" if shared else f"c{at}", labels=labels) for at in range(number)]


def test_members_of_a_group_take_different_volumes() -> None:
    world = gangs()
    world.submit(*(a_claim(f"c{at}") for at in range(3)), *(a_volume(f"disk-{at}", "ab"[at % 2]) for at in range(3)))
    world.submit(*members(3))
    world.run()
    assert len(world.scheduler.assumed_pods) == 3 and len({each.key for each in patches(world)}) == 3
    control(world)
    assert len(world.bindings) == 3


def test_a_group_with_too_few_volumes_leaves_nothing_behind() -> None:
    world = gangs()
    world.submit(*(a_claim(f"c{at}") for at in range(3)), a_volume("disk-0"), a_volume("disk-1"), *members(3))
    world.run()
    assert not world.scheduler.assumed_pods and not patches(world) and not world.scheduler.state.assumed.holders()
    world.submit(a_volume("disk-2"))
    world.advance(2)
    control(world)
    assert len(world.bindings) == 3


def test_members_that_share_a_claim() -> None:
    world = gangs()
    world.submit(a_claim("data", "made"), *members(3, shared=True))
    world.run()
    assert len(patches(world)) == 1
    control(world)
    assert len(world.bindings) == 3 and len(set(world.bindings.values())) == 1


def test_a_failed_volume_of_one_member_rolls_back_the_group() -> None:
    world = gangs("a")
    world.submit(*(a_claim(f"c{at}", "made") for at in range(2)), *members(2))
    world.run()
    change(world, "PersistentVolumeClaim", "default/c0", {"metadata": {"annotations": {SELECTED_NODE: None, "x": "y"}}})
    world.run()
    assert not world.scheduler.assumed_pods and not world.scheduler.state.assumed.holders()
    assert 'provisioning failed for PVC "c0"' in world.event_notes("m1", "FailedScheduling")[-1]
    world.advance(2)
    control(world)
    assert len(world.bindings) == 2


# -- from the middle


@BOTH
def test_a_restart_during_pre_binding_continues_with_the_same_node(begin: Callable[[], World]) -> None:
    world = begin()
    node = world.scheduler.assumed_pods[world.pod("web").uid].node_name
    world.submit(a_host("roomy", cpu=64, memory="64Gi"), a_volume("spare"))
    world.restart()
    world.run()
    placing = world.scheduler.assumed_pods[world.pod("web").uid]
    assert placing.node_name == node and len(patches(world)) == 1
    control(world)
    assert world.bindings == {"web": node}


@BOTH
def test_a_new_configuration_during_pre_binding(begin: Callable[[], World]) -> None:
    world = begin()
    world.adopt({"default-scheduler": a_profile()})
    control(world)
    assert len(world.bindings) == 1


def test_a_version_that_comes_before_the_answer_is_not_mistaken_for_a_failure() -> None:
    """The watch may show the claim as we wrote it before the answer to the write, or long after."""
    world = a_world("a")
    world.answers = lambda action: None if isinstance(action, Patch) else Result(action.id)
    world.submit(a_claim("data", "made"), a_user("web", "data"))
    world.run()
    world.answers = lambda action: Result(action.id)
    (patch,) = patches(world)
    world.deliver_result(Result(patch.id))
    world.run()
    assert step(world) is BindStep.PRE_BINDING, "answered, but not heard of yet"
    assert world.scheduler.state.assumed.unconfirmed(claim(world))
    change(world, "PersistentVolumeClaim", "default/data", body(patch))
    provision(world, "data", "a")
    world.run()
    assert world.bindings == {"web": "a"}


def test_only_pods_that_wait_for_the_object_are_asked_again() -> None:
    world = a_world("a")
    world.submit(*(a_claim(f"c{at}", "made") for at in range(5)), *(a_user(f"p{at}", f"c{at}") for at in range(5)))
    world.run()
    provision(world, "c3", "a")
    assert set(world.scheduler.binding.waits.to_ask) == {world.pod("p3").uid}
    world.submit(a_claim("unrelated"), a_volume("unrelated"), a_host("b"))
    assert len(world.scheduler.binding.waits.to_ask) == 1
    world.run()
    assert set(world.bindings) == {"p3"}
