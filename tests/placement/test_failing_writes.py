"""Placements whose writes are refused, answered late, or not answered."""

from __future__ import annotations

import pytest

from stowplan.objects.actions import Create, Patch
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
