"""What a placement's conditions say."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.columns.fleet.clusters import Fleet
from stowplan.framework.placement import evaluation
from stowplan.framework.placement.choice import PlacementQuestion
from stowplan.objects.clusters import ClusterCondition, ManagedCluster
from stowplan.placement import status
from stowplan.plugins import clusters
from tests.placement.fleets import NOW, a_binding, a_cluster, a_placement, a_set

C1, C2 = a_cluster("c1", of="one"), a_cluster("c2", of="one")
ONE = (a_set("one"), a_binding("one"))
BAD_SET = a_set("odd", selectorType="Unheard")


def conditions(spec: dict[str, Any], *objects: Any, ocm: bool = True) -> list[ClusterCondition]:
    """Both conditions of a placement: misconfigured, satisfied."""
    fleet = Fleet()
    sets = ClusterSets(fleet, strict=True)
    for found in objects:
        (fleet if isinstance(found, ManagedCluster) else sets).put(found)
    question = PlacementQuestion(a_placement(**spec), fleet, NOW, fleet.rows(()), ocm)
    choice = evaluation.choose(question, sets, clusters.policy(ocm=ocm))
    return status.conditions(choice, choice.status, len(choice.picked))


@pytest.mark.parametrize(
    ("spec", "objects", "expected"),
    [
        pytest.param({}, [C1], ("False", "NoManagedClusterSetBindings"), id="no binding"),
        pytest.param({"clusterSets": ["x"]}, [C1, *ONE], ("False", "NoIntersection"), id="no set in common"),
        pytest.param({}, [*ONE], ("False", "AllManagedClusterSetsEmpty"), id="no cluster"),
        pytest.param({}, [C1, BAD_SET, a_binding("odd")], ("False", "NotAllDecisionsScheduled"), id="an error"),
        pytest.param({"numberOfClusters": 0}, [C1, *ONE], ("False", "NoManagedClusterMatched"), id="none wanted"),
        pytest.param(
            {"numberOfClusters": 1}, [C1, C2, *ONE], ("True", "AllDecisionsScheduled"), id="as many as wanted"
        ),
        pytest.param({}, [C1, C2, *ONE], ("True", "AllDecisionsScheduled"), id="all clusters"),
        pytest.param({"numberOfClusters": 3}, [C1, C2, *ONE], ("False", "NotAllDecisionsScheduled"), id="too few"),
    ],
)
def test_satisfied(spec: dict[str, Any], objects: list[Any], expected: tuple[str, str]) -> None:
    misconfigured, satisfied = conditions(spec, *objects)
    assert (satisfied.type, satisfied.status, satisfied.reason) == ("PlacementSatisfied", *expected)
    assert (misconfigured.type, misconfigured.status) == ("PlacementMisconfigured", "False")
    assert misconfigured.reason == "Succeedconfigured"


def test_the_message_says_how_many_clusters_are_missing() -> None:
    assert conditions({"numberOfClusters": 5}, C1, C2, *ONE)[1].message == "3 cluster decisions unscheduled"


@pytest.mark.parametrize(
    ("ocm", "message"),
    [
        pytest.param(True, ":incorrect prioritizer policy mode: exact", id="as Open Cluster Management says it"),
        pytest.param(
            False,
            ":spec.prioritizerPolicy.mode: incorrect prioritizer policy mode: exact; use Additive or Exact; "
            "the last good decisions are kept",
            id="with path and remedy",
        ),
    ],
)
def test_misconfigured(ocm: bool, message: str) -> None:
    found, _ = conditions({"prioritizerPolicy": {"mode": "exact"}}, C1, *ONE, ocm=ocm)
    assert (found.status, found.reason, found.message) == ("True", "Misconfigured", message)
