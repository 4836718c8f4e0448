"""Decisions equal those of the slow reference, on random fleets, from scratch and after random changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.columns.fleet.clusters import Fleet
from stowplan.framework.placement import evaluation
from stowplan.framework.placement.choice import PlacementChoice, PlacementQuestion
from stowplan.objects import kinds
from stowplan.objects.clusters import AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding
from stowplan.objects.placements import Placement, PlacementDecision
from stowplan.plugins import clusters
from tests.placement import random_fleets, reference
from tests.placement.fleets import NOW, a_binding, own
from tests.placement.hub import Hub


def rebuilt(placement: Placement, objects: list[Any], now: float, ocm: bool) -> PlacementChoice:
    fleet = Fleet()
    sets = ClusterSets(fleet)
    for found in objects:
        match found:
            case ManagedCluster():
                fleet.put(found)
            case AddOnPlacementScore():
                fleet.put_score(found)
            case ManagedClusterSet() | ManagedClusterSetBinding():
                sets.put(found)
            case PlacementDecision():
                fleet.count_decision(found.cluster_names, 1)
    question = PlacementQuestion(placement, fleet, now, fleet.rows(own(placement, objects)), ocm)
    return evaluation.choose(question, sets, clusters.policy(ocm=ocm))


def described(choice: PlacementChoice) -> reference.Outcome:
    named = choice.question.fleet.named
    return reference.Outcome(
        named(choice.candidates),
        named(choice.stages[0].rows),
        named(choice.stages[1].rows),
        choice.totals_by_name(),
        choice.names,
        choice.unscheduled,
    )


@given(random_fleets.placements(), random_fleets.fleets(), st.booleans(), st.sampled_from([0.0, 5.0, 20.0]))
@settings(max_examples=150, deadline=None)
def test_same_decisions_on_random_fleets(placement: Placement, objects: list[Any], ocm: bool, later: float) -> None:
    expected = reference.choose(reference.World(objects, NOW + later, ocm), placement)
    assert described(rebuilt(placement, objects, NOW + later, ocm)) == expected


@pytest.mark.full
@given(random_fleets.placements(), random_fleets.fleets(), st.booleans(), st.sampled_from([0.0, 5.0, 20.0]))
@settings(max_examples=5000, deadline=None)
def test_same_decisions_on_many_random_fleets(
    placement: Placement, objects: list[Any], ocm: bool, later: float
) -> None:
    expected = reference.choose(reference.World(objects, NOW + later, ocm), placement)
    assert described(rebuilt(placement, objects, NOW + later, ocm)) == expected


# -- a history: whatever changes, placements that do not look back end where a fresh look would put them


def everything(hub: Hub) -> list[Any]:
    return [kinds.convert(kinds.KINDS[kind], document) for (kind, _), document in hub.objects.items()]


CHANGES = (
    "cluster",
    "part",
    "part",
    "part",
    "score",
    "score",
    "unscore",
    "leave",
    "bind",
    "ask",
    "wait",
    "wait",
    "wait",
)


def change(data: st.DataObject, hub: Hub) -> None:
    name = data.draw(st.sampled_from(random_fleets.NAMES))
    present = ("ManagedCluster", name) in hub.objects
    match data.draw(st.sampled_from(CHANGES)):
        case "cluster":
            hub.put(data.draw(random_fleets.clusters(name)))
        case "part" if present:
            old = kinds.convert(ManagedCluster, hub.objects["ManagedCluster", name])
            hub.put(data.draw(random_fleets.partly(old)))
        case "leave" if present:
            hub.gone("ManagedCluster", name)
        case "score":
            hub.put(data.draw(random_fleets.scores(name)))
        case "unscore":
            key = f"{name}/{data.draw(st.sampled_from(['r1', 'r2']))}"
            if ("AddOnPlacementScore", key) in hub.objects:
                hub.gone("AddOnPlacementScore", key)
        case "bind":
            bound = data.draw(st.sampled_from(random_fleets.SETS))
            if ("ManagedClusterSetBinding", f"test/{bound}") in hub.objects:
                hub.gone("ManagedClusterSetBinding", f"test/{bound}")
            else:
                hub.put(a_binding(bound))
        case "ask":
            generation = hub.placement("test/p0").metadata.generation + 1
            hub.put(data.draw(random_fleets.placements("p0", steady=True, generation=generation)))
        case "wait":
            hub.later(data.draw(st.sampled_from([1.0, 5.0, 11.0])))


def check(hub: Hub, ocm: bool) -> None:
    objects = everything(hub)
    for placement in [each for each in objects if isinstance(each, Placement)]:
        expected = reference.choose(reference.World(objects, hub.now, ocm), placement)
        assert described(hub.engine.choose(placement, hub.now)) == expected
        assert hub.chosen(placement.key) == sorted(expected.names)


def run(data: st.DataObject, steps: int) -> None:
    """A fleet with all kinds of objects, and then one change after the other."""
    ocm = data.draw(st.booleans())
    hub = Hub(*random_fleets.sets(), *(a_binding(name) for name in random_fleets.SETS), ocm=ocm, reschedule=1e9)
    for name in random_fleets.NAMES:
        hub.put(data.draw(random_fleets.clusters(name)))
        hub.put(data.draw(random_fleets.scores(name)))
    for number in range(4):
        hub.put(data.draw(random_fleets.placements(f"p{number}", steady=True)))
    for _ in range(data.draw(st.integers(1, steps))):
        if data.draw(st.booleans()):
            hub.settle()
            check(hub, ocm)
        change(data, hub)
    hub.settle()
    check(hub, ocm)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_every_affected_placement_is_requeued_after_random_changes(data: st.DataObject) -> None:
    run(data, 6)


@pytest.mark.full
@given(st.data())
@settings(max_examples=1500, deadline=None)
def test_every_affected_placement_is_requeued_after_many_random_changes(data: st.DataObject) -> None:
    run(data, 20)
