"""Placements over time: what is written and said, who is woken by what, what happens when a write fails."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.objects.actions import Create, Delete, Patch
from stowplan.objects.placement import DISABLED, GROUP_INDEX_LABEL
from tests.placement.fleets import (
    NOW,
    a_binding,
    a_cluster,
    a_decision,
    a_placement,
    a_score,
    a_set,
    a_taint,
    moment,
)
from tests.placement.hub import Hub

SATISFIED, MISCONFIGURED = "PlacementSatisfied", "PlacementMisconfigured"


def clusters(count: int, **common: Any) -> list[Any]:
    return [a_cluster(f"c{number:03}", **common) for number in range(1, count + 1)]


def by_score(resource: str = "demo", score: str = "s", weight: int = 1, **more: Any) -> dict[str, Any]:
    coordinate = {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": score}, **more}
    return {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": weight}]}


def sorts(hub: Hub) -> list[str]:
    return [f"{type(each).__name__} {each.kind}" for each in hub.writes]  # type: ignore[union-attr]


def reasons(hub: Hub) -> list[str]:
    return [each.reason for each in hub.events]


# -- what is written


def test_a_decision_is_created_then_filled_then_the_status_is_written() -> None:
    hub = Hub(*clusters(3), a_placement(numberOfClusters=2))
    hub.settle()
    assert sorts(hub) == ["Create PlacementDecision", "Patch PlacementDecision", "Patch Placement"]
    assert hub.decisions() == {"test-decision-1": ["c001", "c002"]}
    document = hub.objects["PlacementDecision", "test/test-decision-1"]
    assert document["metadata"]["ownerReferences"] == [
        {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "name": "test",
         "uid": "uid-test", "controller": True, "blockOwnerDeletion": True}
    ]  # fmt: skip
    assert document["status"]["decisions"][0] == {"clusterName": "c001", "reason": "BestScore", "score": 100}
    status = hub.placement().status
    assert (status.number_of_selected_clusters, len(status.decision_groups)) == (2, 1)
    assert status.decision_groups[0].decisions == ("test-decision-1",)
    assert {each.observed_generation for each in status.conditions} == {1}
    assert hub.condition(SATISFIED) == ("True", "AllDecisionsScheduled")
    assert hub.condition(MISCONFIGURED) == ("False", "Succeedconfigured")


def test_in_compatibility_a_decision_is_a_name_and_nothing_else() -> None:
    hub = Hub(*clusters(1), a_placement(), ocm=True)
    hub.settle()
    document = hub.objects["PlacementDecision", "test/test-decision-1"]
    assert document["status"]["decisions"] == [{"clusterName": "c001", "reason": ""}]


def test_what_is_as_it_should_be_is_left_alone() -> None:
    hub = Hub(*clusters(128), a_placement())
    hub.settle()
    assert [len(names) for names in hub.decisions().values()] == [100, 28]
    hub.forget()
    hub.engine.wake(["test/test"])
    assert hub.settle() == 1
    assert (hub.writes, hub.events) == ([], [])


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"annotations": {DISABLED: "true"}}, id="left to another scheduler"),
        pytest.param({"deletionTimestamp": moment(-1)}, id="on its way out"),
    ],
)
def test_what_is_left_alone(spec: dict[str, Any]) -> None:
    hub = Hub(*clusters(1), a_placement(**spec))
    hub.settle()
    assert (hub.writes, hub.events) == ([], [])


def test_an_annotation_that_says_something_else_changes_nothing() -> None:
    hub = Hub(*clusters(1), a_placement(annotations={DISABLED: "false"}))
    hub.settle()
    assert hub.chosen() == ["c001"]


def test_events_tell_what_happened_to_decisions() -> None:
    hub = Hub(*clusters(3), a_placement(numberOfClusters=2))
    hub.settle()
    assert reasons(hub) == ["DecisionCreate", "DecisionUpdate", "ScoreUpdate"]
    assert {(each.pod.name, each.related.name) for each in hub.events if each.related} == {("test", "test-decision-1")}
    assert hub.events[0].note == "Decision test-decision-1 is created with placement test in namespace test"
    assert hub.events[2].note == "c001:100 c002:100 c003:100"
    hub.forget()
    hub.put(a_placement(numberOfClusters=1, generation=2))
    hub.settle()
    assert reasons(hub) == ["DecisionUpdate", "ScoreUpdate"]


def test_a_warning_is_told_with_its_reason() -> None:
    hub = Hub(*clusters(2), a_score("c001", "demo", valid=-5, s=9), a_placement(prioritizerPolicy=by_score()))
    hub.settle()
    told = next(each for each in hub.events if each.reason == "DecisionUpdate")
    assert (told.type, told.note.partition(": ")[2]) == (
        "Warning", "AddOnPlacementScores c001/demo expired in plugin AddOn/demo/s",
    )  # fmt: skip


def test_a_long_list_of_scores_is_cut() -> None:
    hub = Hub(*clusters(200), a_placement(numberOfClusters=1))
    hub.settle()
    note = next(each.note for each in hub.events if each.reason == "ScoreUpdate")
    assert len(note) <= 1006 and note.endswith(" ......")


def test_labels_alone_are_put_right_without_an_event() -> None:
    hub = Hub(*clusters(2), a_placement())
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
    from stowplan.objects.placement import PlacementDecision

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
def test_more_and_fewer(before: int, after: int, expected: list[str]) -> None:
    hub = Hub(*clusters(128), a_placement(numberOfClusters=before))
    hub.settle()
    if before == 0:
        hub.gone("PlacementDecision", "test/test-decision-1")
    hub.forget()
    hub.put(a_placement(numberOfClusters=after, generation=2))
    hub.settle()
    assert sorts(hub) == [*expected, "Patch Placement"]
    assert len(hub.chosen()) == after


def test_no_cluster_at_all_leaves_one_empty_decision() -> None:
    hub = Hub(a_placement())
    hub.settle()
    assert hub.decisions() == {"test-decision-1": []}
    assert hub.condition(SATISFIED) == ("False", "AllManagedClusterSetsEmpty")


def test_conditions_of_others_stay() -> None:
    hub = Hub(*clusters(1), a_placement())
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
def test_a_slip_in_a_placement_evicts_nobody(spec: dict[str, Any], plugin: str) -> None:
    hub = Hub(*clusters(3), a_placement())
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


def test_a_set_that_cannot_be_used_evicts_nobody() -> None:
    hub = Hub(*clusters(2), a_placement())
    hub.settle()
    hub.put(a_set(selectorType="Unheard"))
    hub.settle()
    assert hub.chosen() == ["c001", "c002"]
    assert hub.condition(SATISFIED) == ("False", "NotAllDecisionsScheduled")
    hub.put(a_set())
    hub.settle()
    assert hub.condition(SATISFIED) == ("True", "AllDecisionsScheduled")


def test_a_placement_that_was_wrong_from_the_start_has_no_decisions() -> None:
    hub = Hub(*clusters(2), a_placement(prioritizerPolicy={"mode": "exact"}))
    hub.settle()
    assert hub.decisions() == {}
    assert hub.condition(SATISFIED) == ("False", "NoManagedClusterMatched")


# -- who is woken

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


def woken(change: Any) -> set[str]:
    """Which of all those placements are decided again because of it."""
    hub = Hub(a_set("two"), a_binding("two"), C1, C2, a_score("c1", "demo", valid=100, s=5, t=6), *ALL)
    hub.settle()
    change(hub)
    due = {key.rpartition("/")[2] for key in hub.engine._due}
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
            changed(C1, labels={"tier": "gold"}, claims={"tier": "gold"}, cpu="4", leaving=True), HERE, id="it leaves"
        ),
        pytest.param(
            changed(C1, of="two", labels={"tier": "gold"}, claims={"tier": "gold"}, cpu="4"),
            HERE | {"elsewhere"},
            id="it moves to another set",
        ),
        pytest.param(lambda hub: hub.put(a_cluster("c3", of="two")), HERE | {"elsewhere"}, id="a cluster comes"),
        pytest.param(lambda hub: hub.put(a_cluster("c3", of="nowhere")), set(), id="a cluster of no set comes"),
        pytest.param(lambda hub: hub.gone("ManagedCluster", "c2"), HERE | {"elsewhere"}, id="a cluster goes"),
        pytest.param(
            lambda hub: hub.put(a_score("c1", "demo", valid=100, s=7, t=6)), {"scored", "asking"}, id="a score"
        ),
        pytest.param(lambda hub: hub.put(a_score("c1", "demo", valid=200, s=5, t=6)), set(), id="a score is renewed"),
        pytest.param(
            lambda hub: hub.put(a_score("c1", "demo", valid=-5, s=5, t=6)),
            {"scored", "other", "asking"},
            id="it expires",
        ),
        pytest.param(lambda hub: hub.put(a_score("c1", "unused", s=1)), set(), id="a score nobody goes by"),
        pytest.param(lambda hub: hub.put(a_score("nobody", "demo", s=1)), set(), id="a score of no cluster"),
        pytest.param(
            lambda hub: hub.gone("AddOnPlacementScore", "c1/demo"), {"scored", "other", "asking"}, id="a score goes"
        ),
        pytest.param(
            lambda hub: hub.gone("ManagedClusterSetBinding", "test/two"), HERE | {"elsewhere"}, id="a binding"
        ),
        pytest.param(lambda hub: hub.gone("ManagedClusterSetBinding", "test/default"), HERE, id="another binding"),
        pytest.param(lambda hub: hub.gone("ManagedClusterSet", "two"), HERE | {"elsewhere"}, id="a set"),
        pytest.param(lambda hub: hub.put(a_decision(["c1"], of="stranger")), set(), id="a decision of somebody else"),
        pytest.param(lambda hub: hub.put(a_decision(["c2"], of="plain")), {"plain"}, id="somebody meddles with one"),
        pytest.param(
            lambda hub: hub.gone("PlacementDecision", "test/plain-decision-1"), {"plain"}, id="a decision is deleted"
        ),
        pytest.param(lambda hub: hub.put(a_placement("plain")), set(), id="a placement is as before"),
        pytest.param(
            lambda hub: hub.put(a_placement("plain", numberOfClusters=1, generation=2)),
            {"plain"},
            id="it asks for less",
        ),
    ],
)
def test_who_is_woken(change: Any, expected: set[str]) -> None:
    assert woken(change) == expected


def test_what_somebody_wrote_into_a_decision_is_put_right() -> None:
    hub = Hub(*clusters(2), a_placement())
    hub.settle()
    hub.put(a_decision(["c002", "stranger"], of="test"))
    hub.settle()
    assert hub.chosen() == ["c001", "c002"]
    hub.gone("PlacementDecision", "test/test-decision-1")
    hub.settle()
    assert hub.chosen() == ["c001", "c002"]


# -- time


def test_a_score_that_runs_out_is_noticed_at_that_moment() -> None:
    scores = [a_score("c001", "demo", valid=100, s=90), a_score("c002", "demo", valid=200, s=80)]
    hub = Hub(*clusters(3), *scores, a_placement(numberOfClusters=1, prioritizerPolicy=by_score()))
    hub.settle()
    assert hub.chosen() == ["c001"]
    assert (hub.later(100), hub.chosen()) == (0, ["c001"])
    assert (hub.later(1), hub.chosen()) == (1, ["c002"])
    assert (hub.later(100), hub.chosen()) == (1, ["c001"])


def test_a_score_that_was_renewed_in_time_wakes_nobody() -> None:
    hub = Hub(*clusters(2), a_score("c001", "demo", valid=100, s=90), a_placement(prioritizerPolicy=by_score()))
    hub.settle()
    hub.later(50)
    hub.put(a_score("c001", "demo", valid=200, s=90))
    assert hub.later(100) == 0
    assert hub.later(51) == 1


def test_an_expression_over_a_score_that_runs_out_is_asked_again() -> None:
    expression = 'managedCluster.scores("demo").exists(s, s.value > 50)'
    predicate = {"requiredClusterSelector": {"celSelector": {"celExpressions": [expression]}}}
    hub = Hub(*clusters(2), a_score("c001", "demo", valid=100, s=90), a_placement(predicates=[predicate]))
    hub.settle()
    assert hub.chosen() == ["c001"]
    assert (hub.later(101), hub.chosen()) == (1, [])
    hub.put(a_score("c002", "demo", s=51))
    hub.settle()
    assert hub.chosen() == ["c002"]


def test_tolerations_that_lapse() -> None:
    """Three decided; one leaves after ten seconds, the next after twenty; a fresh taint removes the last."""
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


def test_every_placement_is_looked_at_now_and_then() -> None:
    hub = Hub(*clusters(1), a_placement("a"), a_placement("b"))
    hub.settle()
    assert hub.later(299) == 0
    assert hub.later(1) == 2
    assert hub.later(300) == 2


def test_how_often_can_be_said() -> None:
    hub = Hub(*clusters(1), a_placement(), reschedule=10.0)
    hub.settle()
    assert hub.later(100) == 10


# -- scores in decisions


def ranked(hub: Hub) -> list[tuple[str, int]]:
    document = hub.objects["PlacementDecision", "test/test-decision-1"]
    return [(each["clusterName"], each.get("score", 0)) for each in document["status"]["decisions"]]


def test_by_score_decisions_are_ordered_and_written_anew_but_not_too_often() -> None:
    placement = a_placement(prioritizerPolicy=by_score(), sortBy="Score", scoreRateLimit="30s")
    hub = Hub(*clusters(2), a_score("c001", "demo", s=5), a_score("c002", "demo", s=9), placement)
    hub.settle()
    assert ranked(hub) == [("c002", 9), ("c001", 5)]
    assert hub.placement().status.last_score_update_time is not None
    hub.later(10)
    hub.put(a_score("c001", "demo", s=20))
    hub.settle()
    assert ranked(hub) == [("c002", 9), ("c001", 5)]
    hub.later(20)
    assert ranked(hub) == [("c001", 20), ("c002", 9)]


def test_by_name_scores_alone_are_not_written() -> None:
    hub = Hub(*clusters(2), a_score("c001", "demo", s=5), a_placement(prioritizerPolicy=by_score()))
    hub.settle()
    hub.forget()
    hub.put(a_score("c001", "demo", s=20))
    assert hub.settle() == 1
    assert hub.writes == []


# -- writes that fail


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(Create, id="the decision cannot be created"),
        pytest.param(Patch, id="it cannot be written"),
    ],
)
def test_what_is_refused_is_reported_and_tried_again_ever_more_seldom(kind: type) -> None:
    hub = Hub(*clusters(2), a_placement())
    hub.refuse = lambda action: 403 if isinstance(action, kind) else 0
    hub.settle()
    assert reasons(hub)[-1] == "BindFailed"
    assert hub.events[-1].note.endswith(": 403 no")
    assert [hub.later(seconds) for seconds in (0.5, 0.5, 1, 1, 2, 2)] == [0, 1, 0, 1, 0, 1]
    hub.refuse = lambda _: 0
    hub.later(60)
    assert hub.chosen() == ["c001", "c002"]
    assert hub.condition(SATISFIED) == ("True", "AllDecisionsScheduled")


def test_a_write_that_is_never_answered_is_given_up() -> None:
    hub = Hub(*clusters(2), a_placement())
    lost = hub.engine.step(hub.now)
    assert len(lost) == 1
    hub.later(29)
    assert hub.writes == []
    hub.later(3)
    assert hub.chosen() == ["c001", "c002"]


def test_what_changes_while_writes_are_under_way_is_decided_afterwards() -> None:
    hub = Hub(*clusters(2), a_placement())
    begun = hub.engine.step(hub.now)
    hub.put(a_cluster("c003"))
    assert hub.engine.next_deadline() != 0.0
    hub.perform(begun)
    hub.settle()
    assert hub.chosen() == ["c001", "c002", "c003"]


def test_writes_that_the_server_does_not_show_yet_are_believed_for_a_while() -> None:
    hub = Hub(*clusters(2), a_placement())
    hub.deaf = True
    hub.settle()
    hub.forget()
    hub.engine.wake(["test/test"])
    hub.settle()
    assert hub.writes == []


def test_a_placement_that_goes_takes_its_plans_along() -> None:
    hub = Hub(*clusters(2), a_placement())
    begun = hub.engine.step(hub.now)
    hub.gone("Placement", "test/test")
    hub.perform(begun)
    hub.settle()
    assert sorts(hub) == ["Create PlacementDecision"]
    assert hub.engine.next_deadline() is None


# -- Balance


def test_placements_made_together_do_not_pile_up_on_one_cluster() -> None:
    placements = [a_placement(f"p{number}", numberOfClusters=1) for number in range(4)]
    hub = Hub(*clusters(4), *placements)
    hub.settle()
    assert sorted(hub.chosen(f"test/p{number}")[0] for number in range(4)) == ["c001", "c002", "c003", "c004"]


def test_decisions_of_placements_that_are_gone_no_longer_count() -> None:
    hub = Hub(*clusters(2), a_decision(["c001"], of="old"), a_placement(numberOfClusters=1))
    hub.settle()
    assert hub.chosen() == ["c002"]
    hub.gone("PlacementDecision", "test/old-decision-1")
    assert hub.engine.fleet.decided[hub.engine.fleet.row_of["c001"]] == 0
    assert Delete not in {type(each) for each in hub.writes}
    assert hub.now == NOW
