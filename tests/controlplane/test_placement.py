"""`stowplan place` at both hubs: what Open Cluster Management's integration tests check, as its users would see it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import REAL_AT_LENGTH
from tests.controlplane.hubs import GROUP, define, wait_until_gone
from tests.controlplane.place_process import Hub, Placer, a_taint, add_on, built_in, exact, placing
from tests.controlplane.process import until

CLUSTERS = ("c1", "c2", "c3")
AMOUNTS = {"c1": ((10, 10), (50, 100)), "c2": ((7, 10), (90, 100)), "c3": ((9, 10), (80, 100))}


@pytest.fixture(scope="module", params=REAL_AT_LENGTH)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, Placer]]:
    """A hub at which placements are decided, with namespaces for clusters that have scores."""
    found: Cluster = request.getfixturevalue(request.param)
    define(found)
    for name in CLUSTERS:
        found.api().must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    with placing(found, "placement") as program:
        yield found, program
    for name in CLUSTERS:
        found.api().must("DELETE", f"/api/v1/namespaces/{name}")
    wait_until_gone(found, *CLUSTERS)


@pytest.fixture
def hub(served: tuple[Cluster, Placer]) -> Iterator[Hub]:
    """Without decisions of other placements, since Balance counts them."""
    cluster, program = served
    everywhere = f"/apis/{GROUP}/v1beta1/placementdecisions"
    until("no decision is left", lambda: not cluster.api().must("GET", everywhere)["items"], 60)
    with cluster.namespace("place") as name:
        hub = Hub(cluster, name, program.explain)
        yield hub
        hub.tidy()
        cluster.api().must("DELETE", hub.path("placements"))
        cluster.api().must("DELETE", hub.path("placementdecisions"))
    program.check()
    cluster.check()


@pytest.fixture
def three(hub: Hub) -> Hub:
    """Three clusters of different size."""
    for name, (cpu, memory) in AMOUNTS.items():
        hub.a_cluster(name, cpu=cpu, memory=memory)
    hub.bind()
    return hub


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


def test_events_tell_of_decisions(three: Hub) -> None:
    three.place(numberOfClusters=2)
    three.gets("c1", "c2")
    path = f"/apis/events.k8s.io/v1/namespaces/{three.namespace}/events"

    def told() -> set[tuple[str, str]]:
        """Each event of the placement with what it is about; there may be others, of a first decision by less."""
        items = (each for each in three.api.must("GET", path)["items"] if each["regarding"]["kind"] == "Placement")
        return {(each["reason"], subject(each)) for each in items}

    def subject(event: Any) -> str:
        return str(event["note"] if event["reason"] == "ScoreUpdate" else event.get("related", {}).get("name"))

    decided = {(reason, "p-decision-1") for reason in ("DecisionCreate", "DecisionUpdate")}
    wanted = decided | {("ScoreUpdate", "c1:100 c2:100 c3:100")}
    until("all are told", lambda: told() >= wanted, 60, lambda: str(told()))


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


# --- what decisions are made of


def test_decisions_that_were_deleted_are_made_again(three: Hub) -> None:
    three.place()
    three.gets(*CLUSTERS)
    three.api.must("DELETE", three.path("placementdecisions", "p-decision-1"))
    until("it is made again", lambda: three.chosen() == [*CLUSTERS], 60, three.explain)
    three.change(
        three.path("placementdecisions", "p-decision-1"), lambda each: each["status"].update(decisions=[]), "status"
    )
    until("it is set right", lambda: three.chosen() == [*CLUSTERS], 60, three.explain)


def test_clusters_come_and_go(hub: Hub) -> None:
    names = [f"m{number}" for number in range(5)]
    hub.bind()
    hub.place(numberOfClusters=10)
    hub.says("PlacementSatisfied", "False", "AllManagedClusterSetsEmpty")
    hub.clusters(*names)
    hub.gets(*names)
    hub.says("PlacementSatisfied", "False", "NotAllDecisionsScheduled")
    path = hub.path("managedclusters", "m2")
    hub.change(path, lambda each: each["metadata"].update(finalizers=["example.io/hold"]))
    hub.api.must("DELETE", path)
    hub.gets("m0", "m1", "m3", "m4")  # it is terminating, and still there
    hub.change(path, lambda each: each["metadata"].update(finalizers=[]))
    hub.place(numberOfClusters=2)
    hub.gets("m0", "m1")
    hub.place(numberOfClusters=3)
    hub.gets("m0", "m1", "m3")
    hub.says("PlacementSatisfied", "True", "AllDecisionsScheduled")


def test_more_than_a_hundred_clusters(hub: Hub) -> None:
    hub.clusters(*(f"m{number:03}" for number in range(101)))
    hub.bind()
    hub.place()

    def sizes() -> list[int]:
        return sorted(map(len, hub.slices().values()))

    until("two slices", lambda: sizes() == [1, 100], 120, lambda: f"{sizes()}\n{hub.explain()}")
    hub.gets(*(f"m{number:03}" for number in range(101)))
    until("one group", lambda: hub.groups() == [("", 101)])
    assert sizes() == [1, 100]


def test_sets_and_bindings(hub: Hub) -> None:
    hub.clusters("a1", "a2", of="set-a")
    hub.clusters("b1", "b2", "b3", of="set-b", labels={"vendor": "openShift"})
    hub.place()
    hub.says("PlacementSatisfied", "False", "NoManagedClusterSetBindings")
    until("one empty decision", lambda: list(hub.slices().values()) == [[]], 60, lambda: str(hub.slices()))
    hub.bind("set-a")
    hub.bind("set-b")
    hub.gets("a1", "a2", "b1", "b2", "b3")
    hub.place(clusterSets=["set-a"])
    hub.gets("a1", "a2")
    hub.place(clusterSets=["set-c"])
    hub.gets()
    hub.says("PlacementSatisfied", "False", "NoIntersection")
    hub.place()
    hub.gone(hub.path("managedclustersetbindings", "set-b"))
    hub.gets("a1", "a2")
    hub.gone(hub.path("managedclustersets", "set-a"))
    hub.gets()
    hub.make("managedclustersets", "set-a", spec={})
    hub.gets("a1", "a2")
    selector = {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"vendor": "openShift"}}}
    hub.bind("by-label", clusterSelector=selector)
    hub.gets("a1", "a2", "b1", "b2", "b3")
    hub.bind("everything", clusterSelector={"selectorType": "LabelSelector", "labelSelector": {}})
    hub.a_cluster("c9", of="nobody")
    hub.gets("a1", "a2", "b1", "b2", "b3", "c9")


def test_groups(hub: Hub) -> None:
    canary = {
        "groupName": "canary",
        "groupClusterSelector": {"labelSelector": {"matchLabels": {"vendor": "openShift"}}},
    }
    hub.clusters("k1", "k2", labels={"vendor": "openShift"})
    hub.clusters("m1", "m2", "m3")
    hub.bind()
    strategy = {"groupStrategy": {"clustersPerDecisionGroup": 2, "decisionGroups": [canary]}}
    hub.place(decisionStrategy=strategy)

    def are(*groups: tuple[str, int]) -> None:
        until(f"groups are {groups}", lambda: hub.groups() == [*groups], 60, lambda: f"{hub.groups()}\n{hub.explain()}")

    are(("canary", 2), ("", 2), ("", 1))
    hub.gone(hub.path("managedclusters", "k1"))
    hub.gone(hub.path("managedclusters", "m1"))
    are(("canary", 1), ("", 2))
    hub.a_cluster("k3", labels={"vendor": "openShift"})
    are(("canary", 2), ("", 2))
    hub.a_cluster("m4")
    are(("canary", 2), ("", 2), ("", 1))
    for name in ("k2", "k3", "m2", "m3", "m4"):
        hub.gone(hub.path("managedclusters", name))
    are(("", 0))
    until("one empty decision", lambda: list(hub.slices().values()) == [[]], 60, hub.explain)


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


# --- what is wrong


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(
            {"prioritizerPolicy": {"configurations": built_in(Nonsense=1)}},
            "spec.prioritizerPolicy.configurations[0].scoreCoordinate: incorrect builtin prioritizer: Nonsense",
            id="an unknown prioritizer",
        ),
        pytest.param(
            {"prioritizerPolicy": {"configurations": [add_on(), add_on(weight=2)]}},
            "spec.prioritizerPolicy.configurations[1].scoreCoordinate: the same as configurations[0]",
            id="one listed twice",
        ),
        pytest.param(
            {"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"a b": "c"}}}}]},
            "spec.predicates[0].requiredClusterSelector.labelSelector",
            id="a label that cannot be one",
        ),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_lost(three: Hub, spec: Any, said: str) -> None:
    three.place(numberOfClusters=2)
    three.gets("c1", "c2")
    three.place(numberOfClusters=1, **spec)
    condition = three.says("PlacementMisconfigured", "True", "Misconfigured")
    assert said in condition["message"] and "last good decisions are kept" in condition["message"]
    assert three.chosen() == ["c1", "c2"]
    three.place(numberOfClusters=1)
    three.gets("c1")


def test_a_placement_that_is_left_to_others(three: Hub) -> None:
    metadata = {"name": "other", "annotations": {f"{GROUP}/experimental-scheduling-disable": "true"}}
    document = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement", "metadata": metadata, "spec": {}}
    three.api.must("POST", three.path("placements"), document)
    three.place()
    three.gets(*CLUSTERS)
    assert three.decisions("other") == [] and three.condition("PlacementSatisfied", "other") == {}


# --- why


def test_why_on_a_page_and_by_a_command(three: Hub, served: tuple[Cluster, Placer]) -> None:
    _, program = served
    three.taint("c2", a_taint("key", "NoSelect"))
    three.place(numberOfClusters=1, prioritizerPolicy=exact(*built_in(ResourceAllocatableCPU=1)))
    three.gets("c1")

    def page() -> Any:
        return json.loads(program.page(f"/debug/placements/{three.namespace}/p"))

    # Not before the program has seen its own decision, which those who read the hub may see earlier.
    passed_over = [{"clusterName": "c3", "needs": 201}]
    until("the page is up to date", lambda: page().get("passedOver") == passed_over, 60, lambda: str(page()))
    found = page()
    assert [each["clusterName"] for each in found["selected"]] == ["c1"]
    (dropped,) = found["dropped"]
    assert (dropped["clusterName"], dropped["plugin"]) == ("c2", "TaintToleration")
    assert "key:NoSelect, which is not tolerated" in dropped["reason"]
    words = ["place", "explain", "p", "-n", three.namespace, "--kubeconfig", str(three.cluster.kubeconfig())]
    command = [sys.executable, "-m", "stowplan.apps.cli", *words]
    done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=True, timeout=300)
    said = json.loads(done.stdout)
    assert {key: said[key] for key in found} == found
    wide = os.environ | {"COLUMNS": "160"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=wide)
    assert "needs +201 to enter" in done.stdout
    dump = three.cluster.folder / "dump.yaml"
    kinds = "managedclusters,managedclustersets,managedclustersetbindings,placements,placementdecisions"
    dump.write_text(three.cluster.kubectl("get", kinds, "-A", "-o", "yaml"))
    offline = [*command[:-2], "--from", str(dump), "-o", "json"]
    done = subprocess.run(offline, capture_output=True, text=True, check=True, timeout=300)
    assert json.loads(done.stdout)["selected"] == found["selected"]


def test_scores_that_ran_out_are_said(three: Hub) -> None:
    three.score("c2", 50, validUntil="2021-10-29T18:31:39Z")
    three.place(numberOfClusters=1, prioritizerPolicy=exact(add_on()))
    three.gets("c1")
    three.says("PlacementSatisfied", "True", "AllDecisionsScheduled")

    def said() -> str:
        """Return the condition's message; the score may be seen after the first decision."""
        return str(three.condition("PlacementSatisfied").get("message", ""))

    until("it is said", lambda: "AddOnPlacementScores c2/demo expired" in said(), 60, said)
    condition = three.says("PlacementSatisfied", "True", "AllDecisionsScheduled")
    assert "spec.prioritizerPolicy.configurations" in condition["message"] and "renew them" in condition["message"]
