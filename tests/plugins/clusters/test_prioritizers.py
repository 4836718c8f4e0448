"""The scores of each prioritizer, as in Open Cluster Management's own tests, and our additions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.framework.placement.choice import ClusterScores
from stowplan.framework.placement.interfaces import Prioritizer
from stowplan.framework.placement.plugin_calls import call_cluster_score
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.placements import AddOnScore, ScoreCoordinate
from stowplan.plugins.clusters.add_on import AddOn, add_on
from stowplan.plugins.clusters.balance import Balance
from stowplan.plugins.clusters.resource_allocatable import ResourceAllocatableCPU, ResourceAllocatableMemory
from stowplan.plugins.clusters.steady import Steady
from tests.placement.fleets import a_cluster, a_decision, a_placement, a_score, a_view, chosen

NAMES = ("cluster1", "cluster2", "cluster3")
CPU, MEMORY = ResourceAllocatableCPU(), ResourceAllocatableMemory()


def three(**each: Any) -> list[Any]:
    """Three clusters; a keyword has a value for each of them, in order."""
    return [a_cluster(name, **{key: values[place] for key, values in each.items()}) for place, name in enumerate(NAMES)]


def scored(plugin: Prioritizer, objects: list[Any], *, ocm: bool = True) -> list[int | None]:
    clusters = a_view(a_placement(), objects, NAMES, ocm=ocm)
    found = call_cluster_score(EnabledPlugin("", plugin), a_placement(), clusters)
    assert isinstance(found, ClusterScores)
    present = np.ones(3, np.bool_) if found.present is None else found.present
    return [value if known else None for value, known in zip(found.values.tolist(), present.tolist(), strict=True)]


@pytest.mark.parametrize(
    ("plugin", "objects", "expected"),
    [
        pytest.param(Balance(), three(), [100, 100, 100], id="Balance: no decisions"),
        pytest.param(
            Balance(), [*three(), a_decision(["cluster1"], of="test")], [100, 100, 100], id="Balance: its own decision"
        ),
        pytest.param(
            Balance(), [*three(), a_decision(["cluster1"])], [-100, 100, 100], id="Balance: another placement's"
        ),
        pytest.param(
            Balance(),
            [*three(), a_decision(["cluster1", "cluster2"]), a_decision(["cluster1", "cluster3"], of="third")],
            [-100, 0, 0],
            id="Balance: two others",
        ),
        pytest.param(
            Balance(),
            [*three(), a_decision(["cluster1"], of="test", namespace="elsewhere")],
            [-100, 100, 100],
            id="Balance: a placement of the same name in another namespace is another",
        ),
        pytest.param(
            Balance(),
            [*three(), a_decision(["gone"], of="p1"), a_decision(["gone", "cluster1"], of="p2")],
            [0, 100, 100],
            id="Balance: the most chosen may be no candidate",
        ),
        pytest.param(Steady(), three(), [0, 0, 0], id="Steady: no decisions"),
        pytest.param(Steady(), [*three(), a_decision(["cluster1"], of="test")], [100, 0, 0], id="Steady: its own"),
        pytest.param(
            Steady(),
            [*three(), a_decision(["cluster1"], of="test"), a_decision(["cluster3"], of="test", number=2)],
            [100, 0, 100],
            id="Steady: its own, in two objects",
        ),
        pytest.param(Steady(), [*three(), a_decision(["cluster1"])], [0, 0, 0], id="Steady: another placement's"),
        pytest.param(
            MEMORY,
            three(memory=[("20", "100"), ("60", "100"), ("100", "100")]),
            [-100, 0, 100],
            id="memory 20, 60, 100",
        ),
        pytest.param(MEMORY, three(memory=[("50", "100")] * 3), [100, 100, 100], id="memory, all equal"),
        pytest.param(MEMORY, three(memory=[("0", "100")] * 3), [100, 100, 100], id="memory, all 0"),
        pytest.param(MEMORY, three(), [None, None, None], id="memory, not reported"),
        pytest.param(CPU, three(cpu=[("10", "10"), ("6", "10"), ("2", "10")]), [100, 0, -100], id="cpu 10, 6, 2"),
        pytest.param(CPU, three(cpu=[("5", "10")] * 3), [100, 100, 100], id="cpu, all equal"),
        pytest.param(CPU, three(cpu=[("0", "10")] * 3), [100, 100, 100], id="cpu, all 0"),
        pytest.param(CPU, three(), [None, None, None], id="cpu, not reported"),
        pytest.param(CPU, three(cpu=["10", "6", None]), [100, -100, None], id="cpu, not reported by one"),
        pytest.param(CPU, three(cpu=["10", "6", "0"]), [100, 19, -100], id="0.6 of the range is truncated"),
        pytest.param(AddOn("test", "score1"), three(), [0, 0, 0], id="add-on: no objects"),
        pytest.param(
            AddOn("test", "score1"), [*three(), a_score("cluster1", score1=30)], [30, 0, 0], id="add-on: only one"
        ),
        pytest.param(
            AddOn("test", "score1"),
            [*three(), *(a_score(name, score1=value) for name, value in zip(NAMES, (30, 40, 50), strict=True))],
            [30, 40, 50],
            id="add-on: all",
        ),
        pytest.param(
            AddOn("test", "score1"), [*three(), a_score("cluster1", other=30)], [0, 0, 0], id="add-on: another name"
        ),
        pytest.param(
            AddOn("test", "score1"),
            [*three(), a_score("cluster1", valid=0, score1=30)],
            [30, 0, 0],
            id="add-on: valid up to this very second",
        ),
    ],
)
def test_scores(plugin: Prioritizer, objects: list[Any], expected: list[int | None]) -> None:
    assert scored(plugin, objects) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param((1, 0, 0), (-100, 100, 100), id="1 at the most"),
        pytest.param((2, 1, 0), (-100, 0, 100), id="2 at the most"),
        pytest.param((3, 2, 1), (-100, -32, 32), id="3 at the most"),
        pytest.param((4, 3, 2), (-100, -50, 0), id="4 at the most"),
        pytest.param((4, 1, 0), (-100, 50, 100), id="1 of 4"),
    ],
)
def test_balance_by_number_of_decisions(counts: tuple[int, ...], expected: tuple[int, ...]) -> None:
    decisions = [
        a_decision([name for name, count in zip(NAMES, counts, strict=True) if count > turn], of=f"p{turn}")
        for turn in range(max(counts))
    ]
    assert scored(Balance(), [*three(), *decisions]) == list(expected)


def test_an_expired_score_counts_0_with_a_warning() -> None:
    objects = [
        *three(),
        a_score("cluster1", valid=-30, score1=30),
        a_score("cluster2", valid=30, score1=40),
        a_score("cluster3", score1=50),
    ]
    clusters, plugin = a_view(a_placement(), objects, NAMES), AddOn("test", "score1")
    assert plugin.score(a_placement(), clusters).tolist() == [0, 40, 50]
    assert plugin.warning(clusters) == "AddOnPlacementScores cluster1/test expired"


@pytest.mark.parametrize(
    ("when_missing", "weight", "expected"),
    [
        pytest.param("zero", 1, [0, 40, 0], id="the middle of the range"),
        pytest.param("min", 1, [-100, 40, -100], id="the lowest score"),
        pytest.param("min", -1, [100, 40, 100], id="the highest score, with a negative weight"),
        pytest.param("lastKnown", 1, [30, 40, 0], id="the last known score, or 0"),
        pytest.param("", 1, [0, 40, 0], id="the default"),
    ],
)
def test_when_missing(when_missing: str, weight: int, expected: list[int]) -> None:
    objects = [*three(), a_score("cluster1", valid=-30, score1=30), a_score("cluster2", score1=40)]
    made = add_on(ScoreCoordinate("AddOn", add_on=AddOnScore("test", "score1"), when_missing=when_missing), weight)
    assert isinstance(made, EnabledPlugin)
    assert scored(made.plugin, objects, ocm=False) == expected
    assert scored(made.plugin, objects, ocm=True) == [0, 40, 0]


def test_the_last_known_score_outlives_its_object() -> None:
    clusters, plugin = a_view(a_placement(), three(), NAMES, ocm=False), AddOn("test", "score1", "lastKnown")
    plugin.score(a_placement(), clusters)
    clusters.fleet.table.put_score(a_score("cluster1", score1=30))
    clusters.fleet.table.remove_score(a_score("cluster1"))
    later = clusters.where(np.arange(3))
    assert plugin.score(a_placement(), later).tolist() == [30, 0, 0]


def test_a_cluster_without_a_score_can_be_excluded() -> None:
    coordinate = {"type": "AddOn", "addOn": {"resourceName": "test", "scoreName": "s"}, "whenMissing": "exclude"}
    placement = a_placement(
        prioritizerPolicy={"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": 1}]}
    )
    objects = [*three(), a_score("cluster1", s=-50), a_score("cluster2", valid=-1, s=90)]
    choice = chosen(placement, objects, ocm=False)
    assert choice.names == ["cluster1"]
    assert list(choice.dropped()) == [
        ("cluster2", "AddOn/test/s", "its score test/s is no longer valid"),
        ("cluster3", "AddOn/test/s", "its score test/s is missing"),
    ]
    assert chosen(placement, objects, ocm=True).names == ["cluster2", "cluster3", "cluster1"]
