"""Gangs in trouble: bindings that fail, schedulers that die, members that are late, and room that must be made."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from stowplan.objects.actions import Action, Bind, Evict
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from tests.builders import a_budget, a_node, a_pod
from tests.plugins.nodes.gangs import NAME, a_pod_group, a_world, created, gang, member, profiles, running
from tests.world import World


def refuse_binding(world: World, *names: str) -> None:
    """The server refuses to bind these."""

    def answer(action: Action) -> Result | None:
        refused = isinstance(action, Bind) and action.pod.name in names
        return Result(action.id, 500, "no") if refused else Result(action.id)

    world.answers = answer


def evicted(world: World) -> list[str]:
    return sorted(action.pod.name for action in world.actions if isinstance(action, Evict))


# -- bound in part


def test_members_whose_binding_failed_keep_their_room_and_go_first() -> None:
    world = a_world(nodes=3)
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.run()
    assert running(world) == {"g": 2}
    world.submit(created(a_pod("greedy", cpu=1), 0))
    world.run()
    assert not world.pod("greedy").node_name  # the room is promised
    world.answers = world.fine
    world.advance(30)
    assert running(world) == {"g": 3} and not world.pod("greedy").node_name


def test_the_room_of_what_is_missing_is_kept_against_more_important_pods_too() -> None:
    world = a_world(nodes=3)
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.run()
    world.submit(created(a_pod("greedy", cpu=1, priority=9, preemptionPolicy="Never"), 0))
    world.run()
    world.answers = world.fine
    world.advance(30)
    assert running(world) == {"g": 3} and not world.pod("greedy").node_name


def test_whoever_was_kept_out_runs_when_the_room_is_not_kept_any_more() -> None:
    world = a_world(nodes=3)
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.run()
    world.submit(created(a_pod("greedy", cpu=1, priority=9, preemptionPolicy="Never"), 0))
    world.run()
    world.delete(world.pod("g-2"))
    world.advance(30)
    assert world.pod("greedy").node_name


@pytest.mark.parametrize("match", ["waiting-and-running", "only-waiting", "once-satisfied"])
def test_what_is_missing_of_a_group_may_be_made_anew(match: str) -> None:
    """It was never whole, so those on nodes count, whoever comes for the third place."""
    world = a_world(nodes=3, args={"matchPolicy": match}, kubelets=True)
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.advance(20)
    world.delete(world.pod("g-2"))
    world.submit(*gang("g", 1, 3, first=7, at=19))
    world.advance(30)
    assert running(world) == {"g": 3}


@pytest.mark.parametrize(("on_partial", "left"), [("Complete", 3), ("Evict", 0)])
def test_a_group_that_begins_anew_is_not_left_in_part(on_partial: str, left: int) -> None:
    """It was whole, and lost all its pods at once, while others of it waited already."""
    world = a_world(nodes=3, args={"onPartialBind": on_partial})
    first = gang("g", 3)
    world.submit(*first)
    world.run()
    world.submit(*gang("g", 3, first=5, at=1))
    refuse_binding(world, "g-7")
    world.advance(5)
    world.lag()
    world.delete(*(world.pod(pod.name) for pod in first))
    world.catch_up()
    world.run()
    world.submit(created(a_pod("vip", cpu=1, priority=9, preemptionPolicy="Never"), 7))
    world.run()
    world.answers = world.fine
    world.advance(60)
    assert running(world).get("g", 0) == left


@pytest.mark.parametrize("dies", [pytest.param(True, id="after a restart"), pytest.param(False, id="in the same life")])
def test_a_group_that_lost_its_pod_group_is_not_taken_back(dies: bool) -> None:
    """Nobody knows how many it takes; two of it run."""
    world = a_world(nodes=2, args={"onPartialBind": "Evict"})
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    world.submit(a_pod_group("g", 2), *(member(f"g-{number}", labels) for number in range(3)))
    world.run()
    world.delete(a_pod_group("g", 2))
    if dies:
        world.restart()
    world.advance(60)
    assert not evicted(world) and len(world.bindings) == 2


def test_after_a_while_it_is_told_who_is_bound_and_who_is_not() -> None:
    world = a_world(nodes=3, args={"partialBindDeadlineSeconds": 20})
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.advance(19)
    assert not world.said("g-2", "PodGroupBoundInPart")
    world.advance(2)
    told = "Pod group default/g: 2 bound or about to be (g-0, g-1), 1 not (g-2)"
    assert world.said("g-2", "PodGroupBoundInPart") == [told]
    world.answers = world.fine
    world.advance(60)
    assert world.said("g-2", "PodGroupBoundInPart") == [told]


def test_a_group_that_wants_it_is_taken_back_whole() -> None:
    world = a_world(nodes=3, args={"onPartialBind": "Evict"})
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.run()
    assert evicted(world) == ["g-0", "g-1"] and running(world) == {}
    assert world.said("g-0", "PodGroupTakenBack")
    world.answers = world.fine
    world.submit(*gang("g", 2, 3, first=7, at=9))
    world.advance(30)
    assert running(world) == {"g": 3}


def test_an_eviction_that_fails_is_tried_again() -> None:
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
def test_what_a_dead_scheduler_left_behind(policy: str) -> None:
    """It died between two bindings."""
    world = a_world(nodes=4, args={"onPartialBind": policy})
    world.answers = lambda action: None if isinstance(action, Bind) and action.pod.name != "g-0" else Result(action.id)
    world.submit(*gang("g", 3))
    world.run()
    assert running(world) == {"g": 1}
    world.answers = world.fine
    world.submit(*(created(a_pod(f"rival-{at}", cpu=1), 0) for at in range(2)))
    world.restart()
    world.advance(20)
    assert running(world)["g"] == 3 and not evicted(world)


def test_what_a_dead_scheduler_left_behind_and_cannot_be_completed() -> None:
    world = a_world(nodes=3, args={"onPartialBind": "Evict"})
    world.answers = lambda action: None if isinstance(action, Bind) and action.pod.name != "g-0" else Result(action.id)
    world.submit(*gang("g", 3))
    world.run()
    world.answers = world.fine
    for name in {"n0", "n1", "n2"} - {world.pod("g-0").node_name}:
        world.submit(a_pod(f"rival-{name}", cpu=1, node=name))
    world.restart()
    world.advance(20)
    assert evicted(world) == ["g-0"] and "g" not in running(world)


@pytest.mark.parametrize("policy", ["Complete", "Evict"])
def test_a_member_that_comes_later_only_takes_the_place_of_a_lost_one(policy: str) -> None:
    world = a_world(nodes=3, args={"onPartialBind": policy})
    started = {"startTime": "2026-01-01T00:00:05Z"}
    world.submit(*gang("g", 2, 3, node="n0", status=started))
    world.submit(*gang("g", 1, 3, first=2, at=9))
    world.advance(30)
    assert not evicted(world) and running(world) == {"g": 3}


# -- making room


def low(count: int, **more: Any) -> list[Pod]:
    return [a_pod(f"low-{at}", cpu=1, node=f"n{at}", priority=1, **more) for at in range(count)]


def test_room_is_made_for_a_whole_gang() -> None:
    world = a_world(nodes=4)
    world.submit(*low(4))
    world.submit(*gang("g", 3, priority=10))
    world.advance(20)
    assert running(world)["g"] == 3 and len(evicted(world)) == 3


def test_nobody_goes_for_a_gang_that_would_not_fit_even_then() -> None:
    world = a_world(nodes=4)
    world.submit(*low(3), a_pod("high", cpu=1, node="n3", priority=20))
    world.submit(*gang("g", 4, priority=10))
    world.advance(60)
    assert not evicted(world) and "g" not in running(world)


def test_the_least_important_go_and_no_more_than_it_takes() -> None:
    world = a_world(nodes=4)
    world.submit(*(a_pod(f"p{at}", cpu=1, node=f"n{at}", priority=at) for at in range(4)))
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert evicted(world) == ["p0", "p1"] and running(world)["g"] == 2


def test_free_room_is_used_before_anybody_goes() -> None:
    world = a_world(nodes=5)
    world.submit(*low(4))
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert len(evicted(world)) == 1 and running(world)["g"] == 2


def test_another_gang_goes_whole_or_not_at_all() -> None:
    world = a_world(nodes=4)
    world.submit(*gang("lesser", 3, priority=1))
    world.run()
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert evicted(world) == ["lesser-0", "lesser-1", "lesser-2"] and running(world)["g"] == 2


def test_a_single_pod_that_makes_room_does_not_halve_a_gang() -> None:
    world = a_world(nodes=2)
    world.submit(*gang("lesser", 2, priority=1))
    world.run()
    world.submit(a_pod("single", cpu=1, priority=10))
    world.advance(20)
    assert evicted(world) == ["lesser-0", "lesser-1"] and set(running(world)) == {"single"}


def test_members_beyond_the_minimum_may_go_alone() -> None:
    world = a_world(nodes=3)
    world.submit(*gang("lesser", 3, 2, priority=1))
    world.run()
    world.submit(a_pod("single", cpu=1, priority=10))
    world.advance(20)
    assert len(evicted(world)) == 1 and running(world) == {"lesser": 2, "single": 1}


def test_budgets_are_respected() -> None:
    world = a_world(nodes=3)
    world.submit(a_budget("keep", app="kept"))
    world.submit(*low(3, labels={"app": "kept"}))
    world.submit(*gang("g", 2, priority=10))
    world.advance(30)
    assert not evicted(world)


@pytest.mark.parametrize(
    ("args", "spec"),
    [
        pytest.param({"preemption": False}, {}, id="switched off"),
        pytest.param({}, {"preemptionPolicy": "Never"}, id="the pods do not want it"),
    ],
)
def test_no_room_is_made_for_a_gang_that_does_not_want_it(args: dict[str, Any], spec: dict[str, Any]) -> None:
    world = a_world(nodes=3, args=args)
    world.submit(*low(3))
    world.submit(*gang("g", 2, priority=10, **spec))
    world.advance(30)
    assert not evicted(world)


def test_victims_that_take_their_time_are_not_told_twice_and_their_room_is_kept() -> None:
    world = a_world(nodes=2, graceful=True)
    world.submit(*low(2))
    world.submit(*gang("g", 2, priority=10))
    world.advance(40)
    assert evicted(world) == ["low-0", "low-1"]
    world.submit(created(a_pod("rival", cpu=1, priority=5), 0))
    world.delete(world.pod("low-0"))
    world.advance(20)
    assert running(world).get("g", 0) == 0 and not world.pod("rival").node_name
    world.delete(world.pod("low-1"))
    world.advance(20)
    assert running(world)["g"] == 2


# -- many at once


def test_an_infeasible_gang_does_not_block_a_small_one() -> None:
    world = a_world(nodes=4)
    world.submit(*gang("large", 6, cpu=1, at=0))
    world.submit(*gang("small", 2, at=5))
    world.advance(5)
    assert running(world) == {"small": 2}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([*gang("a", 3, cpu=50), *gang("b", 4, cpu=100, at=1)], {"a": 3}, id="equal gangs in order"),
        pytest.param(
            [*gang("a", 3, cpu=100, priority=50), *gang("b", 3, cpu=50, priority=100, at=1)], {"b": 3}, id="by priority"
        ),
        pytest.param(
            [*[a_pod(f"r{at}", cpu=100, priority=100) for at in range(3)], *gang("b", 3, cpu=50, priority=50)],
            {"r0": 1, "r1": 1, "r2": 1}, id="important pods before a gang",
        ),
        pytest.param(
            [*gang("a", 3, 4, cpu=50), *[a_pod(f"r{at}", cpu=100) for at in range(2)]],
            {"r0": 1, "r1": 1}, id="too few members",
        ),
        pytest.param(
            [*gang("a", 4, cpu=100), *gang("b", 4, cpu=100, at=1), *gang("c", 3, cpu=100, at=2)],
            {"c": 3}, id="the one that fits",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("interleaved", [False, True])
def test_who_runs_on_a_small_cluster(pods: list[Pod], expected: dict[str, int], interleaved: bool) -> None:
    """A node with 300."""
    world = a_world(nodes=0)
    world.submit(a_node("n", cpu=300))
    for pod in sorted(pods, key=lambda pod: pod.name[::-1]) if interleaved else pods:
        world.submit(pod)
    world.advance(30)
    assert running(world) == expected


def test_groups_are_forgotten_ten_minutes_after_their_last_member() -> None:
    world = a_world(nodes=3)
    world.submit(*gang("g", 3), *gang("h", 3, at=1))
    world.run()
    groups = world.scheduler.admission.groups
    assert {each.group.name for each in groups} == {"default/g", "default/h"}
    world.delete(*(pod for pod in world.pods() if pod.labels[NAME] == "g"))
    world.advance(500)
    assert {each.group.name for each in groups} == {"default/g", "default/h"}
    world.advance(200)
    world.delete(world.pod("h-0"))
    assert {each.group.name for each in groups} == {"default/h"}


# -- what a reader found


def test_a_running_gang_is_not_taken_back_because_one_of_its_pods_ended() -> None:
    world = a_world(nodes=3, args={"onPartialBind": "Evict"})
    world.submit(*gang("g", 4, 3))
    world.advance(2)
    assert running(world) == {"g": 3}
    ended = next(pod for pod in world.pods() if pod.node_name)
    world.submit(msgspec.structs.replace(ended, status=msgspec.structs.replace(ended.status, phase="Succeeded")))
    world.advance(20)
    assert not evicted(world)


@pytest.mark.parametrize("policy", ["Complete", "Evict"])
def test_counting_only_those_that_wait_does_not_break_up_a_gang(policy: str) -> None:
    world = a_world(nodes=3, args={"onPartialBind": policy, "matchPolicy": "only-waiting"})
    world.submit(*gang("g", 4, 3))
    world.advance(30)
    assert running(world) == {"g": 3} and not evicted(world)


def test_what_a_dead_scheduler_left_is_completed_though_only_those_that_wait_count() -> None:
    world = a_world(nodes=4, args={"matchPolicy": "only-waiting"})
    world.answers = lambda action: None if isinstance(action, Bind) and action.pod.name != "g-0" else Result(action.id)
    world.submit(*gang("g", 3))
    world.run()
    world.answers = world.fine
    world.restart()
    world.advance(20)
    assert running(world) == {"g": 3}


def test_a_gang_of_two_schedulers_is_none_and_nobody_is_lost() -> None:
    (profile,) = profiles().values()
    other = dataclasses.replace(profile, scheduler_name="other")
    both = {"default-scheduler": profile, "other": other}
    world = World(nodes=[a_node(f"n{at}", cpu=1) for at in range(3)], profiles=both)
    world.submit(*gang("g", 2, 3), *gang("g", 1, 3, first=5, schedulerName="other"))
    world.advance(5)
    assert not world.bindings
    assert any("is of scheduler default-scheduler" in each for each in world.said("g-5"))
    world.submit(*gang("g", 1, 3, first=2))
    world.advance(15)
    assert running(world) == {"g": 3} and not world.pod("g-5").node_name


def test_a_pod_group_that_goes_away_starts_nobody() -> None:
    world = a_world(nodes=2)
    group = a_pod_group("p", 3)
    labels = {"scheduling.x-k8s.io/pod-group": "p"}
    world.submit(group, *(created(a_pod(f"p{at}", cpu=1, labels=labels), 0) for at in range(3)))
    world.advance(2)
    world.delete(group)
    world.submit(a_node("n2", cpu=0))
    world.advance(400)
    assert not world.bindings


def test_after_a_restart_the_rest_of_a_gang_keeps_its_room_even_if_it_fails_once_more() -> None:
    world = a_world(nodes=3)
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.run()
    world.restart()
    world.advance(3)
    assert any("2 bound or about to be (g-0, g-1)" in each for each in world.said("g-2"))
    world.submit(created(a_pod("greedy", cpu=1), 0))
    world.advance(1)
    assert not world.pod("greedy").node_name
    world.answers = world.fine
    world.advance(30)
    assert running(world) == {"g": 3}


def test_extras_go_before_the_gang_that_they_belong_to() -> None:
    world = a_world(nodes=6)
    world.submit(*gang("lesser", 6, 2, priority=1))
    world.advance(2)
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert len(evicted(world)) == 2 and running(world) == {"g": 2, "lesser": 4}


def test_a_budget_that_allows_one_lets_the_least_important_go() -> None:
    world = a_world(nodes=3)
    world.submit(a_budget("keep", app="kept", allowed=2))
    world.submit(*(a_pod(f"p{at}", cpu=1, node=f"n{at}", priority=at, labels={"app": "kept"}) for at in range(3)))
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert evicted(world) == ["p0", "p1"]


def test_more_members_do_not_shorten_a_groups_backoff() -> None:
    world = a_world(nodes=2)
    world.submit(*gang("g", 3))
    world.run()
    tried = len(world.said("g-0"))
    world.submit(*gang("g", 10, 3, first=3))
    world.run()
    assert len(world.said("g-0")) <= tried + 1


def test_a_large_gang_does_not_starve_where_room_frees_bit_by_bit() -> None:
    world = a_world(nodes=2, args={"starvationSeconds": 10, "preemption": False})
    world.submit(a_pod("s0", cpu=1, node="n0"), a_pod("s1", cpu=1, node="n1"))
    world.submit(*gang("g", 2, at=0))
    for number in range(2, 40):
        world.advance(15)
        world.submit(created(a_pod(f"s{number}", cpu=1, preemptionPolicy="Never"), 59))
        leaves = next((pod for pod in world.pods() if pod.node_name and pod.name.startswith("s")), None)
        if leaves is None:
            break
        world.delete(leaves)
    world.advance(30)
    assert running(world)["g"] == 2
