"""SPPriority over time: pods that are deleted and come anew, schedulers that are killed, servers that say no."""

from __future__ import annotations

from collections import Counter, deque

import pytest

from stowplan.objects.actions import Action, Bind, Patch, Record
from stowplan.objects.changes import Gone, Result
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.sp_priority.plugin import STATE
from stowplan.testing.builders import a_node
from tests.plugins.nodes.sp_priority.replicas import a_replica, an_owner
from tests.plugins.nodes.sp_priority.worlds import BIND, COUNT, NOTE, Shop, never_twice, stage

# -- the plain way


def test_a_pod_is_noted_before_it_is_bound_and_counted_afterwards() -> None:
    shop = Shop()
    shop.make()
    node = shop.node()
    assert shop.history == {"latest": "", "node_count": {}, "pending": {"uid-of-default-web-1": node}}
    shop.world.advance(2)
    assert shop.history == {"latest": node, "node_count": {node: 1}}
    assert [stage(action) for action in shop.world.actions if stage(action)] == [NOTE, BIND, COUNT]


@pytest.mark.parametrize("pause", [pytest.param(0, id="at once"), pytest.param(3, id="after a while")])
def test_deleted_ten_times_it_never_returns_to_where_it_was(pause: float) -> None:
    shop, nodes = Shop(), list[str]()
    for _ in range(11):
        shop.make()
        nodes.append(shop.node())
        shop.world.advance(pause)
        shop.delete()
    assert never_twice(nodes)
    shop.world.advance(3)
    assert shop.counts == Counter(nodes) and shop.history["latest"] == nodes[-1]
    assert set(nodes) == set("ABC") and max(shop.counts.values()) <= 5, "and is everywhere equally often, more or less"
    unconfirmed = shop.plugin._unconfirmed
    assert (
        not unconfirmed._assumed
        and not unconfirmed._owner_of
        and not unconfirmed._to_record
        and len(unconfirmed._writes) <= 1
    )


def test_nothing_is_written_for_pods_that_it_is_not_for() -> None:
    shop = Shop(owner=an_owner(replicas=2))
    shop.make()
    shop.world.advance(5)
    assert shop.world.bindings and shop.history == {}


def test_counts_of_nodes_that_are_gone_are_dropped() -> None:
    shop = Shop(owner=an_owner({"latest": "A", "node_count": {"A": 3, "gone": 9, "B": 1}}))
    shop.make()
    assert shop.node() == "C"
    shop.world.advance(2)
    assert shop.counts == {"A": 3, "B": 1, "C": 1}


def test_an_annotation_has_counts_of_so_many_nodes() -> None:
    shop, nodes = Shop("ABCDEF", maxNodes=3), list[str]()
    for _ in range(12):
        shop.make()
        nodes.append(shop.node())
        shop.world.advance(2)
        assert len(shop.counts) <= 3 and shop.history["latest"] == nodes[-1] in shop.counts
        shop.delete()
    assert never_twice(nodes)


def test_half_life() -> None:
    shop = Shop(owner=an_owner({"latest": "A", "node_count": {"A": 8, "B": 8}}), halfLife=2)
    for _ in range(2):
        shop.make()
        shop.node()
        shop.delete()
    shop.world.advance(2)
    assert shop.counts["A"] + shop.counts["B"] in (8, 9) and shop.counts.get("C", 0) <= 1


def test_a_pod_that_comes_before_its_owner_waits_for_it() -> None:
    shop = Shop()
    owner = shop.world.objects["ReplicaSet", "default/web"]
    shop.world.delete(owner)
    shop.make()
    shop.world.advance(1)
    assert not shop.world.bindings
    assert "waiting for ReplicaSet default/web to be seen" in shop.world.event_notes(shop.name)[0]
    shop.world.submit(an_owner())
    shop.world.run()
    assert shop.world.bindings, "at once"
    shop.world.advance(2)
    assert sum(shop.counts.values()) == 1


# -- what the server says


@pytest.mark.parametrize("status", [409, 422, 500, 0])
@pytest.mark.parametrize("at", [NOTE, BIND, COUNT])
def test_a_refused_write_is_tried_again(at: str, status: int) -> None:
    shop, refused = Shop(), list[Action]()

    def answer(action: Action) -> Result:
        if stage(action) == at and not refused:
            refused.append(action)
            return Result(action.id, status, "no")
        return Result(action.id)

    shop.world.answers = answer
    shop.make()
    shop.world.advance(30)
    assert refused and sum(shop.counts.values()) == 1 and "pending" not in shop.history


def test_what_others_write_meanwhile_is_not_lost() -> None:
    shop = Shop()
    shop.world.pause_watch()
    shop.world.submit(an_owner({"latest": "B", "node_count": {"A": 1, "B": 2}, "note": "mine"}))
    shop.make()
    shop.world.deliver_object(shop.world.pod(shop.name))
    shop.world.run()
    assert not shop.world.bindings, "it was decided without knowing that"
    shop.world.resume_watch()
    assert shop.node() == "C"
    shop.world.advance(3)
    assert shop.history == {"latest": "C", "node_count": {"A": 1, "B": 2, "C": 1}, "note": "mine"}


@pytest.mark.parametrize("pause", [0, 3])
def test_somebody_who_puts_back_what_was_there_holds_up_nobody(pause: float) -> None:
    """As a Deployment's controller does with what `kubectl rollout undo` made an annotation of the Deployment."""
    copy = {"latest": "A", "node_count": {"A": 1}}
    shop = Shop(owner=an_owner(copy))
    for _ in range(5):
        shop.make()
        shop.world.advance(pause)
        shop.world.submit(an_owner(copy))
        assert shop.node() != "A"
        shop.world.submit(an_owner(copy))
        shop.delete()
    shop.world.advance(5)
    assert not shop.plugin._unconfirmed._assumed and not any("in time" in each.note for each in shop.world.events)


def test_a_pod_whose_binding_a_list_skipped_counts() -> None:
    """The watch broke down; the next list has neither the pod nor what became of it."""
    shop = Shop()
    shop.make()
    unbound = shop.world.pod(shop.name)
    shop.world.pause_watch()
    shop.world.run()
    node = shop.world.bindings[shop.name]
    del shop.world.objects["Pod", unbound.key]
    shop.world.undelivered = deque(each for each in shop.world.undelivered if not isinstance(each.object, Pod))
    shop.world.undelivered.append(Gone(unbound))
    shop.world.resume_watch()
    shop.world.advance(3)
    assert shop.history == {"latest": node, "node_count": {node: 1}}


def test_a_pod_that_goes_before_it_is_bound_does_not_count() -> None:
    shop = Shop()
    shop.world.answers = lambda action: None if isinstance(action, Bind) else Result(action.id)
    shop.make()
    shop.world.run()
    assert shop.history["pending"]
    shop.delete()
    shop.world.answers = shop.world.succeed
    shop.world.advance(3)
    assert shop.history == {"latest": "", "node_count": {}}


def test_nor_does_it_hide_where_the_last_one_was() -> None:
    shop = Shop("AB")
    shop.make()
    last = shop.node()
    shop.delete()
    shop.world.answers = lambda action: None if isinstance(action, Bind) else Result(action.id)
    shop.make()
    shop.world.run()
    assert shop.history["pending"][f"uid-of-default-{shop.name}"] != last
    shop.delete()
    shop.world.answers = shop.world.succeed
    shop.make()
    assert shop.node() != last, "at once, before anything is counted"


def test_a_pod_that_somebody_else_binds_counts_where_it_is() -> None:
    shop = Shop()
    shop.world.answers = lambda action: None if isinstance(action, Bind) else Result(action.id)
    shop.make()
    shop.world.run()
    (given_to,) = shop.history["pending"].values()
    elsewhere = next(node for node in "ABC" if node != given_to)
    shop.world.submit(a_replica(shop.name, node=elsewhere))
    shop.world.advance(3)
    assert shop.history == {"latest": elsewhere, "node_count": {elsewhere: 1}}


def test_scaled_up_in_between_what_was_noted_is_counted_all_the_same() -> None:
    shop = Shop()
    shop.make()
    node = shop.node()
    found = shop.world.objects["ReplicaSet", "default/web"]
    shop.world.submit(an_owner(found.annotations[STATE], replicas=3))
    shop.world.advance(3)
    assert shop.history == {"latest": node, "node_count": {node: 1}}


# -- other owners


def test_the_history_of_a_deployment_survives_a_rollout() -> None:
    shop = Shop(owner=an_owner(kind="Deployment", name="shop"), stateOwner="Deployment")
    nodes = []
    for name in ("first", "second", "third"):
        shop.world.submit(an_owner(name=name, of=("Deployment", "shop")))
        shop.make(of=("ReplicaSet", name))
        nodes.append(shop.node())
    shop.world.advance(3)
    assert len(set(nodes)) == 3 and shop.counts == Counter(nodes)


def test_what_a_deployment_controller_copies_to_a_replica_set_is_left_alone() -> None:
    shop = Shop(owner=an_owner(kind="Deployment", name="shop"), stateOwner="Deployment")
    copy = {"latest": "A", "node_count": {"A": 1}, "pending": {"gone": "B"}}
    shop.world.submit(an_owner(copy, of=("Deployment", "shop")))
    shop.make()
    shop.node()
    shop.world.advance(3)
    assert sum(shop.counts.values()) == 1
    assert {action.kind for action in shop.world.actions if isinstance(action, Patch)} == {"Deployment"}


def test_a_stateful_set_keeps_its_own() -> None:
    shop = Shop(owner=an_owner(kind="StatefulSet"), statefulSets=True)
    nodes: list[str] = []
    for _ in range(3):
        shop.made = 0  # its pod has the same name each time, but not the same uid
        shop.make(of=("StatefulSet", "web"), uid=f"uid-{len(nodes)}")
        nodes.append(shop.node())
        shop.delete()
    shop.world.advance(3)
    assert len(set(nodes)) == 3 and shop.counts == Counter(nodes)


# -- what cannot be read, and what cannot be outvoted


def test_what_cannot_be_read_is_left_as_it_is_and_that_is_said() -> None:
    shop = Shop(owner=an_owner("somebody else's"))
    shop.make()
    shop.world.advance(5)
    assert shop.world.bindings
    assert shop.world.objects["ReplicaSet", "default/web"].annotations[STATE] == "somebody else's"
    (event,) = (each for each in shop.world.events if each.reason == "ScheduleStateUnreadable")
    assert isinstance(event, Record) and event.type == "Warning"
    assert event.note == (
        f"The annotation {STATE} of ReplicaSet default/web cannot be read: it is left as it is, and nothing is counted "
        "until it is removed"
    )


def test_strict_holds_against_all_that_speaks_for_the_last_node() -> None:
    shop = Shop("", strict=True, weight=1)
    tainted = [a_node(name, taints=["k=v:PreferNoSchedule"]) for name in "BC"]
    shop.world.submit(a_node("A", cpu=64, memory="256Gi"), *tainted)
    nodes = []
    for _ in range(6):
        shop.make(cpu=1)
        nodes.append(shop.node())
        shop.delete()
    assert nodes[::2] == ["A"] * 3 and set(nodes[1::2]) == {"B", "C"}
