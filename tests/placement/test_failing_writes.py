"""Placements whose writes are refused, answered late, or not answered."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from stowplan.objects.actions import Action, Create, Patch, ReadObject
from tests.placement.fleets import (
    a_cluster,
    a_placement,
    some_clusters,
)
from tests.placement.hub import Hub, reasons, sorts

SATISFIED = "PlacementSatisfied"


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(Create, id="the decision cannot be created"),
        pytest.param(Patch, id="the decision cannot be written"),
    ],
)
def test_a_refused_write_is_reported_and_retried_with_backoff(kind: type) -> None:
    hub = Hub(*some_clusters(2), a_placement())
    hub.refuse = lambda action: 403 if isinstance(action, kind) else 0
    hub.settle()
    assert reasons(hub)[-1] == "BindFailed"
    assert hub.events[-1].note.endswith(": 403 no")
    assert [hub.later(seconds) for seconds in (0.5, 0.5, 1, 1, 2, 2)] == [0, 1, 0, 1, 0, 1]
    hub.refuse = lambda _: 0
    hub.later(60)
    assert hub.chosen() == ["c001", "c002"]
    assert hub.condition(SATISFIED) == ("True", "AllDecisionsScheduled")


def test_a_write_without_an_answer_is_given_up() -> None:
    hub = Hub(*some_clusters(2), a_placement())
    lost = hub.engine.step(hub.now)
    assert len(lost) == 1
    hub.later(29)
    assert hub.writes == []
    hub.later(3)
    assert hub.chosen() == ["c001", "c002"]


def test_a_change_during_writes_is_decided_afterwards() -> None:
    hub = Hub(*some_clusters(2), a_placement())
    begun = hub.engine.step(hub.now)
    hub.put(a_cluster("c003"))
    assert hub.engine.next_deadline() != 0.0
    hub.perform(begun)
    hub.settle()
    assert hub.chosen() == ["c001", "c002", "c003"]


def test_writes_that_the_server_does_not_show_are_assumed_for_a_while() -> None:
    hub = Hub(*some_clusters(2), a_placement())
    hub.deaf = True
    hub.settle()
    hub.forget()
    hub.engine.requeue(["test/test"])
    hub.settle()
    assert hub.writes == []


def test_the_writes_of_a_deleted_placement_are_dropped() -> None:
    hub = Hub(*some_clusters(2), a_placement())
    begun = hub.engine.step(hub.now)
    hub.gone("Placement", "test/test")
    hub.perform(begun)
    hub.settle()
    assert sorts(hub) == ["Create PlacementDecision"]
    assert hub.engine.next_deadline() is None


def groups_of(size: int) -> dict[str, Any]:
    return {"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": size}}}


@pytest.mark.parametrize("sizes", [(4, 3, 4), (3, 6, 3), (6, 2, 6), (4, 3, 5), (3, 6, 2)], ids=str)
@pytest.mark.parametrize("number", range(12))
def test_a_lost_answer_and_a_late_watch_never_cost_a_cluster(sizes: tuple[int, int, int], number: int) -> None:
    """A write is carried out, its answer is lost, and the watch does not show it when the placement changes again."""
    names = {each.name for each in some_clusters(12)}
    hub = Hub(*some_clusters(12), a_placement(**groups_of(sizes[0])))
    hub.settle()
    hub.forget()
    countdown = count()

    def lose(action: Action) -> bool:
        hub.deaf = hub.deaf or next(countdown) == number
        return hub.deaf and len(hub.writes) - 1 == number

    hub.lose = lose
    hub.put(a_placement(generation=2, **groups_of(sizes[1])))
    hub.settle()
    hub.put(a_placement(generation=3, **groups_of(sizes[2])))
    hub.settle()
    hub.later(3)
    hub.catch_up()
    hub.later(60)
    assert [names - {name for listed in seen.values() for name in listed} for seen in hub.seen if seen] == [
        set() for seen in hub.seen if seen
    ]
    assert [len(listed) for listed in hub.decisions().values()] == [sizes[2]] * (12 // sizes[2]) + [
        12 % sizes[2]
    ] * bool(12 % sizes[2])


def test_decisions_in_doubt_are_read_before_the_next_decision() -> None:
    hub = Hub(*some_clusters(2), a_placement())
    hub.settle()
    hub.forget()
    hub.deaf, hub.lose = True, lambda action: isinstance(action, Patch) and action.kind == "PlacementDecision"
    hub.put(a_cluster("c003"))
    hub.settle()
    assert hub.reads == [] and reasons(hub)[-1] == "BindFailed"
    hub.lose = lambda _: False
    hub.refuse = lambda action: 503 if isinstance(action, ReadObject) else 0
    before = hub.engine.decisions
    hub.later(10)
    assert hub.engine.decisions == before and reasons(hub)[-1] == "BindFailed"
    hub.refuse = lambda _: 0
    hub.later(10)
    assert hub.reads == ["test/test-decision-1"] and hub.engine.decisions == before + 1
    assert hub.chosen() == ["c001", "c002", "c003"]


def test_without_the_right_to_read_what_the_watch_shows_has_to_do() -> None:
    hub = Hub(*some_clusters(2), a_placement())
    hub.settle()
    hub.forget()
    hub.lose = lambda action: isinstance(action, Patch) and action.kind == "PlacementDecision"
    hub.put(a_cluster("c003"))
    hub.settle()
    hub.lose, hub.refuse = lambda _: False, lambda action: 403 if isinstance(action, ReadObject) else 0
    hub.later(10)
    assert hub.chosen() == ["c001", "c002", "c003"]
    assert [each.note for each in hub.events if "read" in each.note] == ["test/test-decision-1 cannot be read: 403 no"]
