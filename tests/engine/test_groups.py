"""Groups of pods: held back until complete, tried whole, committed whole or not at all."""

from __future__ import annotations

from stowplan.engine.unit import Stage
from stowplan.framework.settings import Extender
from stowplan.framework.verdict import Refuse
from stowplan.objects.actions import Action, Ask, Bind
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from tests.builders import a_node, a_pod
from tests.engine.policies import Gangs, Notes, Patience, profiles
from tests.world import World


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
    assert {stage for _, stage in world.scheduler.queue.stages()} == {Stage.GATED}
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
    world.run()
    assert len(world.bindings) == 3


def test_more_members_than_needed_may_stay_behind() -> None:
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


def test_a_member_that_cannot_be_bound_is_told_who_got_through() -> None:
    world = a_gang_world(nodes=3)
    world.answers = lambda action: Result(action.id, 500 * is_bind_of(action, "g1") or 200, "disk full")
    world.submit(*members(3, needed=3))
    world.run()
    assert set(world.bindings) == {"g0", "g2"}
    (said,) = world.said("g1", "FailedScheduling")
    assert said == (
        "binding rejected: disk full. Pod group default/g: 2 of its pods are bound or about to be (g0, g2),"
        " 1 are not (g1)"
    )
    world.answers = lambda action: Result(action.id)
    world.advance(2)
    assert set(world.bindings) == {"g0", "g1", "g2"}


def test_members_not_sent_to_be_bound_are_released_when_one_fails() -> None:
    world = a_gang_world(nodes=3)
    waits = {"gang": "g", "min": "3", "patience": "60"}
    world.answers = lambda action: Result(action.id, 500 * is_bind_of(action, "g0") or 200, "disk full")
    world.submit(*members(2, needed=3), a_pod("g2", cpu=1, labels=waits))
    world.run()
    assert set(world.bindings) == {"g1"} and not world.scheduler.placings
    (unit,) = world.scheduler.queue.units.values()
    assert {pod.name for pod in unit.pods.values()} == {"g0", "g2"} and unit.needed == 2
    assert "1 of its pods are bound or about to be (g1), 2 are not (g0, g2)" in world.said("g2")[-1]


def is_bind_of(action: Action, name: str) -> bool:
    return isinstance(action, Bind) and action.pod.name == name


def test_one_member_refused_by_a_permit_gives_back_what_all_took() -> None:
    log: list[str] = []
    picky = Notes("picky", log, permit=Refuse(("not today",)))
    named = [a_node(f"n{number}", cpu=1) for number in range(3)]
    world = World(nodes=named, profiles=profiles(postBind=[Gangs()], reserve=[picky], permit=[picky]))
    world.submit(*members(3, needed=3))
    world.run()
    assert not world.bindings and not world.scheduler.state.pods
    assert {world.said(name)[-1] for name in ("g0", "g1", "g2")} == {"0/1 nodes are available: 1 not today."}


def test_a_group_asks_extenders_about_all_its_members_at_once() -> None:
    extender = Extender(url_prefix="http://one", filter_verb="f", node_cache_capable=True)
    named = [a_node(f"n{number}", cpu=1) for number in range(4)]
    world = World(nodes=named, profiles=profiles(postBind=[Gangs()]), extenders=(extender,))
    world.extender = lambda ask: Result(ask.id, body={"nodeNames": [name for name in ask.nodes if name != "n0"]})
    world.submit(*members(3, needed=3))
    world.run()
    assert set(world.bindings.values()) == {"n1", "n2", "n3"}
    assert sum(isinstance(action, Ask) for action in world.actions) <= 6
