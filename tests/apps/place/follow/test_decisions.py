"""When decisions of a Placement are enough to create a workload, and when to delete one."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.apps.place.follow.decisions import NOTHING_SEEN, ClusterChoice, choice
from stowplan.objects import kinds
from stowplan.objects.placements import DISABLED, SATISFIED, Placement, PlacementDecision

BEFORE = ClusterChoice(frozenset({"old"}))


def a_placement(number: int | None = 0, *, decided: bool = True, **metadata: Any) -> Placement:
    conditions = [{"type": SATISFIED, "status": "True", "reason": "r", "message": ""}] if decided else []
    status = {"numberOfSelectedClusters": number, "conditions": conditions} if decided else {}
    return kinds.convert(Placement, {"metadata": {"name": "p", "namespace": "n", **metadata}, "status": status})


def decisions(*slices: str) -> list[PlacementDecision]:
    """Each text is the clusters of one object."""
    return [
        kinds.convert(PlacementDecision, {"status": {"decisions": [{"clusterName": name} for name in names.split()]}})
        for names in slices
    ]


@pytest.mark.parametrize(
    ("placement", "found", "clusters", "why"),
    [
        pytest.param(a_placement(2), ["a b"], "a b", "", id="decided"),
        pytest.param(a_placement(3), ["a b", "c"], "a b c", "", id="in two slices"),
        pytest.param(a_placement(0), [], "", "", id="decided to have none"),
        pytest.param(a_placement(0), [""], "", "", id="decided to have none, with an empty slice"),
        pytest.param(a_placement(2), [], "old", "name 0 clusters, its status says 2", id="the decisions are gone"),
        pytest.param(a_placement(3), ["a b"], "a b old", "name 2 clusters, its status says 3", id="a slice is gone"),
        pytest.param(a_placement(1), ["a b"], "a b old", "status says 1", id="the status lags behind"),
        pytest.param(a_placement(decided=False), [], "old", "not been decided", id="restored without its status"),
        pytest.param(None, [], "old", "does not exist", id="the Placement is gone"),
        pytest.param(None, ["a"], "a old", "does not exist", id="the Placement is gone, its decisions are not yet"),
        pytest.param(
            a_placement(0, deletionTimestamp="2026-01-01T00:00:00Z"),
            [],
            "old",
            "being deleted",
            id="terminating",
        ),
        pytest.param(
            a_placement(decided=False, annotations={DISABLED: "true"}), ["a"], "a", "", id="another scheduler decides"
        ),
        pytest.param(
            a_placement(decided=False, annotations={DISABLED: "true"}), [], "old", "no decisions", id="and has not yet"
        ),
    ],
)
def test_a_choice(placement: Placement | None, found: list[str], clusters: str, why: str) -> None:
    chosen = choice(placement, decisions(*found), BEFORE, served=True)
    assert chosen.clusters == frozenset(clusters.split())
    assert why in chosen.why and chosen.final == (not why)


def test_a_hub_that_does_not_serve_the_kinds_says_nothing() -> None:
    chosen = choice(None, [], BEFORE, served=False)
    assert chosen.clusters == {"old"} and "does not serve" in chosen.why
    assert not NOTHING_SEEN.final
