"""Why clusters are not chosen for a placement, by name."""

from __future__ import annotations

from typing import Any

from stowplan.diagnosis.placement_causes import cluster_groups, placement_causes
from stowplan.framework.placement.choice import PlacementChoice
from stowplan.plugins import clusters
from tests.placement.fleets import a_cluster, a_placement, a_score, chosen

COORDINATE = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "s"}}
ENV = {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod"}}}}
OBJECTS = [
    a_cluster("c1", labels={"env": "prod"}),
    a_cluster("c2", labels={"env": "prod"}),
    a_cluster("c3", labels={"env": "prod"}, taints=["busy:NoSelect"]),
    a_cluster("c4", labels={"env": "dev"}, taints=["busy:NoSelect"]),
    a_cluster("c5"),
    a_score("c1", "demo", s=10),
    a_score("c2", "demo", s=28),
]


def prioritized(**coordinate: Any) -> dict[str, Any]:
    return {"mode": "Exact", "configurations": [{"scoreCoordinate": {**COORDINATE, **coordinate}, "weight": 2}]}


def groups(choice: PlacementChoice) -> dict[str, list[str]]:
    found = cluster_groups(choice, clusters.policy())
    return {" ".join(each.nodes): [f"{of.cause.code}: {of.cause.text}" for of in each.causes] for each in found}


def test_every_cause_of_every_cluster() -> None:
    placement = a_placement(numberOfClusters=1, predicates=[ENV], prioritizerPolicy=prioritized())
    assert groups(chosen(placement, OBJECTS)) == {
        "c1": ["score: its total is too low: others have more (it lacks 36 points)"],
        "c3": ["taint: taint busy:NoSelect"],
        "c4": ["predicate-label: label env=prod: it has dev", "taint: taint busy:NoSelect"],
        "c5": ["predicate-label: label env=prod: it has no such label"],
    }


def test_claims_and_expressions() -> None:
    selector = {
        "claimSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]},
        "celSelector": {"celExpressions": ["managedCluster.metadata.name == 'c9'"]},
    }
    placement = a_placement(predicates=[{"requiredClusterSelector": selector}])
    objects = [a_cluster("c1", claims={"region": "us"}), a_cluster("c2", claims={"region": "eu"})]
    false = "predicate-expression: expression managedCluster.metadata.name == 'c9' is false"
    assert groups(chosen(placement, objects)) == {
        "c1": ["predicate-claim: claim region=eu: it has us", false],
        "c2": [false],
    }


def test_several_predicates() -> None:
    other = {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"gpu": "yes"}}}}
    found = groups(chosen(a_placement(predicates=[ENV, other]), [a_cluster("c5")]))
    assert found == {
        "c5": [
            "predicate-label: predicate 1: label env=prod: it has no such label",
            "predicate-label: predicate 2: label gpu=yes: it has no such label",
        ]
    }


def test_a_score_that_is_missing() -> None:
    placement = a_placement(predicates=[ENV], prioritizerPolicy=prioritized(whenMissing="exclude"))
    objects = [*OBJECTS, a_cluster("c6", labels={"env": "prod"})]
    found = groups(chosen(placement, objects, ocm=False))
    assert found["c6"] == ["score-missing: its score demo/s is missing"]


def test_the_placement_as_a_whole() -> None:
    def whole(**spec: Any) -> list[str]:
        namespace = spec.pop("namespace", "test")
        choice = chosen(a_placement(namespace=namespace, **spec), OBJECTS)
        return [f"{each.cause.code}: {each.cause.text}" for each in placement_causes(choice)]

    assert whole() == []
    assert whole(namespace="shop") == ["cluster-set-unbound: namespace shop is not bound to any ClusterSet"]
    expected = "cluster-set-unbound: namespace test is not bound to ClusterSet eu or us"
    assert whole(clusterSets=["us", "eu"]) == [expected]
    expected = "too-few-clusters: it wants 9 clusters, and 2 can be chosen"
    assert whole(numberOfClusters=9, predicates=[ENV]) == [expected]
    (found,) = whole(prioritizerPolicy={"mode": "exact"})
    assert found.startswith("misconfigured: spec.prioritizerPolicy.mode: ")


def test_clusters_outside_of_the_sets() -> None:
    found = groups(chosen(a_placement(namespace="shop"), OBJECTS[:2]))
    assert found == {"c1 c2": ["cluster-set: it is not in a ClusterSet of the namespace"]}
