"""What cluster plugins see of a fleet, and what a view notes as read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stowplan.columns.fleet.one_cluster import FLEET, RESOURCES, WHOLE
from stowplan.columns.fleet.views import Clusters
from tests.placement.fleets import NOW, a_cluster, a_decision, a_placement, a_score, a_view

NAMES = ("c1", "c2", "c3")
FLEET_OF_THREE = [
    a_cluster("c1", labels={"region": "eu"}, claims={"os": "linux"}, cpu=("1500m", "2"), memory="1Gi"),
    a_cluster("c2", labels={"region": "us"}, taints=["slow:PreferNoSelect"]),
    a_cluster("c3", of="", cpu="4"),
    a_cluster("c4", cpu="64", terminating=True),
    a_score("c1", "cost", hourly=30),
    a_score("c2", "cost", valid=-1, hourly=70),
    a_decision(["c1", "c2"]),
    a_decision(["c2"], of="test"),
]


def view(*, track: bool = False) -> Clusters:
    return a_view(a_placement(), FLEET_OF_THREE, NAMES, track=track)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        pytest.param(lambda c: c.label("region") == "eu", [True, False, False], id="a label's value"),
        pytest.param(lambda c: c.label("region") != "eu", [False, True, True], id="not this value, or none"),
        pytest.param(lambda c: c.label("region").present, [True, True, False], id="which have a label"),
        pytest.param(lambda c: np.array(c.label("region").values), ["eu", "us", None], id="a label's values"),
        pytest.param(lambda c: c.claim("os") == "linux", [True, False, False], id="a claim"),
        pytest.param(lambda c: c.name == "c2", [False, True, False], id="a name"),
        pytest.param(lambda c: c.allocatable["cpu"], [1500, 0, 4000], id="cpu in thousandths, 0 if not reported"),
        pytest.param(lambda c: c.capacity["cpu"], [2000, 0, 4000], id="the capacity"),
        pytest.param(lambda c: c.allocatable["memory"], [2**30, 0, 0], id="memory in bytes"),
        pytest.param(lambda c: c.allocatable["none/such"], [0, 0, 0], id="a resource that no cluster has"),
        pytest.param(lambda c: c.score("cost", "hourly").values, [30, 0, 0], id="a score: 0 if it has expired"),
        pytest.param(lambda c: c.score("cost", "hourly").present, [True, False, False], id="which scores are valid"),
        pytest.param(lambda c: c.score("cost", "hourly").last, [30, 70, 0], id="the last known scores"),
        pytest.param(lambda c: c.current, [False, True, False], id="what the placement has"),
        pytest.param(lambda c: c.decisions, [1, 1, 0], id="how many other placements have a cluster"),
        pytest.param(lambda c: c.taints.where(bool), [False, True, False], id="taints"),
        pytest.param(lambda c: c.taints.number(len), [0, 1, 0], id="a number for each set of taints"),
    ],
)
def test_columns(read: Callable[[Clusters], Any], expected: list[Any]) -> None:
    assert read(view()).tolist() == expected


def test_a_column_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        view().current[0] = True


def test_some_of_the_clusters() -> None:
    fewer = view().where(np.array([True, False, True]))
    assert (fewer.names, len(fewer), fewer.position("c3"), fewer.position("c2")) == (["c1", "c3"], 2, 1, None)
    assert fewer.allocatable["cpu"].tolist() == [1500, 4000]
    assert view().where(np.array([2, 0])).names == ["c3", "c1"]


def test_the_whole_fleet_has_all_clusters_that_can_be_chosen() -> None:
    fleet = view().fleet
    assert (fleet.clusters.names, fleet.now) == (["c1", "c2", "c3"], NOW)
    assert view().where(np.array([True, False, False])).total == 3


def test_one_cluster() -> None:
    first, second, third = view()
    assert (first.name, first.labels["region"], first.claims["os"]) == ("c1", "eu", "linux")
    assert (first.allocatable("cpu"), first.capacity("cpu"), third.allocatable("memory")) == (1500, 2000, 0)
    assert [each.score("cost", "hourly") for each in (first, second, third)] == [30, None, None]
    assert [each.current for each in (first, second, third)] == [False, True, False]
    assert ([each.decisions for each in (first, second)], second.taints[0].key) == ([1, 1], "slow")
    assert view()[2].cluster.name == "c3"


@pytest.mark.parametrize(
    ("read", "noted"),
    [
        pytest.param(lambda _: None, set(), id="nothing"),
        pytest.param(lambda c: c.label("a"), {"labels"}, id="a label"),
        pytest.param(lambda c: c.claim("a"), {"claims"}, id="a claim"),
        pytest.param(lambda c: c.matching(()), {"labels"}, id="a selector"),
        pytest.param(lambda c: c.capacity["cpu"], {RESOURCES}, id="a resource"),
        pytest.param(lambda c: c.score("r", "s"), {("score", "r", "s")}, id="a score"),
        pytest.param(lambda c: (c.current, c.decisions, c.taints), set(), id="what starts a decision anyway, or never"),
        pytest.param(lambda c: c.fleet.clusters.label("a"), {FLEET, "labels"}, id="a label of all clusters"),
        pytest.param(lambda c: c[0].labels, {"labels"}, id="the labels of one"),
        pytest.param(lambda c: c[0].claims, {"claims"}, id="the claims of one"),
        pytest.param(lambda c: c[0].allocatable("cpu"), {RESOURCES}, id="a resource of one"),
        pytest.param(lambda c: c[0].score("r", "s"), {("score", "r", "s")}, id="a score of one"),
        pytest.param(lambda c: c[0].cluster, {WHOLE}, id="a whole object"),
    ],
)
def test_a_view_notes_what_is_read(read: Callable[[Clusters], Any], noted: set[Any]) -> None:
    clusters = view(track=True)
    read(clusters)
    assert clusters.fleet.reads == noted
    assert view().fleet.reads is None


def test_amounts_follow_the_clusters() -> None:
    clusters = view()
    table = clusters.fleet.table
    assert clusters.allocatable["cpu"].tolist() == [1500, 0, 4000]
    table.put(a_cluster("c2", cpu="3"))
    for number in range(40):
        table.put(a_cluster(f"more{number}", cpu="1"))
    table.remove("c3")
    assert table.quantities("allocatable", "cpu")[table.rows(["c1", "c2", "more39"])].tolist() == [1500, 3000, 1000]
