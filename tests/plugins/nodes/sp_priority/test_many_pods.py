"""SPPriority for owners of several pods: many at once, each noted and counted once."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.decision import NotYet
from stowplan.objects.actions import Action, Bind, Patch
from stowplan.objects.changes import Result
from stowplan.plugins.nodes.sp_priority import history as sp_history
from stowplan.plugins.nodes.sp_priority.plugin import SPPriority
from stowplan.testing.builders import a_node, a_state
from tests.plugins.nodes.sp_priority.replicas import a_replica, an_owner
from tests.plugins.nodes.sp_priority.worlds import NOTE, Shop, stage, text_of


def test_a_decision_knows_of_the_one_before_although_the_watch_is_late() -> None:
    shop = Shop(skipMultiReplica=False)
    shop.make()
    shop.world.pause_watch()
    first = shop.node()
    shop.make()
    shop.world.deliver_object(shop.world.pod(shop.name))
    shop.world.run()
    given_to = shop.world.scheduler.assumed_pods[f"uid-of-default-{shop.name}"].node_name
    assert given_to != first
    assert shop.name not in shop.world.bindings, "its note waits until the first is seen"
    shop.world.resume_watch()
    shop.world.advance(3)
    assert shop.counts == {first: 1, given_to: 1} and shop.history["latest"] == given_to


def test_two_pods_of_one_owner_at_once() -> None:
    shop = Shop("AB", owner=an_owner(replicas=2), skipMultiReplica=False)
    shop.world.submit(a_replica("one"), a_replica("two"))
    shop.world.advance(5)
    assert sorted(shop.world.bindings.values()) == ["A", "B"], "the second knows where the first goes"
    assert shop.counts == {"A": 1, "B": 1}


def test_a_burst_of_one_owner_is_written_in_a_few_patches() -> None:
    shop = Shop(owner=an_owner(replicas=50), skipMultiReplica=False)
    shop.world.pause_watch()
    for number in range(50):
        shop.world.deliver_object(a_replica(f"p{number}"))
    shop.world.run()
    shop.world.resume_watch()
    shop.world.advance(10)
    assert len(shop.world.bindings) == 50 == sum(shop.counts.values())
    assert shop.counts == Counter(shop.world.bindings.values())
    assert sum(isinstance(action, Patch) for action in shop.world.actions) <= 5
    assert not any("FailedScheduling" in each.reason for each in shop.world.events)


def test_more_pods_than_may_be_noted_at_a_time_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sp_history, "MOST_PENDING", 5)
    shop = Shop(owner=an_owner(replicas=20), skipMultiReplica=False)
    shop.world.pause_watch()
    for number in range(20):
        shop.world.deliver_object(a_replica(f"p{number}"))
    shop.world.run()
    shop.world.resume_watch()
    shop.world.advance(10)
    notes = [each for each in shop.world.actions if isinstance(each, Patch) and stage(each) == NOTE]
    noted = [json.loads(text_of(each)).get("pending", {}) for each in notes]
    assert max(map(len, noted)) == 5
    assert len(shop.world.bindings) == 20 and shop.counts == Counter(shop.world.bindings.values())
    assert not any("FailedScheduling" in each.reason for each in shop.world.events)


def test_notes_of_pods_that_came_back_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sp_history, "MOST_PENDING", 2)
    shop = Shop(owner=an_owner(replicas=4), skipMultiReplica=False)
    shop.world.answers = lambda action: Result(action.id, 500 if isinstance(action, Bind) else 200, "no")
    shop.world.submit(a_replica("one", cpu=1), a_replica("two", cpu=1))
    shop.world.advance(1)
    assert len(shop.history["pending"]) == 2 and not shop.world.bindings
    shop.world.submit(*(a_node(name, unschedulable=True) for name in "AB"), a_node("C", cpu="500m"))
    shop.world.answers = shop.world.succeed
    shop.world.advance(30)
    shop.world.submit(a_replica("three"))
    shop.world.advance(30)
    assert shop.world.bindings == {"three": "C"} and shop.counts == {"C": 1}


def test_those_who_wait_for_a_note_that_fails_are_noted_by_the_next() -> None:
    shop, refused = Shop(owner=an_owner(replicas=2), skipMultiReplica=False), list[Action]()

    def answer(action: Action) -> Result:
        if isinstance(action, Patch) and len(refused) < 2:
            refused.append(action)
            return Result(action.id, 409, "no")
        return Result(action.id)

    shop.world.answers = answer
    shop.world.submit(a_replica("one"), a_replica("two"))
    shop.world.advance(30)
    assert len(shop.world.bindings) == 2 == sum(shop.counts.values())


def test_a_pod_for_which_there_is_no_room_is_not_taken_for_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its neighbour, which is noted already, was given another node: the note about that is not this pod's."""
    monkeypatch.setattr(sp_history, "MOST_PENDING", 1)
    one, two = a_replica("one"), a_replica("two")
    owner = an_owner({"latest": "", "node_count": {}, "pending": {one.uid: "A"}}, replicas=2)
    state, plugin = a_state(nodes="ABC", pods=[one, two], others=[owner]), SPPriority(skip_multi_replica=False)
    plugin.reserve(one, "B", Cluster(state))
    plugin._unconfirmed.record(one.uid)
    plugin.reserve(two, "C", Cluster(state))
    assert list(plugin.pre_bind(two, "C", Cluster(state))) == []
    assert plugin.pre_bound(two, "C", Cluster(state)) == NotYet(frozenset({("ReplicaSet", "default/web")}))
    (note,) = plugin.pre_bind(one, "B", Cluster(state))
    assert json.loads(text_of(note))["pending"] == {one.uid: "B"}
