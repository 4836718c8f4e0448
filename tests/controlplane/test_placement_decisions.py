"""Decisions of `stowplan place` at both hubs: which objects they are made of, what conditions and events say, and why.

What Open Cluster Management's integration tests check, as its users would see it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.controlplane.hubs import GROUP
from tests.controlplane.place_process import Hub, a_taint, add_on, built_in, exact
from tests.controlplane.process import until
from tests.controlplane.served_hub import CLUSTERS, ServedHub

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


def test_why_on_a_page_and_by_a_command(three: Hub, served_hub: ServedHub) -> None:
    three.taint("c2", a_taint("key", "NoSelect"))
    three.place(numberOfClusters=1, prioritizerPolicy=exact(*built_in(ResourceAllocatableCPU=1)))
    three.gets("c1")

    def page() -> Any:
        return json.loads(served_hub.program.page(f"/debug/placements/{three.namespace}/p"))

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
