"""Whoever watches decisions never misses a cluster that stays chosen: not in any order of writes, nor when they fail,
nor when the controller dies in between and another takes over.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan.framework.placement import decision_groups as grouping
from stowplan.objects import kinds
from stowplan.objects.actions import Action
from stowplan.objects.changes import Put
from stowplan.objects.placements import MOST_IN_A_SLICE
from stowplan.placement import slices
from stowplan.placement.scheduler import PlacementScheduler
from stowplan.plugins import clusters
from tests.placement.fleets import a_cluster, a_placement
from tests.placement.hub import Hub


def labelled(count: int, groups: int = 3) -> list[Any]:
    return [a_cluster(f"c{n:03}", labels={"group": f"g{n % groups}"}) for n in range(count)]


def strategy(size: int, names: Iterable[str]) -> dict[str, Any]:
    listed = [
        {"groupName": name, "groupClusterSelector": {"labelSelector": {"matchLabels": {"group": name}}}}
        for name in names
    ]
    return {"groupStrategy": {"clustersPerDecisionGroup": size, "decisionGroups": listed}}


def vanished(hub: Hub, before: set[str]) -> set[str]:
    """Clusters that were chosen before and are now, but were in no object at some moment in between."""
    stayed = before & set(hub.chosen())
    return {name for name in stayed for seen in hub.seen if not any(name in held for held in seen.values())}


def restarted(hub: Hub) -> None:
    """Another controller takes over, which knows nothing but what the server shows."""
    hub.engine = PlacementScheduler(clusters.policy())
    for (kind, _), document in hub.objects.items():
        hub.engine.handle(Put(kinds.convert(kinds.KINDS[kind], document)), hub.now)


@st.composite
def specs(draw: Any) -> dict[str, Any]:
    excluded = draw(st.lists(st.integers(0, 23), max_size=8))
    away = [{"key": "name", "operator": "NotIn", "values": [f"c{n:03}" for n in excluded]}] if excluded else []
    selector = {"labelSelector": {"matchExpressions": away}}
    found: dict[str, Any] = {"predicates": [{"requiredClusterSelector": selector}]}
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(["g0", "g1", "g2"]), unique=True))
        found["decisionStrategy"] = strategy(draw(st.integers(0, 9)), names)
    if draw(st.booleans()):
        found["numberOfClusters"] = draw(st.integers(0, 24))
    return found


@given(specs(), st.lists(specs(), min_size=1, max_size=4), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=120, deadline=None)
def test_no_cluster_that_stays_is_ever_in_no_slice(
    first: dict[str, Any], changes: list[dict[str, Any]], dice: random.Random, rough: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "MOST_IN_A_SLICE", 4)
        patch.setattr(grouping, "MOST_IN_A_SLICE", 4)
        named = [a_cluster(f"c{n:03}", labels={"group": f"g{n % 3}", "name": f"c{n:03}"}) for n in range(24)]
        hub = Hub(*named, a_placement(**first))
        hub.shuffle = lambda actions: dice.sample(actions, len(actions))
        hub.settle()
        for generation, spec in enumerate(changes, 2):
            before = set(hub.chosen())
            hub.forget()
            if rough:
                hub.refuse = lambda _: dice.choice([0, 0, 0, 0, 500])
            hub.put(a_placement(generation=generation, **spec))
            hub.settle()
            if rough and dice.random() < 0.5:
                restarted(hub)
            hub.refuse = lambda _: 0
            hub.later(1000)
            assert vanished(hub, before) == set()
            assert_in_order(hub)


def assert_in_order(hub: Hub) -> None:
    """Every chosen cluster is in one object, none has too many, and the status lists all objects."""
    decisions = hub.decisions()
    listed = [name for names in decisions.values() for name in names]
    assert len(listed) == len(set(listed))
    assert max(map(len, decisions.values())) <= MOST_IN_A_SLICE
    assert all(len(held) <= MOST_IN_A_SLICE for seen in hub.seen for held in seen.values())
    status = hub.placement().status
    assert sorted(name for group in status.decision_groups for name in group.decisions) == sorted(decisions)
    assert status.number_of_selected_clusters == len(listed)


def dying_after(writes: int) -> Callable[[Action], int]:
    """Return a `Hub.refuse` that accepts this many writes and no more."""
    count = itertools.count()
    return lambda _: 0 if next(count) < writes else 500


def test_350_clusters_a_death_at_every_write() -> None:
    """The controller dies after each of the writes in turn; the next one brings it to the same end."""
    for died_after in range(12):
        hub = Hub(*labelled(350), a_placement())
        hub.settle()
        assert [len(names) for names in hub.decisions().values()] == [100, 100, 100, 50]
        before = set(hub.chosen())
        hub.forget()
        hub.refuse = dying_after(died_after)
        hub.put(a_placement(generation=2, decisionStrategy=strategy(60, ["g2", "g0"])))
        hub.settle()
        restarted(hub)
        hub.refuse = lambda _: 0
        hub.later(10)
        assert vanished(hub, before) == set()
        assert_in_order(hub)
