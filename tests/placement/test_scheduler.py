"""Placements over time: what is written, conditions and events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.objects.actions import Delete
from stowplan.objects.placements import DISABLED, GROUP_INDEX_LABEL
from tests.placement.fleets import (
    NOW,
    a_decision,
    a_placement,
    a_score,
    a_set,
    by_score,
    moment,
    some_clusters,
)
from tests.placement.hub import Hub, reasons, sorts

SATISFIED, MISCONFIGURED = "PlacementSatisfied", "PlacementMisconfigured"


# -- what is written


def test_a_decision_is_created_then_filled_then_the_status_is_written() -> None:
    hub = Hub(*some_clusters(3), a_placement(numberOfClusters=2))
    hub.settle()
    assert sorts(hub) == ["Create PlacementDecision", "Patch PlacementDecision", "Patch Placement"]
    assert hub.decisions() == {"test-decision-1": ["c001", "c002"]}
    document = hub.objects["PlacementDecision", "test/test-decision-1"]
    assert document["metadata"]["ownerReferences"] == [
        {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "name": "test",
         "uid": "uid-test", "controller": True, "blockOwnerDeletion": True}
    ]  # fmt: skip
    assert document["status"]["decisions"][0] == {"clusterName": "c001", "reason": "BestScore", "score": 200}
    status = hub.placement().status
    assert (status.number_of_selected_clusters, len(status.decision_groups)) == (2, 1)
    assert status.decision_groups[0].decisions == ("test-decision-1",)
    assert {each.observed_generation for each in status.conditions} == {1}
    assert hub.condition(SATISFIED) == ("True", "AllDecisionsScheduled")
    assert hub.condition(MISCONFIGURED) == ("False", "Succeedconfigured")


def test_in_compatibility_a_decision_has_names_only() -> None:
    hub = Hub(*some_clusters(1), a_placement(), ocm=True)
    hub.settle()
    document = hub.objects["PlacementDecision", "test/test-decision-1"]
    assert document["status"]["decisions"] == [{"clusterName": "c001", "reason": ""}]


def test_nothing_is_written_without_need() -> None:
    hub = Hub(*some_clusters(128), a_placement())
    hub.settle()
    assert [len(names) for names in hub.decisions().values()] == [100, 28]
    hub.forget()
    hub.engine.requeue(["test/test"])
    assert hub.settle() == 1
    assert (hub.writes, hub.events) == ([], [])


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"annotations": {DISABLED: "true"}}, id="left to another scheduler"),
        pytest.param({"deletionTimestamp": moment(-1)}, id="terminating"),
    ],
)
def test_placements_that_are_left_alone(spec: dict[str, Any]) -> None:
    hub = Hub(*some_clusters(1), a_placement(**spec))
    hub.settle()
    assert (hub.writes, hub.events) == ([], [])


def test_another_value_of_the_annotation_is_ignored() -> None:
    hub = Hub(*some_clusters(1), a_placement(annotations={DISABLED: "false"}))
    hub.settle()
    assert hub.chosen() == ["c001"]


def test_events_about_decisions() -> None:
    hub = Hub(*some_clusters(3), a_placement(numberOfClusters=2))
    hub.settle()
    assert reasons(hub) == ["DecisionCreate", "DecisionUpdate", "ScoreUpdate"]
    assert {(each.pod.name, each.related.name) for each in hub.events if each.related} == {("test", "test-decision-1")}
    assert hub.events[0].note == "Decision test-decision-1 is created with placement test in namespace test"
    assert hub.events[2].note == "c001:100 c002:100 c003:100"
    hub.forget()
    hub.put(a_placement(numberOfClusters=1, generation=2))
    hub.settle()
    assert reasons(hub) == ["DecisionUpdate", "ScoreUpdate"]


def test_the_event_of_a_warning_has_its_reason() -> None:
    hub = Hub(*some_clusters(2), a_score("c001", "demo", valid=-5, s=9), a_placement(prioritizerPolicy=by_score()))
    hub.settle()
    event = next(each for each in hub.events if each.reason == "DecisionUpdate")
    assert (event.type, event.note.partition(": ")[2]) == (
        "Warning", "AddOnPlacementScores c001/demo expired in plugin AddOn/demo/s",
    )  # fmt: skip


def test_a_long_list_of_scores_is_truncated() -> None:
    hub = Hub(*some_clusters(200), a_placement(numberOfClusters=1))
    hub.settle()
    note = next(each.note for each in hub.events if each.reason == "ScoreUpdate")
    assert len(note) <= 1006 and note.endswith(" ......")


def test_labels_are_corrected_without_an_event() -> None:
    hub = Hub(*some_clusters(2), a_placement())
    hub.settle()
    hub.forget()
    wrong = a_decision(["c001", "c002"], of="test", index=7)
    hub.put(msgspec.structs.replace(wrong, status=_decisions(hub)))
    hub.settle()
    assert (sorts(hub), hub.events) == (["Patch PlacementDecision"], [])
    labels = hub.objects["PlacementDecision", "test/test-decision-1"]["metadata"]["labels"]
    assert labels[GROUP_INDEX_LABEL] == "0"


def _decisions(hub: Hub) -> Any:
    from stowplan.objects import kinds
    from stowplan.objects.placements import PlacementDecision

    return kinds.convert(PlacementDecision, hub.objects["PlacementDecision", "test/test-decision-1"]).status


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(0, 10, ["Create PlacementDecision", "Patch PlacementDecision"], id="none, then 10"),
        pytest.param(10, 101, ["Create PlacementDecision", "Patch PlacementDecision", "Patch PlacementDecision"],
                     id="10, then 101"),
        pytest.param(128, 10, ["Patch PlacementDecision", "Delete PlacementDecision"], id="128, then 10"),
        pytest.param(128, 0, ["Patch PlacementDecision", "Delete PlacementDecision"], id="128, then none"),
    ],
)  # fmt: skip
def test_a_change_of_the_number(before: int, after: int, expected: list[str]) -> None:
    hub = Hub(*some_clusters(128), a_placement(numberOfClusters=before))
    hub.settle()
    if before == 0:
        hub.gone("PlacementDecision", "test/test-decision-1")
    hub.forget()
    hub.put(a_placement(numberOfClusters=after, generation=2))
    hub.settle()
    assert sorts(hub) == [*expected, "Patch Placement"]
    assert len(hub.chosen()) == after


def test_without_clusters_there_is_one_empty_decision() -> None:
    hub = Hub(a_placement())
    hub.settle()
    assert hub.decisions() == {"test-decision-1": []}
    assert hub.condition(SATISFIED) == ("False", "AllManagedClusterSetsEmpty")


def test_foreign_conditions_are_kept() -> None:
    hub = Hub(*some_clusters(1), a_placement())
    foreign = {"type": "Seen", "status": "True", "reason": "R", "message": "", "lastTransitionTime": moment(-9)}
    document = hub.objects["Placement", "test/test"]
    document["status"] = {"conditions": [foreign]}
    hub._store("Placement", "test/test", document)
    hub.settle()
    found = hub.objects["Placement", "test/test"]["status"]["conditions"]
    assert foreign in found and len(found) == 3


# -- what is misconfigured keeps its last good decisions


@pytest.mark.parametrize(
    ("spec", "plugin"),
    [
        pytest.param({"tolerations": [{"operator": "Equal"}]}, "TaintToleration", id="a toleration"),
        pytest.param(
            {"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["nope("]}}}]},
            "Predicate",
            id="an expression",
        ),
        pytest.param({"prioritizerPolicy": {"mode": "exact"}}, "", id="a mode"),
        pytest.param({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "x"}}}, "", id="a group"),
        pytest.param({"numberOfClusters": -1}, "", id="a number"),
    ],
)
def test_a_misconfigured_placement_keeps_its_decisions(spec: dict[str, Any], plugin: str) -> None:
    hub = Hub(*some_clusters(3), a_placement())
    hub.settle()
    hub.forget()
    hub.put(a_placement(generation=2, **spec))
    hub.settle()
    assert hub.chosen() == ["c001", "c002", "c003"]
    assert sorts(hub) == ["Patch Placement"]
    wrong = hub.placement().condition(MISCONFIGURED)
    assert wrong is not None and (wrong.status, wrong.observed_generation) == ("True", 2)
    assert wrong.message.startswith(f"{plugin}:spec.") and wrong.message.endswith("the last good decisions are kept")
    assert hub.condition(SATISFIED) == ("True", "AllDecisionsScheduled")
    assert hub.placement().status.number_of_selected_clusters == 3
    hub.put(a_placement(generation=3, numberOfClusters=1))
    hub.settle()
    assert hub.chosen() == ["c001"]
    assert hub.condition(MISCONFIGURED) == ("False", "Succeedconfigured")


def test_an_invalid_set_keeps_the_decisions() -> None:
    hub = Hub(*some_clusters(2), a_placement())
    hub.settle()
    hub.put(a_set(selectorType="Unheard"))
    hub.settle()
    assert hub.chosen() == ["c001", "c002"]
    assert hub.condition(SATISFIED) == ("False", "NotAllDecisionsScheduled")
    hub.put(a_set())
    hub.settle()
    assert hub.condition(SATISFIED) == ("True", "AllDecisionsScheduled")


def test_a_placement_misconfigured_from_the_start_has_no_decisions() -> None:
    hub = Hub(*some_clusters(2), a_placement(prioritizerPolicy={"mode": "exact"}))
    hub.settle()
    assert hub.decisions() == {}
    assert hub.condition(SATISFIED) == ("False", "NoManagedClusterMatched")


# -- Balance


def test_new_placements_are_balanced() -> None:
    placements = [a_placement(f"p{number}", numberOfClusters=1) for number in range(4)]
    hub = Hub(*some_clusters(4), *placements)
    hub.settle()
    assert sorted(hub.chosen(f"test/p{number}")[0] for number in range(4)) == ["c001", "c002", "c003", "c004"]


def test_deleted_decisions_do_not_count() -> None:
    hub = Hub(*some_clusters(2), a_decision(["c001"], of="old"), a_placement(numberOfClusters=1))
    hub.settle()
    assert hub.chosen() == ["c002"]
    hub.gone("PlacementDecision", "test/old-decision-1")
    assert hub.engine.fleet.decided[hub.engine.fleet.row_of["c001"]] == 0
    assert Delete not in {type(each) for each in hub.writes}
    assert hub.now == NOW
