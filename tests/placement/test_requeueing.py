"""Which placements are requeued, by changes and by time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.placement.fleets import (
    a_binding,
    a_cluster,
    a_decision,
    a_placement,
    a_score,
    a_set,
    a_taint,
    by_score,
    some_clusters,
)
from tests.placement.hub import Hub

PLAIN = a_placement("plain")
LABELLED = a_placement(
    "labelled", predicates=[{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}]
)
CLAIMED = a_placement(
    "claimed",
    predicates=[
        {"requiredClusterSelector": {"claimSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}}
    ],
)
SCORED = a_placement("scored", prioritizerPolicy=by_score("demo", "s"))
OTHER = a_placement("other", prioritizerPolicy=by_score("demo", "t"))
CPU = a_placement(
    "cpu",
    prioritizerPolicy={
        "mode": "Exact",
        "configurations": [{"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}, "weight": 1}],
    },
)
EXPRESSED = a_placement(
    "expressed",
    predicates=[
        {"requiredClusterSelector": {"celSelector": {"celExpressions": ["managedCluster.spec.hubAcceptsClient"]}}}
    ],
)
ASKING = a_placement(
    "asking",
    predicates=[
        {"requiredClusterSelector": {"celSelector": {"celExpressions": ['managedCluster.scores("demo").size() > 0']}}}
    ],
)
ELSEWHERE = a_placement("elsewhere", clusterSets=["two"])
ALL = (PLAIN, LABELLED, CLAIMED, SCORED, OTHER, CPU, EXPRESSED, ASKING, ELSEWHERE)
HERE = {"plain", "labelled", "claimed", "scored", "other", "cpu", "expressed", "asking"}
C1 = a_cluster("c1", labels={"tier": "gold"}, claims={"tier": "gold"}, cpu="4")
C2 = a_cluster("c2", of="two", cpu="4")


def requeued(change: Any) -> set[str]:
    """Return which of ALL placements are decided again because of a change."""
    hub = Hub(a_set("two"), a_binding("two"), C1, C2, a_score("c1", "demo", valid=100, s=5, t=6), *ALL)
    hub.settle()
    change(hub)
    due = {key.rpartition("/")[2] for key in hub.engine._queue._due}
    hub.settle()
    return due


def changed(cluster: Any, **kwargs: Any) -> Any:
    return lambda hub: hub.put(a_cluster(cluster.name, **kwargs))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda hub: hub.put(C1), set(), id="a heartbeat"),
        pytest.param(
            changed(C1, labels={"tier": "none"}, claims={"tier": "gold"}, cpu="4"),
            {"labelled", "expressed", "asking"},
            id="a label",
        ),
        pytest.param(
            changed(C1, labels={"tier": "gold"}, claims={"tier": "x"}, cpu="4"),
            {"claimed", "expressed", "asking"},
            id="a claim",
        ),
        pytest.param(
            changed(C1, labels={"tier": "gold"}, claims={"tier": "gold"}, cpu="8"),
            {"cpu", "expressed", "asking"},
            id="a resource",
        ),
        pytest.param(
            changed(C1, labels={"tier": "gold"}, claims={"tier": "gold"}, cpu="4", version={"kubernetes": "v1.40.0"}),
            {"expressed", "asking"},
            id="a version that only expressions can read",
        ),
        pytest.param(
            changed(C1, labels={"tier": "gold"}, claims={"tier": "gold"}, cpu="4", taints=["a:NoSelect"]),
            HERE,
            id="a taint",
        ),
        pytest.param(
            changed(C1, labels={"tier": "gold"}, claims={"tier": "gold"}, cpu="4", terminating=True),
            HERE,
            id="the cluster is terminating",
        ),
        pytest.param(
            changed(C1, of="two", labels={"tier": "gold"}, claims={"tier": "gold"}, cpu="4"),
            HERE | {"elsewhere"},
            id="the cluster moves to another set",
        ),
        pytest.param(lambda hub: hub.put(a_cluster("c3", of="two")), HERE | {"elsewhere"}, id="a new cluster"),
        pytest.param(lambda hub: hub.put(a_cluster("c3", of="nowhere")), set(), id="a new cluster of no set"),
        pytest.param(lambda hub: hub.gone("ManagedCluster", "c2"), HERE | {"elsewhere"}, id="a cluster is deleted"),
        pytest.param(
            lambda hub: hub.put(a_score("c1", "demo", valid=100, s=7, t=6)), {"scored", "asking"}, id="a score"
        ),
        pytest.param(lambda hub: hub.put(a_score("c1", "demo", valid=200, s=5, t=6)), set(), id="a score is renewed"),
        pytest.param(
            lambda hub: hub.put(a_score("c1", "demo", valid=-5, s=5, t=6)),
            {"scored", "other", "asking"},
            id="a score expires",
        ),
        pytest.param(lambda hub: hub.put(a_score("c1", "unused", s=1)), set(), id="a score that no placement uses"),
        pytest.param(lambda hub: hub.put(a_score("unknown", "demo", s=1)), set(), id="a score of no cluster"),
        pytest.param(
            lambda hub: hub.gone("AddOnPlacementScore", "c1/demo"),
            {"scored", "other", "asking"},
            id="a score is deleted",
        ),
        pytest.param(
            lambda hub: hub.gone("ManagedClusterSetBinding", "test/two"), HERE | {"elsewhere"}, id="a binding"
        ),
        pytest.param(lambda hub: hub.gone("ManagedClusterSetBinding", "test/default"), HERE, id="another binding"),
        pytest.param(lambda hub: hub.gone("ManagedClusterSet", "two"), HERE | {"elsewhere"}, id="a set"),
        pytest.param(
            lambda hub: hub.put(a_decision(["c1"], of="stranger")), set(), id="a decision of another placement"
        ),
        pytest.param(
            lambda hub: hub.put(a_decision(["c2"], of="plain")), {"plain"}, id="a foreign write to a decision"
        ),
        pytest.param(
            lambda hub: hub.gone("PlacementDecision", "test/plain-decision-1"), {"plain"}, id="a decision is deleted"
        ),
        pytest.param(lambda hub: hub.put(a_placement("plain")), set(), id="a placement is as before"),
        pytest.param(
            lambda hub: hub.put(a_placement("plain", numberOfClusters=1, generation=2)),
            {"plain"},
            id="the placement changes",
        ),
    ],
)
def test_which_placements_are_requeued(change: Any, expected: set[str]) -> None:
    assert requeued(change) == expected


def test_foreign_writes_to_a_decision_are_corrected() -> None:
    hub = Hub(*some_clusters(2), a_placement())
    hub.settle()
    hub.put(a_decision(["c002", "stranger"], of="test"))
    hub.settle()
    assert hub.chosen() == ["c001", "c002"]
    hub.gone("PlacementDecision", "test/test-decision-1")
    hub.settle()
    assert hub.chosen() == ["c001", "c002"]


# -- time


def test_a_placement_is_requeued_when_a_score_expires() -> None:
    scores = [a_score("c001", "demo", valid=100, s=90), a_score("c002", "demo", valid=200, s=80)]
    hub = Hub(*some_clusters(3), *scores, a_placement(numberOfClusters=1, prioritizerPolicy=by_score()))
    hub.settle()
    assert hub.chosen() == ["c001"]
    assert (hub.later(100), hub.chosen()) == (0, ["c001"])
    assert (hub.later(1), hub.chosen()) == (1, ["c002"])
    assert (hub.later(100), hub.chosen()) == (1, ["c001"])


def test_a_score_renewed_in_time_requeues_no_placement() -> None:
    hub = Hub(*some_clusters(2), a_score("c001", "demo", valid=100, s=90), a_placement(prioritizerPolicy=by_score()))
    hub.settle()
    hub.later(50)
    hub.put(a_score("c001", "demo", valid=200, s=90))
    assert hub.later(100) == 0
    assert hub.later(51) == 1


def test_an_expression_is_evaluated_again_when_its_score_expires() -> None:
    expression = 'managedCluster.scores("demo").exists(s, s.value > 50)'
    predicate = {"requiredClusterSelector": {"celSelector": {"celExpressions": [expression]}}}
    hub = Hub(*some_clusters(2), a_score("c001", "demo", valid=100, s=90), a_placement(predicates=[predicate]))
    hub.settle()
    assert hub.chosen() == ["c001"]
    assert (hub.later(101), hub.chosen()) == (1, [])
    hub.put(a_score("c002", "demo", s=51))
    hub.settle()
    assert hub.chosen() == ["c002"]


def test_tolerations_that_end() -> None:
    """One of three clusters is deselected after ten seconds, the next after twenty; a new taint removes the last."""
    objects = [
        a_cluster("c1", taints=[a_taint("key1=value1:NoSelect", 0)]),
        a_cluster("c2", taints=[a_taint("key2=value2:NoSelect", 0)]),
        a_cluster("c3"),
    ]
    tolerations = [
        {"key": "key1", "operator": "Exists", "tolerationSeconds": 10},
        {"key": "key2", "operator": "Exists", "tolerationSeconds": 20},
    ]
    hub = Hub(*objects, a_placement(tolerations=tolerations))
    hub.settle()
    assert hub.chosen() == ["c1", "c2", "c3"]
    assert (hub.later(9), hub.chosen()) == (0, ["c1", "c2", "c3"])
    assert (hub.later(1), hub.chosen()) == (1, ["c2", "c3"])
    assert (hub.later(10), hub.chosen()) == (1, ["c3"])
    hub.put(a_cluster("c3", taints=["key3:NoSelect"]))
    hub.settle()
    assert hub.chosen() == []


def test_every_placement_is_rescheduled_from_time_to_time() -> None:
    hub = Hub(*some_clusters(1), a_placement("a"), a_placement("b"))
    hub.settle()
    assert hub.later(299) == 0
    assert hub.later(1) == 2
    assert hub.later(300) == 2


def test_the_interval_is_an_option() -> None:
    hub = Hub(*some_clusters(1), a_placement(), reschedule=10.0)
    hub.settle()
    assert hub.later(100) == 10


def test_a_toleration_ends_of_a_cluster_that_is_not_chosen() -> None:
    """While c5 counts, c4 has the least cpu of those that report it; without c5 it has the most."""
    large = a_cluster("c5", cpu="2500m", taints=[a_taint("b:NoSelectIfNew", added=-20.0)])
    policy = {"mode": "Exact", "configurations": [
        {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}, "weight": -1}
    ]}  # fmt: skip
    wanted = a_placement(
        numberOfClusters=1,
        prioritizerPolicy=policy,
        tolerations=[{"key": "b", "operator": "Exists", "tolerationSeconds": 30}],
    )
    hub = Hub(a_cluster("c3"), a_cluster("c4", cpu="1"), large, wanted)
    hub.settle()
    assert hub.chosen() == ["c4"]
    hub.later(11)
    assert hub.chosen() == ["c3"]
