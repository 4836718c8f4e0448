"""Preemption with groups, as preemptors or among the victims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from stowplan.columns.trial import Trial
from stowplan.engine.attempt.placer import Placer, UnitOutcome
from stowplan.framework.config.settings import Extender
from stowplan.framework.decision import Candidate
from stowplan.objects.actions import Ask
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_budget, a_node, a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import (
    MIN,
    NAME,
    a_pod_group,
    a_world,
    created,
    evicted,
    gang,
    low,
    member,
    refuse_binding,
    running,
)

GROUP = "scheduling.x-k8s.io/pod-group"


# -- victims of a group


def test_a_group_that_fits_only_in_the_second_order_preempts() -> None:
    """The large member prefers the node that is the only one for the other member."""
    world = a_world(nodes=0)
    world.submit(a_node("a", cpu="2500m", labels={"kind": "a"}), a_node("b", cpu=2))
    world.submit(a_pod("low-a", cpu=2, node="a", priority=1), a_pod("low-b", cpu=2, node="b", priority=1))
    labels = {NAME: "g", MIN: "2"}
    large, picky = (
        member("x", labels, cpu=2, priority=10),
        member("z", labels, node_selector={"kind": "a"}, priority=10),
    )
    world.submit(large, picky)
    world.advance(20)
    assert running(world) == {"g": 2} and evicted(world) == ["low-a", "low-b"]


# -- a single pod whose victims may be in groups


def with_a_gang_and_a_lone_pod(priority: int, **more: Any) -> World:
    """Return a world with a group of three of priority 1, and a single pod that started before them."""
    world = a_world(nodes=4, **more)
    world.submit(*gang("lesser", 3, priority=1))
    world.advance(1)
    (free,) = {f"n{at}" for at in range(4)} - set(world.bindings.values())
    world.submit(a_pod("lone", cpu=1, node=free, priority=priority, status={"startTime": "2025-01-01T00:00:00Z"}))
    return world


WHOLE = ["lesser-0", "lesser-1", "lesser-2"]


@pytest.mark.parametrize(
    ("priority", "protected", "gone"),
    [
        pytest.param(1, (), ["lone"], id="of the same priority one is evicted, not three"),
        pytest.param(2, (), WHOLE, id="the lower priority is evicted, however many they are"),
        pytest.param(2, WHOLE, ["lone"], id="a budget of those that would go besides counts"),
        pytest.param(2, ("lesser-1", "lone"), WHOLE, id="one violation is as bad as the other"),
    ],
)
def test_a_single_preemptor_counts_the_whole_group_of_a_victim(
    priority: int, protected: Sequence[str], gone: list[str]
) -> None:
    world = with_a_gang_and_a_lone_pod(priority)
    world.submit(a_budget("keep", kept="yes", allowed=1 if protected == WHOLE else 0))
    for name in protected:
        world.submit(labelled(world.pod(name), kept="yes"))
    world.submit(a_pod("single", cpu=1, priority=10))
    world.advance(10)
    assert evicted(world) == gone and world.pod("single").node_name


def labelled(pod: Pod, **labels: str) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels={**pod.labels, **labels}))


def test_no_pod_of_the_same_priority_is_evicted_with_its_group() -> None:
    """Another scheduler bound a member that does not agree with the others."""
    world = a_world(nodes=2)
    world.submit(*gang("lesser", 1, 2, priority=1, node="n0"), *gang("lesser", 1, 2, first=1, priority=10, node="n1"))
    world.submit(a_pod("single", cpu=1, priority=10))
    world.advance(10)
    assert evicted(world) == ["lesser-0"]


def test_extenders_are_shown_all_victims() -> None:
    asked: list[Ask] = []

    def extender(ask: Ask) -> Result:
        asked.append(ask)
        kept = {"n0": {"Pods": [{"UID": ref.uid} for ref in ask.victims["n0"].pods], "NumPDBViolations": 0}}
        return Result(ask.id, 200, body={"NodeNameToMetaVictims": kept})

    world = a_world(
        nodes=2, extenders=[Extender(url_prefix="http://it", preempt_verb="preempt", node_cache_capable=True)]
    )
    world.extender = extender
    world.submit(*gang("lesser", 2, priority=1))
    world.run()
    world.submit(a_pod("single", cpu=1, priority=10))
    world.advance(10)
    shown = {node: sorted(ref.name for ref in victims.pods) for node, victims in asked[0].victims.items()}
    assert shown == {"n0": ["lesser-0", "lesser-1"], "n1": ["lesser-0", "lesser-1"]}
    assert evicted(world) == ["lesser-0", "lesser-1"]


def test_candidates_without_group_members_are_unchanged() -> None:
    world = with_a_gang_and_a_lone_pod(0)
    company, lone = world.scheduler.preemption.group_victims, Candidate("n", (world.pod("lone"),), 0)
    found = [lone]
    assert company.join(a_pod("single", priority=10), found) is found


# -- minResources


def of_group(name: str, count: int, *, priority: int = 10, **more: Any) -> list[Pod]:
    return [member(f"{name}-{at}", {GROUP: name}, priority=priority, **more) for at in range(count)]


@pytest.mark.parametrize(
    ("resources", "members", "victims"),
    [
        pytest.param({"cpu": "2"}, 2, 2, id="what its pods need"),
        pytest.param({"cpu": "3"}, 2, 3, id="more than its pods need, which must be free all the same"),
        pytest.param({"cpu": "1"}, 2, 2, id="less than its pods need"),
        pytest.param({"cpu": "5"}, 2, 0, id="more than there is: no eviction"),
        pytest.param({"cpu": "2", "example.com/gpu": "1"}, 2, 0, id="a resource that no node has: no eviction"),
        pytest.param({"cpu": "2"}, 5, 0, id="enough in total, but not for so many pods: no eviction"),
    ],
)
@pytest.mark.parametrize("graceful", [False, True], ids=["at once", "gracefully"])
def test_a_group_with_min_resources_preempts(
    resources: dict[str, str], members: int, victims: int, graceful: bool
) -> None:
    world = a_world(nodes=4, graceful=graceful)
    world.submit(*low(4))
    world.submit(a_pod_group("g", members, minResources=resources), *of_group("g", members))
    for _ in range(2):
        world.advance(20)
        world.delete(*(pod for pod in world.pods() if pod.terminating))
    world.advance(20)
    assert len(evicted(world)) == victims
    assert sum(name.startswith("g-") for name in world.bindings) == (members if victims else 0)


def test_missing_members_of_a_group_keep_their_nomination_though_too_little_is_free() -> None:
    """Two bindings failed, and a system-critical pod was created: the node that is left stays nominated."""
    world = a_world(nodes=3)
    refuse_binding(world, "g-1", "g-2")
    world.submit(a_pod_group("g", 3, minResources={"cpu": "3"}), *of_group("g", 3, priority=0))
    world.run()
    world.answers = world.succeed
    world.submit(a_pod("vip", cpu=1, priority=2_000_000_000, preemptionPolicy="Never"))
    world.advance(8)
    assert "minResources" in world.event_notes("g-1")[-1]
    world.submit(created(a_pod("rival", cpu=1), 9))
    world.advance(8)
    assert set(world.bindings) == {"g-0", "vip"}


# -- budgets


def test_a_budget_is_spent_on_nodes_that_the_group_can_use() -> None:
    """The pod of the lowest priority would spend the budget, but is on a node that the group cannot use."""
    world = a_world(nodes=0)
    world.submit(a_node("a", cpu=1), a_node("b", cpu=2, labels={"kind": "b"}), a_budget("keep", kept="yes", allowed=1))
    world.submit(a_pod("p0", cpu=1, node="a", priority=0, labels={"kept": "yes"}))
    world.submit(a_pod("p9", cpu=1, node="b", priority=9, labels={"kept": "yes"}))
    world.submit(*gang("g", 2, priority=10, node_selector={"kind": "b"}))
    world.advance(20)
    assert evicted(world) == ["p9"] and running(world)["g"] == 2


@pytest.mark.parametrize("larger", [0, 1, 2])
def test_a_budget_is_spent_on_the_pod_that_makes_enough_room(larger: int) -> None:
    """Without all three pods, members could be on each of the nodes; but only one pod may be evicted."""
    world = a_world(nodes=0)
    world.submit(a_budget("keep", kept="yes", allowed=1), a_node("free", cpu=1))
    for at in range(3):
        cpu = 2 if at == larger else 1
        world.submit(a_node(f"n{at}", cpu=cpu), a_pod(f"p{at}", cpu=cpu, node=f"n{at}", labels={"kept": "yes"}))
    world.submit(*gang("g", 3, priority=10))
    world.advance(20)
    assert evicted(world) == [f"p{larger}"] and running(world)["g"] == 3


def test_a_victim_set_that_may_not_be_evicted_spends_no_budget() -> None:
    """Evicting the group would exceed its budget by one; the single pod with the same budget may be evicted."""
    world = a_world(nodes=4)
    world.submit(*(labelled(pod, kept="yes") for pod in gang("lesser", 2, priority=1)))
    world.advance(2)
    free, _ = {f"n{at}" for at in range(4)} - set(world.bindings.values())
    world.submit(a_budget("keep", kept="yes", allowed=1))
    world.submit(a_pod("lone", cpu=1, node=free, priority=5, labels={"kept": "yes"}))
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert evicted(world) == ["lone"] and running(world) == {"g": 2, "lesser": 2}


def test_budgets_also_protect_members_that_would_be_left_without_their_group() -> None:
    """A group with a minimum of two and three members: evicting two evicts the third, too, which a budget protects."""
    world = a_world(nodes=3)
    world.submit(*gang("lesser", 3, 2, priority=1))
    world.advance(2)
    world.submit(labelled(world.pod("lesser-2"), kept="yes"), a_budget("keep", kept="yes"))
    world.submit(*gang("g", 2, priority=10))
    world.advance(20)
    assert not evicted(world)


# -- victims whose eviction is requested and not seen yet


def test_pods_whose_eviction_is_requested_are_waited_for() -> None:
    """The watch does not show yet that the victims terminate, but shows another pod of a lower priority."""
    world = a_world(nodes=3, graceful=True, checks=False)
    world.submit(*low(2), *gang("g", 2, priority=10))
    world.pause_watch()
    world.run()
    told = evicted(world)
    world.deliver_object(a_pod("least", cpu=1, node="n3", priority=0))
    world.deliver_object(a_node("n3", cpu=1))
    world.advance(30)
    assert len(told) == 1 and evicted(world) == told
    world.resume_watch()
    world.delete(*(pod for pod in world.pods() if pod.terminating))
    world.advance(30)
    assert running(world)["g"] == 2


def test_pods_whose_eviction_is_requested_have_spent_their_budget() -> None:
    """The budget's status is not updated yet; a second group, which needs one more node, must not evict another pod."""
    world = a_world(nodes=3, graceful=True, checks=False)
    world.submit(a_budget("keep", kept="yes", allowed=1), a_node("own", cpu=1, taints=["only=h:NoSchedule"]))
    world.submit(*low(2, labels={"kept": "yes"}), *gang("g", 2, priority=10))
    world.pause_watch()
    world.run()
    world.deliver_object(a_pod("least", cpu=1, node="n3", priority=0, labels={"kept": "yes"}))
    for each in (a_node("n3", cpu=1), *gang("h", 2, priority=10, tolerations=["only=h:NoSchedule"])):
        world.deliver_object(each)
    world.advance(30)
    assert len(evicted(world)) == 1


# -- how much is looked at


def test_a_group_that_lacks_resources_in_total_costs_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world(nodes=4)
    world.submit(*low(4))
    removed: list[str] = []
    monkeypatch.setattr(Trial, "remove_pod", lambda _trial, uid, **_: removed.append(uid))
    world.submit(*gang("g", 5, priority=10), *gang("h", 2, cpu=2, priority=10))
    world.submit(*gang("k", 2, priority=10, node_selector={"kind": "none"}))
    world.advance(30)
    assert not removed and not evicted(world)


@pytest.mark.parametrize(
    ("nodes", "times"),
    [
        pytest.param([4] * 5, 1, id="there is room for five of either sort, and six must have it"),
        pytest.param([5] * 4, 2, id="by numbers there could be room"),
    ],
)
def test_no_second_order_is_attempted_where_none_can_help(
    monkeypatch: pytest.MonkeyPatch, nodes: list[int], times: int
) -> None:
    world = a_world(nodes=0)
    world.submit(
        *(a_node(f"n{at}", cpu=cpu) for at, cpu in enumerate(nodes)),
        a_node("elsewhere", cpu=99, taints=["t=v:NoSchedule"]),
    )
    tried: list[int] = []
    attempt = Placer._all_or_none

    def counted(placer: Placer, pods: Sequence[Pod], *given: Any, **more: Any) -> UnitOutcome:
        tried.append(len(pods))
        return attempt(placer, pods, *given, **more)

    monkeypatch.setattr(Placer, "_all_or_none", counted)
    sizes: tuple[int | str, ...] = (3, 3, 3, "2500m", "2500m", "2500m")
    world.submit(*(member(f"{at}", {NAME: "g", MIN: "6"}, cpu=cpu) for at, cpu in enumerate(sizes)))
    world.run()
    assert not running(world) and len(tried) == times
