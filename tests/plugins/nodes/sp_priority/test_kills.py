"""SPPriority when its scheduler is killed at any step, or anything else goes wrong: each pod counts once."""

from __future__ import annotations

from collections import Counter
from itertools import cycle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stowplan.objects.actions import Action
from stowplan.objects.changes import Result
from tests.plugins.nodes.sp_priority.replicas import an_owner
from tests.plugins.nodes.sp_priority.worlds import BIND, COUNT, NOTE, Shop, never_twice, stage


@pytest.mark.parametrize("at", [NOTE, BIND, COUNT])
@pytest.mark.parametrize("done", [pytest.param(False, id="before"), pytest.param(True, id="after")])
def test_killed_at_any_step_nothing_is_lost_and_nothing_counted_twice(at: str, done: bool) -> None:
    shop = Shop()
    shop.kill(at, done=done)
    node = shop.node()
    shop.world.advance(3)
    assert shop.history == {"latest": node, "node_count": {node: 1}}
    shop.delete()
    shop.make()
    assert shop.node() != node


@pytest.mark.parametrize(
    ("at", "done", "counted"),
    [
        pytest.param(NOTE, False, 0, id="before it is noted"),
        pytest.param(NOTE, True, 1, id="noted, not bound: nobody can tell, and it hardly ever happens"),
        pytest.param(BIND, True, 1, id="bound, not counted"),
        pytest.param(COUNT, False, 1, id="bound, and known to be"),
        pytest.param(COUNT, True, 1, id="counted"),
    ],
)
def test_the_pod_is_deleted_while_nobody_runs(at: str, done: bool, counted: int) -> None:
    shop = Shop()
    shop.kill(at, done=done, deleted=True)
    shop.world.advance(3)
    assert sum(shop.counts.values()) == counted and "pending" not in shop.history
    last = shop.history.get("latest", "")
    shop.make()
    assert shop.node() != last


KILLS = st.none() | st.tuples(st.sampled_from((NOTE, BIND, COUNT)), st.booleans())


@given(st.lists(st.tuples(KILLS, st.booleans()), min_size=1, max_size=8))
def test_whenever_it_is_killed_the_counts_add_up(rounds: list[tuple[tuple[str, bool] | None, bool]]) -> None:
    shop, nodes = Shop(), list[str]()
    for kill, quick in rounds:
        if kill is None:
            shop.make()
        else:
            shop.kill(kill[0], done=kill[1])
        nodes.append(shop.node())
        shop.world.advance(0 if quick else 3)
        shop.delete()
    shop.world.advance(5)
    assert shop.counts == Counter(nodes) and "pending" not in shop.history
    assert never_twice(nodes)
    assert len(shop.world.bound) == len(nodes)


FINE, REFUSED, LOST, UNANSWERED = "fine", "refused", "lost", "done, but not answered"
OUTCOMES = st.lists(st.sampled_from((FINE, FINE, FINE, REFUSED, LOST, UNANSWERED)), min_size=1, max_size=12)
DEEDS = st.lists(st.sampled_from(("make", "make", "delete", "lag", "catch up", "wait", "kill")), max_size=25)


@given(OUTCOMES, DEEDS, st.booleans())
@example([FINE, REFUSED], ["lag", "make", "wait", "delete", "kill"], False)  # noted for one node, then bound to another
def test_whatever_goes_wrong_each_pod_of_an_owner_of_several_counts_once(
    outcomes: list[str], deeds: list[str], alone: bool
) -> None:
    shop = Shop(owner=an_owner(replicas=1 if alone else 3), skipMultiReplica=alone)
    world, bound, turn = shop.world, dict[str, str](), cycle(outcomes)

    def answer(action: Action) -> Result | None:
        outcome = next(turn) if stage(action) else FINE
        if outcome == UNANSWERED:
            world.perform(action)
        return {FINE: Result(action.id), REFUSED: Result(action.id, 409, "no")}.get(outcome)

    world.answers, world.checks = answer, False  # while the watch is late, the scheduler need not agree with the server
    for deed in deeds:
        there = [pod for pod in world.pods() if pod.node_name]
        bound |= {pod.uid: pod.node_name for pod in there}
        match deed:
            case "make":
                shop.make()
                world.deliver_object(world.pod(shop.name))
            case "delete" if there:
                world.delete(there[0])
            case "lag":
                world.pause_watch()
            case "catch up":
                world.resume_watch()
            case "wait":
                world.advance(4)
            case "kill":
                shop.restart()
        world.run()
    world.answers = world.succeed
    world.resume_watch()
    world.advance(120)
    world.check()
    bound |= {pod.uid: pod.node_name for pod in world.pods()}
    assert shop.counts == Counter(bound.values()) and "pending" not in shop.history
    assert len(world.bound) == len(bound) == shop.made
