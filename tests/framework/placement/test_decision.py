"""Whole decisions: weights, totals, ties, unscheduled clusters; with the numbers of Open Cluster Management's tests."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.placement.choice import PlacementChoice
from tests.placement.fleets import a_cluster, a_decision, a_placement, a_score, chosen

NAMES = ("cluster1", "cluster2", "cluster3")


def clusters(count: int, **common: Any) -> list[Any]:
    return [a_cluster(f"cluster{number}", **common) for number in range(1, count + 1)]


def built_in(name: str, weight: int = 1) -> dict[str, Any]:
    return {"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight}


def add_on(resource: str, score: str, weight: int = 1) -> dict[str, Any]:
    coordinate = {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": score}}
    return {"scoreCoordinate": coordinate, "weight": weight}


def policy(mode: str, *configurations: dict[str, Any]) -> dict[str, Any]:
    return {"mode": mode, "configurations": list(configurations)}


def ran(choice: PlacementChoice) -> dict[str, tuple[int, list[int]]]:
    return {each.name: (each.weight, each.scored.values.tolist()) for each in choice.prioritized}


def test_one_cluster_and_no_number() -> None:
    choice = chosen(a_placement(), clusters(1))
    assert (choice.names, choice.unscheduled) == (["cluster1"], 0)
    assert ran(choice) == {"Balance": (1, [100]), "Steady": (1, [0])}


def test_three_of_one_cluster() -> None:
    choice = chosen(a_placement(numberOfClusters=3), clusters(1))
    assert (choice.names, choice.unscheduled) == (["cluster1"], 2)


def test_a_wrong_toleration_ends_the_decision_before_scoring() -> None:
    placement = a_placement(numberOfClusters=2, tolerations=[{"key": "", "operator": "Equal"}])
    choice = chosen(placement, clusters(1))
    assert (choice.status.code, choice.status.plugin) == ("Misconfigured", "TaintToleration")
    assert [stage.name for stage in choice.stages] == ["Predicate"]
    assert (choice.names, choice.prioritized, choice.unscheduled) == ([], [], 0)


def test_a_placement_keeps_its_clusters() -> None:
    objects = [*clusters(3), a_decision(["cluster1", "cluster2"], of="test")]
    choice = chosen(a_placement(numberOfClusters=2), objects)
    assert (choice.names, ran(choice)["Steady"]) == (["cluster1", "cluster2"], (1, [100, 100, 0]))


def test_taints_exclude_one_of_three() -> None:
    objects = [
        a_cluster("cluster1", taints=["key1=value1:NoSelect"]),
        a_cluster("cluster2", taints=["key2=value2:NoSelect"]),
        a_cluster("cluster3"),
    ]
    tolerations = [{"key": "key1", "operator": "Equal", "value": "value1"}]
    choice = chosen(a_placement(numberOfClusters=3, tolerations=tolerations), objects)
    assert (choice.names, choice.unscheduled) == (["cluster1", "cluster3"], 1)


MEASURED = [
    *(a_cluster(name, memory=(amount, "100")) for name, amount in zip(NAMES, ("100", "50", "0"), strict=True)),
    *(a_score(name, "demo", demo=value) for name, value in zip(NAMES, (30, 40, 50), strict=True)),
]


def test_additive_weights() -> None:
    configured = (built_in("Balance", 3), built_in("ResourceAllocatableMemory"), add_on("demo", "demo"))
    choice = chosen(a_placement(numberOfClusters=2, prioritizerPolicy=policy("Additive", *configured)), MEASURED)
    assert choice.totals_by_name() == {"cluster1": 430, "cluster2": 340, "cluster3": 250}
    assert choice.names == ["cluster1", "cluster2"]
    assert ran(choice)["Steady"] == (1, [0, 0, 0])


def test_exact_weights() -> None:
    configured = (built_in("Balance", 3), built_in("ResourceAllocatableMemory"))
    choice = chosen(a_placement(numberOfClusters=2, prioritizerPolicy=policy("Exact", *configured)), MEASURED)
    assert choice.names == ["cluster1", "cluster2"]
    assert ran(choice).keys() == {"Balance", "ResourceAllocatableMemory"}


def test_four_of_two_clusters_one_of_which_the_placement_has() -> None:
    objects = [*clusters(2), a_decision(["cluster1"], of="test")]
    choice = chosen(a_placement(numberOfClusters=4), objects)
    assert (sorted(choice.names), choice.unscheduled) == (["cluster1", "cluster2"], 2)


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        pytest.param([(["cluster1", "cluster2"], "other")], ["cluster3"], id="the cluster without other decisions"),
        pytest.param(
            [(["cluster2", "cluster3"], "other"), (["cluster1", "cluster2"], "third"), (["cluster3"], "test")],
            ["cluster3"],
            id="Steady outweighs a tie in Balance",
        ),
    ],
)
def test_one_of_three(decisions: list[tuple[list[str], str]], expected: list[str]) -> None:
    objects = [*clusters(3), *(a_decision(names, of=of) for names, of in decisions)]
    assert chosen(a_placement(numberOfClusters=1), objects).names == expected


# -- the numbers of the integration tests: (cpu, memory) of three clusters and a fourth

R = {"cluster1": ("10", "50"), "cluster2": ("7", "90"), "cluster3": ("9", "80"), "cluster4": ("10", "100")}


def measured(*names: str) -> list[Any]:
    return [a_cluster(name, cpu=(R[name][0], "10"), memory=(R[name][1], "100")) for name in names]


RESOURCES = (built_in("ResourceAllocatableCPU"), built_in("ResourceAllocatableMemory"))


@pytest.mark.parametrize(
    ("prioritizers", "objects", "totals", "expected"),
    [
        pytest.param(None, measured(*NAMES), [100, 100, 100], ["cluster1", "cluster2"], id="a tie goes by name"),
        pytest.param(
            policy("Exact", *RESOURCES), measured(*NAMES), [0, 0, 83], ["cluster3", "cluster1"], id="two resources"
        ),
        pytest.param(
            policy("Exact", *RESOURCES), measured(*R), [0, -40, 52, 200], ["cluster4", "cluster3"], id="a fourth one"
        ),
        pytest.param(
            policy("Additive", built_in("Steady", 3), *RESOURCES),
            [*measured(*R), a_decision(["cluster2"]), a_decision(["cluster1", "cluster3"], of="test")],
            [400, -140, 452, 300],
            ["cluster3", "cluster1"],
            id="steady, although there is a better cluster",
        ),
        pytest.param(
            policy("Exact", built_in("Balance", 2), built_in("ResourceAllocatableCPU")),
            [*measured(*NAMES), a_decision(["cluster1"])],
            [-100, 100, 233],
            ["cluster3", "cluster2"],
            id="balance against cpu",
        ),
        pytest.param(
            policy("Exact", add_on("demo", "demo")),
            measured(*NAMES),
            [0, 0, 0],
            ["cluster1", "cluster2"],
            id="no scores",
        ),
        pytest.param(
            policy("Exact", add_on("demo", "demo")),
            [*measured(*NAMES), *(a_score(n, "demo", demo=v) for n, v in zip(NAMES, (80, 90, 100), strict=True))],
            [80, 90, 100],
            ["cluster3", "cluster2"],
            id="scores",
        ),
        pytest.param(
            policy("Exact", add_on("demo", "demo")),
            [*measured(*NAMES), *(a_score(n, "demo", demo=v) for n, v in zip(NAMES, (100, 90, 100), strict=True))],
            [100, 90, 100],
            ["cluster1", "cluster3"],
            id="other scores",
        ),
        pytest.param(
            policy("Exact", add_on("demo", "demo", -1)),
            [*measured(*NAMES), *(a_score(n, "demo", demo=v) for n, v in zip(NAMES, (80, 90, 100), strict=True))],
            [-80, -90, -100],
            ["cluster1", "cluster2"],
            id="the worst, by a negative weight",
        ),
    ],
)
def test_two_of_a_measured_fleet(prioritizers: Any, objects: list[Any], totals: list[int], expected: list[str]) -> None:
    spec = {"prioritizerPolicy": prioritizers} if prioritizers else {}
    choice = chosen(a_placement(numberOfClusters=2, **spec), objects)
    assert list(choice.totals_by_name().values()) == totals
    assert choice.names == expected


# -- weights and spellings


@pytest.mark.parametrize(
    ("configurations", "expected"),
    [
        pytest.param([], {"Balance": 1, "Steady": 1}, id="the defaults"),
        pytest.param([built_in("Steady", 0)], {"Balance": 1}, id="a weight of 0 disables a prioritizer"),
        pytest.param(
            [built_in("Balance", 2), built_in("Balance", 3)], {"Balance": 3, "Steady": 1}, id="the last one counts"
        ),
        pytest.param(
            [{"name": "Balance", "weight": 4}], {"Balance": 4, "Steady": 1}, id="by name alone, the first spelling"
        ),
        pytest.param(
            [{"name": "Balance", "scoreCoordinate": {"type": "BuildIn", "buildIn": "Steady"}, "weight": 5}],
            {"Balance": 1, "Steady": 5},
            id="buildIn wins over name",
        ),
        pytest.param(
            [{"scoreCoordinate": {"buildIn": "Steady"}, "weight": 5}], {"Balance": 1, "Steady": 5}, id="no type"
        ),
    ],
)
def test_weights(configurations: list[Any], expected: dict[str, int]) -> None:
    choice = chosen(a_placement(prioritizerPolicy=policy("Additive", *configurations)), clusters(2))
    assert {each.name: each.weight for each in choice.prioritized} == expected


def test_two_add_on_scores_of_one_name_both_count() -> None:
    twice = policy("Exact", add_on("demo", "demo", 1), add_on("demo", "demo", 2))
    choice = chosen(a_placement(prioritizerPolicy=twice), [*clusters(1), a_score("cluster1", "demo", demo=10)])
    assert choice.totals_by_name() == {"cluster1": 30}


@pytest.mark.parametrize(
    "again",
    [
        pytest.param([built_in("Balance"), built_in("Steady"), built_in("Balance")], id="a built-in one"),
        pytest.param([add_on("demo", "demo", 1), built_in("Steady"), add_on("demo", "demo", 2)], id="an add-on score"),
    ],
)
def test_a_prioritizer_listed_twice_is_misconfigured_except_in_compatibility(again: list[Any]) -> None:
    status = chosen(a_placement(prioritizerPolicy=policy("Exact", *again)), clusters(1), ocm=False).status
    assert (status.code, status.path) == ("Misconfigured", "spec.prioritizerPolicy.configurations[2].scoreCoordinate")
    assert status.text.endswith("the same as configurations[0]; list it once, with one weight")


@pytest.mark.parametrize(
    ("spec", "message", "path"),
    [
        pytest.param(
            {"prioritizerPolicy": policy("exact")},
            "incorrect prioritizer policy mode: exact",
            "spec.prioritizerPolicy.mode",
            id="an unknown mode",
        ),
        pytest.param(
            {"prioritizerPolicy": policy("Exact", built_in("Balance"), {"weight": 1})},
            "scoreCoordinate field is required",
            "spec.prioritizerPolicy.configurations[1].scoreCoordinate",
            id="no coordinate",
        ),
        pytest.param(
            {"prioritizerPolicy": policy("Exact", {"scoreCoordinate": {"type": "AddOn"}})},
            "addOn should not be empty",
            "spec.prioritizerPolicy.configurations[0].scoreCoordinate",
            id="an add-on that names no score",
        ),
        pytest.param(
            {"prioritizerPolicy": policy("Exact", built_in("Nobody"))},
            "incorrect builtin prioritizer: Nobody",
            "spec.prioritizerPolicy.configurations[0].scoreCoordinate",
            id="an unknown prioritizer",
        ),
        pytest.param(
            {"numberOfClusters": -1}, "numberOfClusters is -1", "spec.numberOfClusters", id="a negative number"
        ),
    ],
)
def test_a_misconfiguration_has_its_path(spec: dict[str, Any], message: str, path: str) -> None:
    status = chosen(a_placement(**spec), clusters(1)).status
    assert (status.code, status.message, status.path) == ("Misconfigured", message, path)
    assert status.remedy


def test_what_clusters_lack_that_are_not_chosen() -> None:
    scores = {"cluster1": 10, "cluster2": 47, "cluster3": 46, "cluster4": 46}
    placement = a_placement(numberOfClusters=2, prioritizerPolicy=policy("Exact", add_on("demo", "demo")))
    choice = chosen(placement, [*clusters(4), *(a_score(n, "demo", demo=v) for n, v in scores.items())])
    assert choice.names == ["cluster2", "cluster3"]
    assert choice.missing() == {"cluster1": 36, "cluster4": 1}


# -- an addition of ours


def test_clusters_with_prefer_no_select_are_chosen_last() -> None:
    objects = [a_cluster("cluster1", taints=["busy:PreferNoSelect"]), *clusters(3)[1:]]
    placement = a_placement(numberOfClusters=2)
    assert chosen(placement, objects, ocm=True).names == ["cluster1", "cluster2"]
    choice = chosen(placement, objects, ocm=False)
    assert choice.names == ["cluster2", "cluster3"]
    assert ran(choice)["TaintToleration"] == (3, [-100, 0, 0])
    assert chosen(a_placement(), objects, ocm=False).names == ["cluster2", "cluster3", "cluster1"]
    tolerant = a_placement(numberOfClusters=2, tolerations=[{"key": "busy", "operator": "Exists"}])
    assert chosen(tolerant, objects, ocm=False).names == ["cluster1", "cluster2"]
