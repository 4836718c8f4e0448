"""No cluster that stays chosen is ever missing from all decisions: in any order of writes, if writes fail, and if the
controller crashes and another one takes over.
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
from stowplan.framework.placement.decision_groups import ChosenGroup
from stowplan.objects import kinds
from stowplan.objects.actions import Action
from stowplan.objects.changes import Put
from stowplan.objects.placements import MOST_IN_A_SLICE
from stowplan.placement import slices
from stowplan.placement.scheduler import PlacementScheduler
from stowplan.placement.slices import ExistingSlice
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


def missing_meanwhile(hub: Hub, before: set[str]) -> set[str]:
    """Return the clusters that stayed chosen, but were missing from all decisions at some moment in between."""
    stayed = before & set(hub.chosen())
    return {name for name in stayed for seen in hub.seen if not any(name in held for held in seen.values())}


def restarted(hub: Hub) -> None:
    """Let another controller take over, which only knows what the server shows."""
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
            assert missing_meanwhile(hub, before) == set()
            assert_in_order(hub)


def assert_in_order(hub: Hub) -> None:
    """Each chosen cluster is in one decision, no decision is too large, and the status lists all decisions."""
    decisions = hub.decisions()
    listed = [name for names in decisions.values() for name in names]
    assert len(listed) == len(set(listed))
    assert max(map(len, decisions.values())) <= MOST_IN_A_SLICE
    assert all(len(held) <= MOST_IN_A_SLICE for seen in hub.seen for held in seen.values())
    status = hub.placement().status
    assert sorted(name for group in status.decision_groups for name in group.decisions) == sorted(decisions)
    assert status.number_of_selected_clusters == len(listed)


def crash_after(writes: int) -> Callable[[Action], int]:
    """Return a `Hub.refuse` that accepts this many writes and no more."""
    count = itertools.count()
    return lambda _: 0 if next(count) < writes else 500


def test_350_clusters_and_a_crash_at_every_write() -> None:
    """The controller crashes after each write in turn; the next controller arrives at the same result."""
    for crashed_after in range(12):
        hub = Hub(*labelled(350), a_placement())
        hub.settle()
        assert [len(names) for names in hub.decisions().values()] == [100, 100, 100, 50]
        before = set(hub.chosen())
        hub.forget()
        hub.refuse = crash_after(crashed_after)
        hub.put(a_placement(generation=2, decisionStrategy=strategy(60, ["g2", "g0"])))
        hub.settle()
        restarted(hub)
        hub.refuse = lambda _: 0
        hub.later(10)
        assert missing_meanwhile(hub, before) == set()
        assert_in_order(hub)


# -- which decision lists which clusters


def names(count: int, start: int = 0) -> tuple[str, ...]:
    return tuple(f"c{number:04}" for number in range(start, start + count))


def laid_out(
    groups: list[ChosenGroup], current: dict[int, ExistingSlice]
) -> tuple[dict[int, tuple[int, int]], list[int]]:
    """Return group and number of clusters of each decision, and the surplus decisions."""
    found = slices.layout(groups, current)
    return {planned.number: (planned.index, len(planned.clusters)) for planned in found.slices}, found.surplus


ONE = ExistingSlice("0", "", names(100))
TWO = ExistingSlice("0", "", names(28, 100))


@pytest.mark.parametrize(
    ("groups", "current", "slices_", "surplus"),
    [
        pytest.param([ChosenGroup("", names(10))], {}, {1: (0, 10)}, [], id="10 clusters"),
        pytest.param([ChosenGroup("", names(101))], {}, {1: (0, 100), 2: (0, 1)}, [], id="101 clusters"),
        pytest.param([ChosenGroup("", ())], {}, {1: (0, 0)}, [], id="none"),
        pytest.param([ChosenGroup("", names(128))], {1: ONE, 2: TWO}, {1: (0, 100), 2: (0, 28)}, [], id="128 kept"),
        pytest.param([ChosenGroup("", names(10))], {1: ONE, 2: TWO}, {1: (0, 10)}, [2], id="128, then 10"),
        pytest.param([ChosenGroup("", ())], {1: ONE, 2: TWO}, {1: (0, 0)}, [2], id="128, then none"),
        pytest.param(
            [ChosenGroup("a", names(2)), ChosenGroup("", names(3, 2))], {}, {1: (0, 2), 2: (1, 3)}, [], id="two groups"
        ),
        pytest.param(
            [ChosenGroup("", names(128))], {1: ExistingSlice("7", "odd", names(100))}, {1: (0, 100), 2: (0, 28)}, [],
            id="labels of another group are corrected, and an object is added",
        ),
        pytest.param(
            [ChosenGroup("", names(99) + names(1, 500))], {1: ONE}, {1: (0, 100)}, [], id="one cluster is replaced"
        ),
        pytest.param(
            [ChosenGroup("", names(100, 1) + names(1, 500))], {1: ONE, 2: ExistingSlice("0", "", names(1, 100))},
            {1: (0, 100), 2: (0, 1)}, [], id="clusters stay in their object",
        ),
    ],
)  # fmt: skip
def test_layout(
    groups: list[ChosenGroup], current: dict[int, ExistingSlice], slices_: dict[int, Any], surplus: list[int]
) -> None:
    assert laid_out(groups, current) == (slices_, surplus)


def test_a_new_cluster_with_the_first_name_moves_no_other() -> None:
    found = slices.layout([ChosenGroup("", ("a", *names(128)))], {1: ONE, 2: TWO})
    assert [planned.clusters for planned in found.slices] == [list(names(100)), ["a", *names(28, 100)]]
    assert not any(planned.leaving for planned in found.slices)
