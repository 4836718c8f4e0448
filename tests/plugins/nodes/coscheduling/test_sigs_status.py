"""What a PodGroup is told about itself, from the first pod to the last."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from stowplan.objects.actions import Patch
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.finished_members import FinishedMember, FinishedMemberSpec, FinishedMemberStatus
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.pod_groups import SigsPodGroup, SigsPodGroupStatus
from stowplan.objects.pod_parts import SchedulingGroup
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.coscheduling.sigs_status import _phase
from stowplan.testing.builders import a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import MOMENT, a_pod_group, a_world, created

LABELS = {"scheduling.x-k8s.io/pod-group": "p"}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": True}


def status(world: World) -> SigsPodGroupStatus:
    found = world.objects["SigsPodGroup", "default/p"]
    assert isinstance(found, SigsPodGroup)
    return found.status


def in_phase(world: World, name: str, phase: str) -> None:
    pod = world.pod(name)
    world.submit(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase)))
    world.advance(2)


def pods(*numbers: int) -> list[Pod]:
    return [a_pod(f"p{at}", cpu=1, labels=LABELS, owner=OWNER) for at in numbers]


def test_from_the_first_pod_to_the_last() -> None:
    world = a_world(nodes=3)
    world.submit(a_pod_group("p", 3))
    world.advance(2)
    assert status(world).phase == "Pending"
    world.submit(*pods(0, 1))
    world.advance(2)
    assert (status(world).phase, status(world).occupied_by) == ("Pending", "default/train")
    world.submit(*pods(2))
    world.advance(2)
    assert status(world).phase == "Scheduling" and len(world.bindings) == 3
    for at in range(3):
        in_phase(world, f"p{at}", "Running")
    assert (status(world).phase, status(world).running) == ("Running", 3)
    in_phase(world, "p0", "Succeeded")
    assert (status(world).phase, status(world).running, status(world).succeeded) == ("Running", 2, 1)
    in_phase(world, "p1", "Succeeded")
    in_phase(world, "p2", "Succeeded")
    assert (status(world).phase, status(world).running, status(world).succeeded) == ("Finished", 0, 3)


def test_what_had_ended_before_a_restart_still_counts() -> None:
    world = a_world(nodes=3)
    world.submit(a_pod_group("p", 3), *pods(0, 1, 2))
    world.advance(2)
    for at in range(3):
        in_phase(world, f"p{at}", "Running")
    in_phase(world, "p0", "Failed")
    assert (status(world).phase, status(world).failed) == ("Failed", 1)
    world.delete(world.pod("p0"))
    world.restart()
    world.advance(3)
    in_phase(world, "p1", "Succeeded")
    assert (status(world).running, status(world).succeeded, status(world).failed) == (1, 1, 1)


def a_running_group(count: int = 3, minimum: int | None = None) -> World:
    world = a_world(nodes=count)
    world.submit(a_pod_group("p", count if minimum is None else minimum), *pods(*range(count)))
    world.advance(2)
    for at in range(count):
        in_phase(world, f"p{at}", "Running")
    return world


def numbers(world: World) -> tuple[int, int, int]:
    found = status(world)
    return found.running, found.succeeded, found.failed


def test_a_pod_that_ends_is_told_of_as_gone_and_as_a_finished_member() -> None:
    world = a_running_group()
    handed: list[Put | Gone | Result] = []
    handle = world.scheduler.handle
    world.scheduler.handle = lambda change, now: handed.append(change) or handle(change, now)  # type: ignore[method-assign,func-returns-value]
    world.finish("p0")
    (gone, ended) = handed
    assert isinstance(gone, Gone) and isinstance(gone.object, Pod) and gone.object.status.phase == "Running"
    assert isinstance(ended, Put) and isinstance(ended.object, FinishedMember) and ended.object.phase == "Succeeded"


def test_one_that_is_deleted_after_it_ended_stays_counted() -> None:
    world = a_running_group()
    for at in range(3):
        in_phase(world, f"p{at}", "Succeeded")
    world.delete(*(world.pod(f"p{at}") for at in range(3)))
    world.advance(5)
    assert (status(world).phase, numbers(world)) == ("Finished", (0, 3, 0))


def test_one_that_ends_and_is_deleted_at_once_counts() -> None:
    world = a_running_group()
    world.finish("p0", phase="Failed")
    world.delete(world.pod("p0"))
    world.advance(5)
    assert numbers(world) == (2, 0, 1)


@pytest.mark.parametrize("deleted", [0, 1, 2])
def test_a_restart_counts_nobody_twice(deleted: int) -> None:
    world = a_running_group(4)
    in_phase(world, "p0", "Failed")
    in_phase(world, "p1", "Failed")
    world.delete(*(world.pod(f"p{at}") for at in range(deleted)))
    for _ in range(2):
        world.restart()
        world.advance(3)
        assert numbers(world) == (2, 0, 2)
    in_phase(world, "p2", "Failed")
    assert numbers(world) == (1, 0, 3)


def test_what_ended_while_no_scheduler_ran_counts() -> None:
    world = a_running_group()
    world.pause_watch()
    world.finish("p0")
    world.watch_paused = False
    world.restart()
    world.advance(3)
    assert numbers(world) == (2, 1, 0)


def test_one_that_ends_because_it_is_deleted_does_not_count() -> None:
    world = a_running_group()
    metadata = msgspec.structs.replace(world.pod("p0").metadata, deletion_timestamp=MOMENT)
    world.submit(msgspec.structs.replace(world.pod("p0"), metadata=metadata))
    world.finish("p0", phase="Failed")
    world.advance(3)
    assert numbers(world) == (2, 0, 0)
    world.delete(world.pod("p0"))
    world.advance(3)
    assert numbers(world) == (2, 0, 0)


@pytest.mark.parametrize("first", ["the pod", "the member"])
def test_no_phase_is_written_for_the_moment_between_both_watches(first: str) -> None:
    world = a_running_group()
    world.pause_watch()
    for at in range(3):
        world.finish(f"p{at}")
    kinds = (Pod, FinishedMember) if first == "the pod" else (FinishedMember, Pod)
    changes = list(world.undelivered)
    world.undelivered.clear()
    world.undelivered.extend(sorted(changes, key=lambda each: isinstance(each.object, kinds[1])))
    before, world.checks = len(world.actions), False  # for a moment the scheduler has pods that have ended
    world.resume_watch(3)
    world.advance(0.5)
    world.resume_watch()
    world.advance(5)
    written = [each.body["status"]["phase"] for each in world.actions[before:] if isinstance(each, Patch)]  # type: ignore[call-overload]
    assert set(written) == {"Finished"} and numbers(world) == (0, 3, 0)


def test_a_running_pod_that_is_deleted_counts_no_more() -> None:
    world = a_running_group()
    world.delete(world.pod("p0"))
    world.advance(5)
    assert (status(world).phase, numbers(world)) == ("Pending", (2, 0, 0))


def test_another_group_of_the_same_name_begins_with_the_pods_that_exist() -> None:
    world = a_running_group()
    in_phase(world, "p0", "Failed")
    in_phase(world, "p1", "Failed")
    world.delete(world.pod("p0"))
    world.advance(2)
    other = a_pod_group("p", 3)
    world.submit(msgspec.structs.replace(other, metadata=msgspec.structs.replace(other.metadata, uid="another")))
    world.advance(3)
    assert numbers(world) == (1, 0, 1)


def test_a_pod_of_a_group_of_kubernetes_is_no_member() -> None:
    """Its spec names its group; the label is not looked at."""
    spec = FinishedMemberSpec(SchedulingGroup("other"))
    metadata = ObjectMeta(name="x", namespace="default", labels=LABELS)
    assert FinishedMember(metadata, spec, FinishedMemberStatus("Failed")).group == ""
    assert FinishedMember(metadata, status=FinishedMemberStatus("Failed")).group == "default/p"


def test_when_it_first_had_enough_pods_is_told_once() -> None:
    world = a_world(nodes=3)
    world.submit(a_pod_group("p", 2), *(created(pod, at) for pod, at in zip(pods(0, 1, 2), (4, 9, 7), strict=True)))
    world.advance(2)
    assert status(world).schedule_start_time == MOMENT + timedelta(seconds=7)
    world.delete(world.pod("p0"))
    in_phase(world, "p1", "Running")
    assert status(world).schedule_start_time == MOMENT + timedelta(seconds=7)


def test_pods_that_came_before_the_object_count() -> None:
    world = a_world(nodes=0)
    world.answers = lambda action: Result(action.id) if isinstance(action, Patch) else None  # pods stay as they are
    world.submit(*pods(0, 1))
    world.advance(3)
    world.submit(a_pod_group("p", 2))
    world.advance(3)
    assert status(world).phase == "Scheduling"


def test_nothing_is_written_that_stands_there_already() -> None:
    world = a_world(nodes=3)
    world.submit(a_pod_group("p", 2), *pods(0, 1))
    world.advance(5)
    before = len(world.actions)
    in_phase(world, "p0", "")
    world.advance(60)
    assert not [each for each in world.actions[before:] if type(each).__name__ == "Patch"]


@pytest.mark.parametrize(
    ("counts", "there", "phase"),
    [
        pytest.param({}, 2, "Pending", id="too few pods"),
        pytest.param({}, 3, "Scheduling", id="enough pods"),
        pytest.param({"running": 2}, 3, "Scheduling", id="not all run"),
        pytest.param({"running": 3}, 3, "Running", id="all run"),
        pytest.param({"running": 2, "succeeded": 1}, 2, "Running", id="one is done"),
        pytest.param({"succeeded": 3}, 0, "Finished", id="all are done"),
        pytest.param({"failed": 1, "running": 2}, 2, "Failed", id="one failed"),
        pytest.param({"failed": 1, "running": 1}, 1, "Pending", id="one failed, and too few are left"),
    ],
)
def test_phases(counts: dict[str, Any], there: int, phase: str) -> None:
    assert _phase(SigsPodGroupStatus(**counts), 3, there) == phase
