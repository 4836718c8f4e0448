"""The score of each cluster in a PlacementDecision is the total that an explanation shows, soon after it changes."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.actions import Patch
from tests.placement.fleets import a_placement, a_score, by_score, some_clusters
from tests.placement.hub import Hub

SCORES = (a_score("c001", "demo", s=5), a_score("c002", "demo", s=9))
STEADY = {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}, "weight": 3}
ADD_ON = {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "s"}}}


def scored(hub: Hub) -> list[tuple[str, int]]:
    """The clusters and scores of the decision."""
    document = hub.objects["PlacementDecision", "test/test-decision-1"]
    return [(each["clusterName"], each.get("score", 0)) for each in document["status"]["decisions"]]


def explained(hub: Hub) -> list[tuple[str, int]]:
    """The same clusters, with the totals that an explanation shows now."""
    totals = hub.engine.choose(hub.placement(), hub.now).totals_by_name()
    return [(name, totals[name]) for name, _ in scored(hub)]


def exact(*configurations: dict[str, Any]) -> dict[str, Any]:
    return {"mode": "Exact", "configurations": list(configurations)}


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(by_score(), id="scores of an add-on"),
        pytest.param(exact(STEADY, ADD_ON), id="Steady rewards the clusters that are chosen by now"),
        pytest.param({"configurations": [ADD_ON]}, id="beside Balance and Steady"),
        pytest.param({}, id="the defaults"),
    ],
)
def test_a_first_decision_says_what_is_explained_after_it(policy: dict[str, Any]) -> None:
    hub = Hub(*some_clusters(3), *SCORES, a_placement(numberOfClusters=2, prioritizerPolicy=policy))
    hub.settle()
    assert scored(hub) == explained(hub)
    assert hub.settle() == 0


def test_a_cluster_that_joins_has_its_reward_too() -> None:
    policy = exact(STEADY, ADD_ON)
    hub = Hub(*some_clusters(3), *SCORES, a_placement(numberOfClusters=1, prioritizerPolicy=policy))
    hub.settle()
    hub.put(a_placement(numberOfClusters=2, prioritizerPolicy=policy))
    hub.settle()
    assert scored(hub) == explained(hub) == [("c001", 305), ("c002", 309)]


def test_new_weights_are_written_at_once() -> None:
    hub = Hub(*some_clusters(2), *SCORES, a_placement(prioritizerPolicy=exact(ADD_ON)))
    hub.settle()
    hub.forget()
    hub.put(a_placement(prioritizerPolicy=exact(STEADY, ADD_ON)))
    hub.settle()
    assert scored(hub) == explained(hub) == [("c001", 305), ("c002", 309)]
    assert [(type(each), each.kind) for each in hub.writes if isinstance(each, Patch)] == [(Patch, "PlacementDecision")]
    assert hub.events == []


def test_new_scores_are_written_within_the_rate_limit() -> None:
    hub = Hub(*some_clusters(2), *SCORES, a_placement(prioritizerPolicy=by_score(), scoreRateLimit="30s"))
    hub.settle()
    hub.later(10)
    hub.put(a_score("c001", "demo", s=20))
    hub.settle()
    assert scored(hub) == [("c001", 5), ("c002", 9)]
    hub.later(20)
    assert scored(hub) == [("c001", 20), ("c002", 9)]


def test_scores_that_stay_cost_no_decision_and_no_write() -> None:
    hub = Hub(*some_clusters(2), *SCORES, a_placement(prioritizerPolicy=by_score()))
    hub.settle()
    hub.forget()
    assert hub.later(200) == 0
    assert hub.writes == []


def test_decisions_by_score_are_updated_within_the_rate_limit() -> None:
    placement = a_placement(prioritizerPolicy=by_score(), sortBy="Score", scoreRateLimit="30s")
    hub = Hub(*some_clusters(2), *SCORES, placement)
    hub.settle()
    assert scored(hub) == [("c002", 9), ("c001", 5)]
    assert hub.placement().status.last_score_update_time is not None
    hub.later(10)
    hub.put(a_score("c001", "demo", s=20))
    hub.settle()
    assert scored(hub) == [("c002", 9), ("c001", 5)]
    hub.later(20)
    assert scored(hub) == [("c001", 20), ("c002", 9)]


def test_the_order_by_score_is_that_of_the_scores_in_the_decision() -> None:
    """The second cluster is new, and gets the reward of Steady with this decision."""
    configured: dict[str, Any] = {"prioritizerPolicy": exact(STEADY, ADD_ON), "sortBy": "Score"}
    hub = Hub(*some_clusters(2), *SCORES, a_placement(numberOfClusters=1, **configured))
    hub.put(a_score("c001", "demo", s=10))
    hub.settle()
    hub.put(a_placement(numberOfClusters=2, **configured))
    hub.put(a_score("c002", "demo", s=90))
    hub.settle()
    assert scored(hub) == [("c002", 390), ("c001", 310)]


class ForgetfulHub(Hub):
    """Its definitions lack the score of a decision, as Open Cluster Management's do."""

    def _store(self, kind: str, key: str, document: dict[str, Any], *, shown: bool = True) -> None:
        if kind == "PlacementDecision":
            for each in document.get("status", {}).get("decisions", ()):
                each.pop("score", None)
        super()._store(kind, key, document, shown=shown)


def test_scores_are_not_written_again_and_again_to_a_hub_that_drops_them() -> None:
    hub = ForgetfulHub(*some_clusters(2), *SCORES, a_placement(prioritizerPolicy=by_score()))
    hub.settle()
    hub.later(120)
    hub.forget()
    for value in range(10, 20):
        hub.put(a_score("c001", "demo", s=value))
        hub.later(90)
    assert hub.writes == []


def test_nothing_is_said_of_scores_in_compatibility_with_ocm() -> None:
    hub = Hub(*some_clusters(2), *SCORES, a_placement(prioritizerPolicy=by_score()), ocm=True)
    hub.settle()
    hub.forget()
    hub.put(a_placement(prioritizerPolicy=exact(STEADY, ADD_ON)))
    hub.settle()
    assert scored(hub) == [("c001", 0), ("c002", 0)]
    assert [each.kind for each in hub.writes if isinstance(each, Patch)] == []
