"""A choice explained."""

from __future__ import annotations

from stowplan.placement.explain import explanation
from tests.placement.fleets import a_cluster, a_placement, a_score, chosen
from tests.placement.hub import Hub

COORDINATE = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "s"}}
POLICY = {"mode": "Exact", "configurations": [{"scoreCoordinate": COORDINATE, "weight": 2}]}
ENV = {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod"}}}}
OBJECTS = [
    a_cluster("c1", labels={"env": "prod"}),
    a_cluster("c2", labels={"env": "prod"}),
    a_cluster("c3", labels={"env": "prod"}, taints=["busy:NoSelect"]),
    a_cluster("c4", labels={"env": "dev"}),
    a_score("c1", "demo", s=10),
    a_score("c2", "demo", s=28),
]
PLACEMENT = a_placement(numberOfClusters=1, predicates=[ENV], prioritizerPolicy=POLICY)


def test_a_full_explanation() -> None:
    found = explanation(chosen(PLACEMENT, OBJECTS))
    spec = found.pop("placement")["spec"]
    assert spec["numberOfClusters"] == 1
    assert found == {
        "filteredPipelineResults": [
            {"name": "Predicate", "filteredClusters": ["c1", "c2", "c3"]},
            {"name": "Predicate,TaintToleration", "filteredClusters": ["c1", "c2"]},
        ],
        "prioritizeResults": [{"name": "AddOn/demo/s", "weight": 2, "scores": {"c1": 10, "c2": 28}}],
        "aggregatedScores": [{"clusterName": "c2", "score": 56}, {"clusterName": "c1", "score": 20}],
        "status": {"code": "Success", "plugin": "", "message": ""},
        "clusterSets": ["default"],
        "dropped": [
            {"clusterName": "c4", "plugin": "Predicate", "reason": "its labels do not match the labelSelector"},
            {
                "clusterName": "c3",
                "plugin": "TaintToleration",
                "reason": "it has the taint busy:NoSelect, which is not tolerated",
            },
        ],
        "selected": ["c2"],
        "unscheduled": 0,
        "notSelected": [{"clusterName": "c1", "needs": 36, "message": "needs +36 to enter"}],
    }


def test_an_explanation_has_the_error() -> None:
    found = explanation(chosen(a_placement(prioritizerPolicy={"mode": "exact"}), OBJECTS))
    assert found["error"].startswith("spec.prioritizerPolicy.mode: incorrect prioritizer policy mode: exact; ")
    assert found["aggregatedScores"] == [] and found["selected"] == []


def test_a_placement_that_does_not_exist_can_be_explained() -> None:
    """Nothing is written, and no other placement is decided again."""
    hub = Hub(*OBJECTS, a_placement("other"))
    hub.settle()
    hub.forget()
    assert explanation(hub.engine.choose(PLACEMENT, hub.now))["selected"] == ["c2"]
    assert (hub.settle(), hub.writes) == (0, [])
