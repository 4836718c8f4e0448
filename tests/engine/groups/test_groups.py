"""Groups of pods: gated until complete, attempted as a whole, and bound as a whole or not at all."""

from __future__ import annotations

import pytest

from stowplan.engine.pods import assumed
from stowplan.engine.unit import QueueStage
from stowplan.framework.config.settings import Extender
from stowplan.framework.decision import RejectPod
from stowplan.objects.actions import Action, Ask, Bind, Evict
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.small_plugins import Gangs, Notes, Patience, profiles


def a_gang_world(nodes: int, cpu: int = 1) -> World:
    named = [a_node(f"n{number}", cpu=cpu) for number in range(nodes)]
    return World(nodes=named, profiles=profiles(postBind=[Gangs()], permit=[Patience()]))


def members(count: int, needed: int, name: str = "g") -> list[Pod]:
    labels = {"gang": name, "min": str(needed)}
    return [a_pod(f"{name}{number}", cpu=1, labels=labels) for number in range(count)]


def test_a_group_waits_until_it_is_complete() -> None:
    world = a_gang_world(nodes=3)
    first, *rest = members(3, needed=3)
    world.submit(first)
    world.run()
    assert {stage for _, stage in world.scheduler.queue.stages()} == {QueueStage.GATED}
    world.submit(*rest)
    world.run()
    assert len(world.bindings) == 3


def test_a_group_that_does_not_fit_leaves_nothing_behind() -> None:
    world = a_gang_world(nodes=2)
    world.submit(*members(3, needed=3))
    world.run()
    assert not world.bindings and not world.scheduler.state.pods
    condition = world.pod("g0").condition("PodScheduled")
    assert condition is not None and "Pod group default/g" in condition.message
    world.submit(a_node("n2", cpu=1))
    world.advance(1)
    assert len(world.bindings) == 3


def test_a_group_backs_off_even_if_the_queue_is_empty() -> None:
    """A pod would be attempted at once; a group after 1, 2, 4 … seconds, however many events may help it."""
    world = a_gang_world(nodes=1)
    world.submit(*members(9, needed=9))
    tried = []
    for number in range(1, 8):
        world.submit(a_node(f"more-{number}", cpu=1))
        world.advance(0.5)
        (unit,) = world.scheduler.queue.units.values()
        tried.append(unit.attempts)
    assert tried == [1, 2, 2, 2, 2, 3, 3]


def test_members_beyond_the_minimum_may_stay_pending() -> None:
    world = a_gang_world(nodes=2)
    world.submit(*members(3, needed=2))
    world.run()
    assert len(world.bindings) == 2
    world.submit(a_node("n2", cpu=1))
    world.advance(15)
    assert len(world.bindings) == 3


def test_of_two_groups_with_room_for_one_exactly_one_runs_whole() -> None:
    world = a_gang_world(nodes=3)
    for one, other in zip(members(3, 3, "a"), members(3, 3, "b"), strict=True):
        world.submit(one, other)
    world.run()
    assert {name[0] for name in world.bindings} in ({"a"}, {"b"})
    assert len(world.bindings) == 3
    for pod in world.pods():
        if pod.node_name:
            world.delete(pod)
    world.advance(15)
    assert len(world.bindings) == 3


def test_the_condition_of_a_failed_member_names_the_bound_members() -> None:
    world = a_gang_world(nodes=3)
    world.answers = lambda action: Result(action.id, 500 * is_bind_of(action, "g1") or 200, "disk full")
    world.submit(*members(3, needed=3))
    world.run()
    assert set(world.bindings) == {"g0", "g2"}
    (said,) = world.event_notes("g1", "FailedScheduling")
    assert said == ("binding rejected: disk full. Pod group default/g: 2 bound or about to be (g0, g2), 1 not (g1)")
    world.answers = lambda action: Result(action.id)
    world.advance(2)
    assert set(world.bindings) == {"g0", "g1", "g2"}


def a_patient_member(name: str, seconds: int = 60) -> Pod:
    return a_pod(name, cpu=1, labels={"gang": "g", "min": "3", "patience": str(seconds)})


def test_no_member_is_bound_before_all_are_ready() -> None:
    world = a_gang_world(nodes=3)
    world.submit(*members(2, needed=3), a_patient_member("g2"))
    world.run()
    assert not world.bindings and len(world.scheduler.assumed_pods) == 3
    world.allow(world.pod("g2").uid, "Patience")
    assert set(world.bindings) == {"g0", "g1", "g2"}


@pytest.mark.parametrize("ends", ["it is refused", "its time is up", "it is deleted"])
def test_all_members_are_rolled_back_when_one_fails(ends: str) -> None:
    world = a_gang_world(nodes=3)
    world.submit(*members(2, needed=3), last := a_patient_member("g2"))
    world.run()
    if ends == "it is refused":
        world.reject(last.uid, "Patience", "no")
    elif ends == "its time is up":
        world.advance(60)
    else:
        world.delete(last)
    world.check()
    assert not world.bindings
    world.run()
    assert not world.bindings


def test_a_group_that_is_not_ready_in_time_is_rolled_back() -> None:
    """A group has ten seconds, even if a permit of a member would wait longer."""
    world = a_gang_world(nodes=3)
    world.submit(*members(2, needed=3), a_patient_member("g2", 300))
    world.run()
    assert len(world.scheduler.assumed_pods) == 3
    world.advance(10)
    told = "pod group default/g timed out: 1 of its pods were not ready to be bound after 10s"
    assert any(told in each for each in world.event_notes("g0"))
    assert not world.bindings and not world.event_notes("g0", "Scheduled")


def test_each_attempt_of_a_group_has_its_own_deadline() -> None:
    world = a_gang_world(nodes=3)
    world.submit(*members(2, needed=3), a_patient_member("g2", 300))
    world.advance(60)
    late = [each for each in world.event_notes("g0") if "timed out" in each]
    assert len(late) >= 3 and not world.bindings


def test_the_group_continues_when_another_scheduler_binds_the_missing_member() -> None:
    world = a_gang_world(nodes=3)
    world.submit(*members(2, needed=3), last := a_patient_member("g2"))
    world.run()
    assert not world.bindings
    world.submit(assumed(last, "n0"))
    world.check()
    assert set(world.bindings) == {"g0", "g1", "g2"}


def test_the_other_members_are_bound_when_an_extra_member_is_deleted() -> None:
    world = a_gang_world(nodes=4)
    world.submit(*members(3, needed=3), last := a_patient_member("g3"))
    world.run()
    assert not world.bindings
    world.delete(last)
    assert set(world.bindings) == {"g0", "g1", "g2"}


def test_a_late_member_waits_with_its_group() -> None:
    world = a_gang_world(nodes=4)
    world.submit(*members(2, needed=3), a_patient_member("g2", 30))
    world.run()
    world.submit(a_pod("g3", cpu=1, labels={"gang": "g", "min": "3"}))
    world.run()
    assert not world.bindings, "three are placed, none may be bound yet"
    world.allow(world.pod("g2").uid, "Patience")
    assert len(world.bindings) == 4


def test_a_bind_plugin_that_raises_for_one_member_prevents_all_bindings() -> None:
    class Picky:
        def bind(self, pod: Pod, node_name: str) -> Bind | None:
            if pod.name == "g2":
                raise KeyError("oops")
            return None

    named = [a_node(f"n{number}", cpu=1) for number in range(3)]
    world = World(nodes=named, profiles=profiles(postBind=[Gangs()], bind=[Picky()]))
    world.submit(*members(3, needed=3))
    world.run()
    assert not world.bindings and not any(isinstance(action, Bind) for action in world.actions)


def test_a_group_that_falls_below_its_minimum_is_gated_again() -> None:
    world = a_gang_world(nodes=1)
    world.submit(*(gang := members(3, needed=3)))
    world.run()
    assert {stage for _, stage in world.scheduler.queue.stages()} == {QueueStage.UNSCHEDULABLE}
    world.delete(gang[0])
    assert {stage for _, stage in world.scheduler.queue.stages()} == {QueueStage.GATED}


def test_a_gated_group_is_queued_when_another_scheduler_binds_its_missing_member() -> None:
    world = a_gang_world(nodes=3)
    first, second, third = members(3, needed=3)
    world.submit(first, second)
    world.run()
    world.submit(assumed(third, "n2"))
    world.run()
    assert set(world.bindings) == {"g0", "g1", "g2"}


def test_the_rest_of_a_group_does_not_run_when_the_others_are_deleted() -> None:
    world = a_gang_world(nodes=2)
    world.submit(*(gang := members(3, needed=2)))
    world.run()
    assert len(world.bindings) == 2
    world.delete(*(pod for pod in world.pods() if pod.node_name))
    world.advance(400)
    assert not world.bindings and len(gang) == 3


def test_a_pod_moves_from_one_group_to_another() -> None:
    world = a_gang_world(nodes=4)
    world.submit(*members(1, needed=2, name="a"), *members(1, needed=2, name="b"))
    world.run()
    assert not world.bindings
    world.submit(a_pod("a0", cpu=1, labels={"gang": "b", "min": "2"}))
    world.run()
    assert set(world.bindings) == {"a0", "b0"}


@pytest.mark.parametrize(
    ("left", "needed"), [pytest.param(1, 2, id="one of two"), pytest.param(2, 3, id="two of three")]
)
def test_members_that_are_deleted_while_extenders_are_asked(left: int, needed: int) -> None:
    extender = Extender(url_prefix="http://one", filter_verb="f", node_cache_capable=True)
    named = [a_node(f"n{number}", cpu=1) for number in range(4)]
    world = World(nodes=named, profiles=profiles(postBind=[Gangs()]), extenders=(extender,))
    world.answers = lambda action: None if isinstance(action, Ask) else Result(action.id)
    world.submit(*(gang := members(needed, needed=needed)))
    world.run()
    world.delete(*gang[left:])
    for ask in [action for action in world.actions if isinstance(action, Ask)]:
        world.deliver_result(Result(ask.id, body={"NodeNames": list(ask.nodes)}))
    world.run()
    assert not world.bindings
    assert {stage for _, stage in world.scheduler.queue.stages()} == {QueueStage.GATED}


def test_a_group_that_waits_for_permits_is_preempted_without_a_deletion() -> None:
    world = a_gang_world(nodes=1, cpu=2)
    world.submit(*(a_pod(f"g{n}", cpu=1, labels={"gang": "g", "min": "2", "patience": "60"}) for n in range(2)))
    world.run()
    world.submit(a_pod("big", cpu=2, priority=9))
    world.run()
    assert world.bindings == {"big": "n0"} and len(world.pods()) == 3
    assert not any(isinstance(action, Evict) for action in world.actions)


def test_many_refused_bindings_record_one_event_per_pod() -> None:
    world = a_gang_world(nodes=1, cpu=100)
    world.answers = lambda action: Result(action.id, 503 if isinstance(action, Bind) else 200, "no")
    world.submit(*members(50, needed=50))
    world.run()
    assert len(world.event_notes("g0")) == 1 and sum(len(world.event_notes(f"g{n}")) for n in range(50)) == 50
    (unit,) = world.scheduler.queue.units.values()
    assert unit.queued.errors == 1 and all(len(note) < 400 for note in world.event_notes("g7"))


def is_bind_of(action: Action, name: str) -> bool:
    return isinstance(action, Bind) and action.pod.name == name


def test_a_permit_that_refuses_one_member_rolls_back_all() -> None:
    log: list[str] = []
    picky = Notes("picky", log, permit=RejectPod(("not today",)))
    named = [a_node(f"n{number}", cpu=1) for number in range(3)]
    world = World(nodes=named, profiles=profiles(postBind=[Gangs()], reserve=[picky], permit=[picky]))
    world.submit(*members(3, needed=3))
    world.run()
    assert not world.bindings and not world.scheduler.state.pods
    assert {world.event_notes(name)[-1] for name in ("g0", "g1", "g2")} == {"0/1 nodes are available: 1 not today."}


def test_a_group_asks_extenders_about_all_its_members_at_once() -> None:
    extender = Extender(url_prefix="http://one", filter_verb="f", node_cache_capable=True)
    named = [a_node(f"n{number}", cpu=1) for number in range(4)]
    world = World(nodes=named, profiles=profiles(postBind=[Gangs()]), extenders=(extender,))
    world.extender = lambda ask: Result(ask.id, body={"nodeNames": [name for name in ask.nodes if name != "n0"]})
    world.submit(*members(3, needed=3))
    world.run()
    assert set(world.bindings.values()) == {"n1", "n2", "n3"}
    assert sum(isinstance(action, Ask) for action in world.actions) <= 6


def test_an_extra_member_that_joins_others_leaves_nothing_in_flight() -> None:
    """The extra member waits for a permit when another one joins. They are bound together, and no events are kept."""
    world = a_gang_world(nodes=5)
    world.submit(*members(3, needed=3))
    world.run()
    labels = {"gang": "g", "min": "3"}
    world.submit(a_pod("g3", cpu=1, labels=labels | {"patience": "3"}))
    world.run()
    world.submit(a_pod("g4", cpu=99, labels=labels))
    world.run()
    world.advance(5)
    assert not world.scheduler.queue.inflight.units and len(world.bindings) == 3
