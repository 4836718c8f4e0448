"""Partially bound groups: nominations of the missing members, events, and evictions."""

from __future__ import annotations

import msgspec
import pytest

from stowplan.objects.actions import Action, Bind, Evict
from stowplan.objects.changes import Result
from stowplan.testing.builders import a_pod
from tests.plugins.nodes.coscheduling.pod_groups import (
    a_pod_group,
    a_world,
    bound_in_part,
    created,
    evicted,
    gang,
    member,
    refuse_binding,
    running,
)


def test_members_whose_binding_failed_are_nominated_and_attempted_first() -> None:
    world = bound_in_part()
    assert running(world) == {"g": 2}
    world.submit(created(a_pod("greedy", cpu=1), 0))
    world.run()
    assert not world.pod("greedy").node_name  # the node is nominated
    world.answers = world.succeed
    world.advance(30)
    assert running(world) == {"g": 3} and not world.pod("greedy").node_name


def test_the_nomination_of_a_missing_member_holds_against_higher_priorities() -> None:
    world = bound_in_part()
    world.submit(created(a_pod("greedy", cpu=1, priority=9, preemptionPolicy="Never"), 0))
    world.run()
    world.answers = world.succeed
    world.advance(30)
    assert running(world) == {"g": 3} and not world.pod("greedy").node_name


def test_a_pod_that_a_nomination_kept_out_runs_when_the_nomination_ends() -> None:
    world = bound_in_part()
    world.submit(created(a_pod("greedy", cpu=1, priority=9, preemptionPolicy="Never"), 0))
    world.run()
    world.delete(world.pod("g-2"))
    world.advance(30)
    assert world.pod("greedy").node_name


@pytest.mark.parametrize("match", ["waiting-and-running", "only-waiting", "once-satisfied"])
def test_a_missing_member_may_be_created_again(match: str) -> None:
    """The group was never whole, so its bound members count, whichever pod becomes the third."""
    world = a_world(nodes=3, args={"matchPolicy": match}, kubelets=True)
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.advance(20)
    world.delete(world.pod("g-2"))
    world.submit(*gang("g", 1, 3, first=7, at=19))
    world.advance(30)
    assert running(world) == {"g": 3}


@pytest.mark.parametrize(("on_partial", "left"), [("Complete", 3), ("Evict", 0)])
def test_a_group_that_starts_again_is_not_partially_bound(on_partial: str, left: int) -> None:
    """The group was whole and lost all its pods at once, while other members were pending."""
    world = a_world(nodes=3, args={"onPartialBind": on_partial})
    first = gang("g", 3)
    world.submit(*first)
    world.run()
    world.submit(*gang("g", 3, first=5, at=1))
    refuse_binding(world, "g-7")
    world.advance(5)
    world.pause_watch()
    world.delete(*(world.pod(pod.name) for pod in first))
    world.resume_watch()
    world.run()
    world.submit(created(a_pod("vip", cpu=1, priority=9, preemptionPolicy="Never"), 7))
    world.run()
    world.answers = world.succeed
    world.advance(60)
    assert running(world).get("g", 0) == left


@pytest.mark.parametrize("dies", [pytest.param(True, id="after a restart"), pytest.param(False, id="in the same life")])
def test_a_group_without_its_pod_group_is_not_evicted(dies: bool) -> None:
    """The minimum is unknown; two members run."""
    world = a_world(nodes=2, args={"onPartialBind": "Evict"})
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    world.submit(a_pod_group("g", 2), *(member(f"g-{number}", labels) for number in range(3)))
    world.run()
    world.delete(a_pod_group("g", 2))
    if dies:
        world.restart()
    world.advance(60)
    assert not evicted(world) and len(world.bindings) == 2


def test_an_event_names_the_bound_and_the_missing_members() -> None:
    world = a_world(nodes=3, args={"partialBindDeadlineSeconds": 20})
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.advance(19)
    assert not world.event_notes("g-2", "PodGroupBoundInPart")
    world.advance(2)
    told = "Pod group default/g: 2 bound or about to be (g-0, g-1), 1 not (g-2)"
    assert world.event_notes("g-2", "PodGroupBoundInPart") == [told]
    world.answers = world.succeed
    world.advance(60)
    assert world.event_notes("g-2", "PodGroupBoundInPart") == [told]


def test_a_partially_bound_group_is_evicted_if_configured() -> None:
    world = a_world(nodes=3, args={"onPartialBind": "Evict"})
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.run()
    assert evicted(world) == ["g-0", "g-1"] and running(world) == {}
    assert world.event_notes("g-0", "PodGroupTakenBack")
    world.answers = world.succeed
    world.submit(*gang("g", 2, 3, first=7, at=9))
    world.advance(30)
    assert running(world) == {"g": 3}


def test_an_eviction_that_fails_is_retried() -> None:
    world = a_world(nodes=3, args={"onPartialBind": "Evict"})
    tries = 0

    def answer(action: Action) -> Result | None:
        nonlocal tries
        if isinstance(action, Bind) and action.pod.name == "g-2":
            return Result(action.id, 500, "no")
        if isinstance(action, Evict):
            tries += 1
            return Result(action.id, 429, "later") if tries <= 2 else Result(action.id)
        return Result(action.id)

    world.answers = answer
    world.submit(*gang("g", 3))
    world.run()
    assert running(world) == {"g": 2} and tries == 2
    world.advance(5)
    assert running(world) == {} and tries == 4


@pytest.mark.parametrize("policy", ["Complete", "Evict"])
def test_a_group_that_another_scheduler_left_partially_bound_is_completed(policy: str) -> None:
    """The scheduler was killed between two bindings."""
    world = a_world(nodes=4, args={"onPartialBind": policy})
    world.answers = lambda action: None if isinstance(action, Bind) and action.pod.name != "g-0" else Result(action.id)
    world.submit(*gang("g", 3))
    world.run()
    assert running(world) == {"g": 1}
    world.answers = world.succeed
    world.submit(*(created(a_pod(f"rival-{at}", cpu=1), 0) for at in range(2)))
    world.restart()
    world.advance(20)
    assert running(world)["g"] == 3 and not evicted(world)


def test_a_group_that_was_left_partially_bound_and_cannot_be_completed() -> None:
    world = a_world(nodes=3, args={"onPartialBind": "Evict"})
    world.answers = lambda action: None if isinstance(action, Bind) and action.pod.name != "g-0" else Result(action.id)
    world.submit(*gang("g", 3))
    world.run()
    world.answers = world.succeed
    for name in {"n0", "n1", "n2"} - {world.pod("g-0").node_name}:
        world.submit(a_pod(f"rival-{name}", cpu=1, node=name))
    world.restart()
    world.advance(20)
    assert evicted(world) == ["g-0"] and "g" not in running(world)


@pytest.mark.parametrize("policy", ["Complete", "Evict"])
def test_a_late_member_replaces_a_lost_one(policy: str) -> None:
    world = a_world(nodes=3, args={"onPartialBind": policy})
    started = {"startTime": "2026-01-01T00:00:05Z"}
    world.submit(*gang("g", 2, 3, node="n0", status=started))
    world.submit(*gang("g", 1, 3, first=2, at=9))
    world.advance(30)
    assert not evicted(world) and running(world) == {"g": 3}


def test_a_running_group_is_not_evicted_because_one_of_its_pods_ended() -> None:
    world = a_world(nodes=3, args={"onPartialBind": "Evict"})
    world.submit(*gang("g", 4, 3))
    world.advance(2)
    assert running(world) == {"g": 3}
    ended = next(pod for pod in world.pods() if pod.node_name)
    world.submit(msgspec.structs.replace(ended, status=msgspec.structs.replace(ended.status, phase="Succeeded")))
    world.advance(20)
    assert not evicted(world)


@pytest.mark.parametrize("policy", ["Complete", "Evict"])
def test_counting_only_waiting_members_does_not_break_up_a_group(policy: str) -> None:
    world = a_world(nodes=3, args={"onPartialBind": policy, "matchPolicy": "only-waiting"})
    world.submit(*gang("g", 4, 3))
    world.advance(30)
    assert running(world) == {"g": 3} and not evicted(world)


def test_a_partially_bound_group_is_completed_though_only_waiting_members_count() -> None:
    world = a_world(nodes=4, args={"matchPolicy": "only-waiting"})
    world.answers = lambda action: None if isinstance(action, Bind) and action.pod.name != "g-0" else Result(action.id)
    world.submit(*gang("g", 3))
    world.run()
    world.answers = world.succeed
    world.restart()
    world.advance(20)
    assert running(world) == {"g": 3}


def test_after_a_restart_the_rest_of_a_group_keeps_its_nomination_if_it_fails_again() -> None:
    world = bound_in_part()
    world.restart()
    world.advance(3)
    assert any("2 bound or about to be (g-0, g-1)" in each for each in world.event_notes("g-2"))
    world.submit(created(a_pod("greedy", cpu=1), 0))
    world.advance(1)
    assert not world.pod("greedy").node_name
    world.answers = world.succeed
    world.advance(30)
    assert running(world) == {"g": 3}
