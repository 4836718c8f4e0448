"""Groups over time: backoff, order, and what remains after failures."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.failure import Failure, FailureHandler
from stowplan.engine.unit import Unit
from stowplan.objects.actions import Action, Bind, Evict
from stowplan.objects.changes import Result
from stowplan.objects.pod_groups import SigsPodGroup
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_budget, a_node, a_pod
from stowplan.testing.world import World
from tests.engine.groups.test_groups import a_gang_world, is_bind_of, members
from tests.engine.small_plugins import Gangs, profiles
from tests.plugins.nodes.coscheduling.pod_groups import (
    MIN,
    NAME,
    a_pod_group,
    a_world,
    created,
    evicted,
    gang,
    member,
    refuse_binding,
    running,
)


def binds(world: World) -> int:
    return sum(isinstance(action, Bind) for action in world.actions)


# -- after a failure


class Controller:
    """A controller that creates three pods of a group, and new ones for deleted pods. `replace_all`: the other pods are
    replaced, too.
    """

    def __init__(self, world: World, *, replace_all: bool) -> None:
        self._world, self._replace_all, self._made = world, replace_all, 0

    def act(self) -> None:
        if len(self._world.pods()) < 3 and self._replace_all:
            self._world.delete(*self._world.pods())
        for _ in range(3 - len(self._world.pods())):
            self._world.submit(*gang("g", 1, 3, first=self._made, at=self._made))
            self._made += 1


@pytest.mark.parametrize(
    "replace_all", [False, True], ids=["evicted pods are created again", "all pods are created again"]
)
def test_a_group_that_is_evicted_repeatedly_backs_off_as_a_group(replace_all: bool) -> None:
    world = a_world(nodes=3, args={"onPartialBind": "Evict"})
    controller = Controller(world, replace_all=replace_all)
    refuse_binding(world, *(f"g-{3 * each + 2}" if replace_all else "g-2" for each in range(100)))
    for _ in range(30):
        controller.act()
        world.run()
    assert binds(world) == 3 and len(evicted(world)) == 2
    for _ in range(60):
        world.advance(1)
        controller.act()
    assert 3 * 5 <= binds(world) <= 3 * 11, "after 1, 2, 4, 8 and each 10 seconds"
    world.answers = world.succeed
    world.advance(12)
    assert running(world) == {"g": 3}


# -- what is left when something breaks


def test_a_member_that_is_being_bound_stays_assumed_when_other_members_are_deleted() -> None:
    world = a_gang_world(nodes=5)
    world.answers = lambda action: None if isinstance(action, Bind) else Result(action.id)
    world.submit(*members(3, needed=3))
    world.run()
    world.submit(a_pod("g3", cpu=1, labels={"gang": "g", "min": "3", "patience": "60"}))
    world.run()
    world.delete(world.pod("g2"))
    world.delete(world.pod("g3"))
    steps = {placing.pod.name: placing.step for placing in world.scheduler.assumed_pods.values()}
    assert steps == {"g0": BindStep.BINDING, "g1": BindStep.BINDING} and len(world.scheduler.state.pods) == 2


def test_an_error_after_a_group_was_assumed_leaves_nothing_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    requeue = FailureHandler.requeue

    def breaks(self: FailureHandler, unit: Unit, failure: Failure, now: float) -> None:
        if "runs without this pod" in failure.message:
            raise KeyError("oops")
        requeue(self, unit, failure, now)

    world = a_world(nodes=2)
    monkeypatch.setattr(FailureHandler, "requeue", breaks)
    world.submit(*gang("g", 3, 2))
    world.run()
    world.check()
    assert not world.bindings and not world.scheduler.state.pods
    assert any("internal error: KeyError" in each for each in world.event_notes("g-0"))
    monkeypatch.undo()
    world.advance(15)
    assert running(world) == {"g": 2}


def test_a_group_whose_minimum_cannot_be_read_is_not_placed() -> None:
    class Moody(Gangs):
        ill = False

        def group_of(self, pod: Pod, cluster: Any) -> Any:
            if self.ill:
                raise KeyError("oops")
            return super().group_of(pod, cluster)

    moody = Moody()
    world = World(nodes=[a_node(f"n{at}", cpu=1) for at in range(3)], profiles=profiles(postBind=[moody]))
    world.submit(*members(3, needed=3))
    moody.ill = True
    world.run()
    assert not world.bindings and any("oops" in each for each in world.event_notes("g0"))
    moody.ill = False
    world.advance(15)
    assert len(world.bindings) == 3


# -- who is let in, and in which order


def labelled(group: SigsPodGroup) -> SigsPodGroup:
    metadata = msgspec.structs.replace(group.metadata, labels={"new": "label"})
    return msgspec.structs.replace(group, metadata=metadata)


def test_the_others_are_queued_when_a_deviating_oldest_member_is_deleted() -> None:
    world = a_world(nodes=3)
    world.answers = lambda _: None  # conditions are not answered
    (odd,) = gang("g", 1, 2, first=9, at=-5, priority=7)
    world.submit(odd, *gang("g", 3, 3))
    world.advance(5)
    assert not binds(world)
    world.delete(odd)
    world.run()
    assert binds(world) == 3


def test_a_deviating_member_does_not_set_the_priority_of_its_group() -> None:
    world = a_world(nodes=2)
    world.submit(*(created(a_pod(f"b{at}", cpu=1, node=f"n{at}", priority=5000), 0) for at in range(2)))
    world.submit(*gang("g", 1, 2, first=9, at=5, priority=4000), *gang("g", 2, preemptionPolicy="Never"))
    world.submit(*(created(a_pod(f"vip{at}", cpu=1, priority=1000, preemptionPolicy="Never"), 1) for at in range(2)))
    world.advance(3)
    world.delete(world.pod("b0"), world.pod("b1"))
    world.advance(20)
    assert running(world) == {"vip0": 1, "vip1": 1}


def test_extra_members_of_a_running_group_do_not_age() -> None:
    world = a_world(nodes=3, args={"starvationSeconds": 10})
    world.submit(a_pod("other", cpu=1, node="n0", priority=2000), *gang("g", 3, 2))
    world.advance(30)
    assert running(world) == {"g": 2, "other": 1}
    world.submit(created(a_pod("vip", cpu=1, priority=1000, preemptionPolicy="Never"), 40))
    world.advance(1)
    world.delete(world.pod("other"))
    world.advance(20)
    assert running(world) == {"g": 2, "vip": 1}


def test_a_partially_bound_group_is_attempted_first() -> None:
    world = a_world(nodes=3)
    world.submit(*gang("g", 3), *(a_pod(f"vip{at}", cpu=1, priority=9, preemptionPolicy="Never") for at in range(2)))
    world.submit(*gang("g", 1, 3, first=9, node="n0"))
    world.run()
    assert running(world) == {"g": 3}


def test_extra_members_of_a_running_group_do_not_prevent_nominations_of_others() -> None:
    world = a_world(nodes=4, args={"starvationSeconds": 10, "preemption": False})
    world.submit(*gang("r", 2, at=-5, node="n2"))
    world.submit(*gang("r", 1, 2, first=7, at=-5, cpu=2))
    world.submit(*(a_pod(f"s{at}", cpu=1, node=f"n{node}") for at, node in enumerate((0, 1, 3))))
    world.advance(15)
    world.delete(world.pod("s0"))  # the pod that is too large is requeued
    world.advance(5)
    world.submit(a_pod("s0", cpu=1, node="n0"), *gang("g", 2))
    for number in range(3, 18):
        world.advance(15)
        world.submit(created(a_pod(f"s{number}", cpu=1), 59))
        leaves = next((pod for pod in world.pods() if pod.node_name and pod.name.startswith("s")), None)
        if leaves is not None:
            world.delete(leaves)
    assert running(world).get("g") == 2


@pytest.mark.parametrize(
    ("nodes", "before", "after", "tried"),
    [
        pytest.param(2, a_pod_group("p", 3), a_pod_group("p", 2), 2, id="fewer pods are enough"),
        pytest.param(3, a_pod_group("p", 3, minResources={"cpu": "5"}), a_pod_group("p", 3), 3, id="less room is"),
        pytest.param(2, a_pod_group("p", 3), labelled(a_pod_group("p", 3)), 0, id="it asks for the same"),
    ],
)
def test_a_group_is_requeued_when_its_object_asks_for_less(nodes: int, before: Any, after: Any, tried: int) -> None:
    world = a_world(nodes=nodes)
    labels = {"scheduling.x-k8s.io/pod-group": "p"}
    world.submit(before, *(created(a_pod(f"p{at}", cpu=1, labels=labels), at) for at in range(3)))
    world.advance(30)
    said = len(world.event_notes("p0"))
    assert not world.bindings
    world.submit(after)
    world.advance(30)
    assert len(world.bindings) == tried and (tried or len(world.event_notes("p0")) == said)


# -- bound in part


def test_the_partial_binding_is_reported_though_the_rest_is_attempted_repeatedly() -> None:
    world = a_world(nodes=3, args={"partialBindDeadlineSeconds": 20})
    world.answers = lambda action: None if is_bind_of(action, "g-2") else Result(action.id)
    world.submit(*gang("g", 3))
    world.advance(40)
    assert len(world.event_notes("g-2", "PodGroupBoundInPart")) == 1
    world.advance(100)
    assert 2 <= len(world.event_notes("g-2", "PodGroupBoundInPart")) <= 6


def test_the_partial_binding_may_be_reported_at_once_and_not_endlessly() -> None:
    world = a_world(nodes=3, args={"partialBindDeadlineSeconds": 0})
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.run()
    assert len(world.event_notes("g-2", "PodGroupBoundInPart")) == 1
    world.advance(60)
    assert 4 <= len(world.event_notes("g-2", "PodGroupBoundInPart")) <= 7


def test_an_eviction_that_is_always_refused_backs_off_and_is_reported_once() -> None:
    world = a_world(nodes=3, args={"onPartialBind": "Evict"})

    def answer(action: Action) -> Result:
        refused = isinstance(action, Evict) or is_bind_of(action, "g-2")
        return Result(action.id, 403, "no") if refused else Result(action.id)

    world.answers = answer
    world.submit(*gang("g", 3))
    world.advance(60)
    tries = sum(isinstance(action, Evict) and action.pod.name == "g-0" for action in world.actions)
    assert 8 <= tries <= 10, "after 1, 2, 4, 8 and each 10 seconds"
    assert len(world.event_notes("g-0", "PodGroupTakenBack")) == 1
    world.answers = world.succeed
    world.advance(10)
    assert not running(world)


def test_a_group_that_a_budget_protects_is_not_evicted_and_an_event_says_so() -> None:
    world = a_world(nodes=3, args={"onPartialBind": "Evict", "partialBindDeadlineSeconds": 20})
    selected: dict[str, Any] = {"gang-of": "g"}
    world.submit(a_budget("keep", **selected))
    refuse_binding(world, "g-2")
    labels = {NAME: "g", MIN: "3", "gang-of": "g"}
    world.submit(*(member(f"g-{at}", labels) for at in range(3)))
    world.advance(25)
    assert not evicted(world) and running(world) == {"g": 2}
    assert world.event_notes("g-2", "PodGroupBoundInPart")[0].endswith("; a PodDisruptionBudget protects g-0, g-1")
    world.submit(a_budget("keep", allowed=2, **{"gang-of": "g"}))
    world.advance(30)
    assert evicted(world) == ["g-0", "g-1"]


# -- what many members cost


class Counting(Gangs):
    """A plugin that counts its calls."""

    asked = 0

    def group_of(self, pod: Pod, cluster: Any) -> Any:
        self.asked += 1
        return super().group_of(pod, cluster)


def come(world: World, pods: list[Pod]) -> None:
    for pod in pods:
        world.submit(pod)


def go(world: World, pods: list[Pod]) -> None:
    come(world, pods)
    world.run()
    for pod in pods:
        world.delete(pod)


def are_refused(world: World, pods: list[Pod]) -> None:
    sent: list[Action] = []
    world.answers = lambda action: sent.append(action) if isinstance(action, Bind) else Result(action.id)
    world.submit(a_node("n", cpu=len(pods)))
    come(world, pods)
    world.run()
    for action in sent:
        world.deliver_result(Result(action.id, 503, "no"))
    assert len(sent) == len(pods)


@pytest.mark.parametrize(
    ("happen", "needed", "gated"),
    [
        pytest.param(come, 80, False, id="the last one completes the gang"),
        pytest.param(come, 2, False, id="they come beyond the minimum"),
        pytest.param(come, 2, True, id="they come with scheduling gates"),
        pytest.param(go, 80, False, id="a gang goes"),
        pytest.param(go, 2, False, id="those beyond the minimum go"),
        pytest.param(are_refused, 80, False, id="the binding of each is refused"),
    ],
)
def test_each_member_costs_the_same_however_many_there_are(happen: Any, needed: int, gated: bool) -> None:
    counting = Counting()
    world = World(profiles=profiles(postBind=[counting]), checks=False)
    more: dict[str, Any] = {"schedulingGates": [{"name": "wait"}]} if gated else {}
    labels = {"gang": "g", "min": str(needed)}
    happen(world, [a_pod(f"g{at}", cpu=1, labels=labels, **more) for at in range(80)])
    assert counting.asked <= 80 * 16
