"""Policies of `stowplan place` at both hubs: prioritizers, predicates and taints choose the clusters of a placement.

What Open Cluster Management's integration tests check, as its users would see it.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.controlplane.place_process import Hub, a_taint, add_on, built_in, exact

# --- prioritizers


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [
        pytest.param({}, ("c1", "c2"), id="equal totals go by name"),
        pytest.param(
            exact(*built_in(ResourceAllocatableCPU=1, ResourceAllocatableMemory=1)), ("c1", "c3"), id="cpu and memory"
        ),
    ],
)
def test_the_best_two(three: Hub, policy: Any, chosen: tuple[str, ...]) -> None:
    three.place(numberOfClusters=2, prioritizerPolicy=policy)
    three.gets(*chosen)
    condition = three.says("PlacementSatisfied", "True", "AllDecisionsScheduled")
    assert condition["observedGeneration"] == 1
    three.says("PlacementMisconfigured", "False", "Succeedconfigured")
    (found,) = three.decisions()
    entry = found["status"]["decisions"][0]
    assert (entry["clusterName"], entry["reason"]) == ("c1", "BestScore")
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Placement", "p", True)


def test_steady_holds_on_and_others_do_not(three: Hub) -> None:
    resources = built_in(ResourceAllocatableCPU=1, ResourceAllocatableMemory=1)
    three.place("greedy", numberOfClusters=2, prioritizerPolicy=exact(*resources))
    three.gets("c1", "c3", name="greedy")  # so all three are known: who decided by fewer would hold on to those
    steady = {"configurations": [*built_in(Steady=3, Balance=0), *resources]}  # whatever the other one has
    three.place("steady", numberOfClusters=2, prioritizerPolicy=steady)
    three.gets("c1", "c3", name="steady")
    three.a_cluster("c4", cpu=(10, 10), memory=(100, 100))
    three.gets("c3", "c4", name="greedy")
    assert three.chosen("steady") == ["c1", "c3"]
    three.gone(three.path("managedclusters", "c4"))
    three.gets("c1", "c3", name="greedy")


def test_balance_counts_what_others_have(three: Hub) -> None:
    three.place("other", numberOfClusters=1)
    three.gets("c1", name="other")
    policy = exact(*built_in(Balance=2, ResourceAllocatableCPU=1))
    three.place(numberOfClusters=2, prioritizerPolicy=policy)
    three.gets("c2", "c3")


def test_scores_are_watched(three: Hub) -> None:
    three.place(numberOfClusters=2, prioritizerPolicy=exact(add_on()))
    three.gets("c1", "c2")
    for name, value in (("c1", 80), ("c2", 90), ("c3", 100)):
        three.score(name, value)
    three.gets("c2", "c3")
    three.score("c1", 100)
    three.gets("c1", "c3")


def test_an_expiry_wakes_the_placement(three: Hub) -> None:
    def valid_for(seconds: int) -> None:
        then = datetime.now(UTC) + timedelta(seconds=seconds)
        three.score("c3", 100, validUntil=then.strftime("%Y-%m-%dT%H:%M:%SZ"))

    valid_for(3600)
    three.score("c2", 50)
    three.place(numberOfClusters=1, prioritizerPolicy=exact(add_on()))
    three.gets("c3")
    valid_for(3)  # and only now: it must not be over before the first decision
    three.gets("c2", seconds=60)  # far sooner than --reschedule-interval


# --- predicates and taints


def test_predicates_edited_live(hub: Hub) -> None:
    hub.a_cluster("c1", labels={"cloud": "Amazon"}, claims={"region": "us"})
    hub.a_cluster("c2", labels={"cloud": "Azure"}, claims={"region": "eu"})
    hub.a_cluster("c3", labels={"cloud": "Azure"}, claims={"region": "us"})
    hub.score("c1", 70)
    hub.score("c2", 90)
    hub.bind()

    def required(**selector: Any) -> None:
        hub.place(predicates=[{"requiredClusterSelector": selector}])

    required(labelSelector={"matchLabels": {"cloud": "Azure"}})
    hub.gets("c2", "c3")
    required(claimSelector={"matchExpressions": [{"key": "region", "operator": "In", "values": ["us"]}]})
    hub.gets("c1", "c3")
    required(celSelector={"celExpressions": ['managedCluster.metadata.labels["cloud"] == "Amazon"']})
    hub.gets("c1")
    required(celSelector={"celExpressions": ["managedCluster.nonsense( =="]})
    condition = hub.says("PlacementMisconfigured", "True", "Misconfigured")
    assert "spec.predicates[0].requiredClusterSelector.celSelector" in condition["message"]
    assert hub.chosen() == ["c1"], "the last good decisions are kept"
    high = 'managedCluster.scores("demo").filter(s, s.name == "score").exists(s, s.value > 80)'
    required(celSelector={"celExpressions": [high]})
    hub.gets("c2")
    hub.says("PlacementMisconfigured", "False", "Succeedconfigured")
    hub.score("c1", 85)
    hub.gets("c1", "c2")


def test_tolerations(hub: Hub) -> None:
    hub.a_cluster("c1", taints=[a_taint("key1", "NoSelect", "value1")])
    hub.a_cluster("c2", taints=[a_taint("key2", "NoSelect", "value2")])
    hub.a_cluster("c3", taints=[a_taint("key2", "NoSelect", "value3")])
    hub.bind()
    tolerations = [
        {"key": "key1", "operator": "Exists"},
        {"key": "key2", "operator": "Equal", "value": "value2"},
    ]
    hub.place(tolerations=[{"operator": "Equal", "value": "x"}])
    condition = hub.says("PlacementMisconfigured", "True", "Misconfigured")
    assert "spec.tolerations[0]" in condition["message"] and "set a key, or the operator Exists" in condition["message"]
    assert hub.chosen() == []
    hub.place(tolerations=tolerations)
    hub.gets("c1", "c2")


def test_effects(hub: Hub) -> None:
    hub.a_cluster("c1", taints=[a_taint("key", "NoSelect")])
    hub.a_cluster("c2", taints=[a_taint("key", "PreferNoSelect")])
    hub.clusters("c3")
    hub.bind()
    hub.place(tolerations=[{"key": "key", "operator": "Exists", "effect": "NoSelectIfNew"}])
    hub.gets("c2", "c3")
    hub.place(tolerations=[])
    hub.taint("c3", a_taint("new", "NoSelectIfNew"))
    hub.a_cluster("c4", taints=[a_taint("new", "NoSelectIfNew")])
    hub.a_cluster("c5")
    hub.gets("c2", "c3", "c5")


def test_tolerations_for_a_while(hub: Hub) -> None:
    begun, long = time.monotonic(), 3600
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    hub.a_cluster("c1", taints=[a_taint("key1", "NoSelect", timeAdded=now)])
    hub.a_cluster("c2", taints=[a_taint("key2", "NoSelect", timeAdded=now)])
    hub.clusters("c3")
    hub.bind()

    def tolerate(**seconds: int) -> None:
        """So long from when the taints were added."""
        hub.place(
            tolerations=[{"key": key, "operator": "Exists", "tolerationSeconds": each} for key, each in seconds.items()]
        )

    def soon() -> int:
        """Over in a moment, but not yet, however long it took to come here."""
        return int(time.monotonic() - begun) + 4

    tolerate(key1=long, key2=long)
    hub.gets("c1", "c2", "c3")
    tolerate(key1=(first := soon()), key2=long)
    hub.gets("c2", "c3")
    tolerate(key1=first, key2=soon())
    hub.gets("c3")
    hub.taint("c3", a_taint("key3", "NoSelect", timeAdded=now))
    hub.gets()
