"""With hysteresis a noise of ±N in scores changes no decision; a difference that counts does, and so does a filter."""

from __future__ import annotations

import random
from typing import Any

import pytest

from stowplan.framework.placement.choice import MISCONFIGURED
from stowplan.objects.actions import Patch
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement
from stowplan.placement.explain import explanation
from tests.placement.fleets import a_cluster, a_placement, a_score, by_score, chosen, some_clusters
from tests.placement.hub import Hub

NAMES = [f"c{number:03}" for number in range(1, 9)]


def with_hysteresis(points: int | str, **spec: Any) -> Placement:
    found = a_placement(**spec)
    found.metadata.annotations["stowplan.io/hysteresis"] = str(points)
    return found


def weighted(*weights: int, **built_in: int) -> dict[str, Any]:
    """A score of an add-on with each weight, and built-in prioritizers."""
    coordinates = [by_score(f"r{index}", "s", each)["configurations"][0] for index, each in enumerate(weights)]
    named = [
        {"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight} for name, weight in built_in.items()
    ]
    return {"mode": "Exact", "configurations": coordinates + named}


def scores(base: dict[str, list[int]], draw: random.Random, noise: int) -> list[Object]:
    return [
        a_score(name, f"r{index}", s=max(-100, min(100, value + draw.randint(-noise, noise))))
        for name, values in base.items()
        for index, value in enumerate(values)
    ]


SPREAD = {"spreadConstraints": [{"topologyKey": "zone", "topologyKeyType": "Label", "maxSkew": 1}]}
GROUPS = {"groupStrategy": {"clustersPerDecisionGroup": 2}}
CASES = [
    pytest.param({"numberOfClusters": 1, "prioritizerPolicy": weighted(1)}, id="one score"),
    pytest.param({"numberOfClusters": 3, "prioritizerPolicy": weighted(1)}, id="three clusters"),
    pytest.param({"numberOfClusters": 3, "prioritizerPolicy": weighted(2, -3)}, id="two scores with weights"),
    pytest.param({"numberOfClusters": 3, "prioritizerPolicy": weighted(1, Balance=1)}, id="beside Balance"),
    pytest.param({"numberOfClusters": 4, "prioritizerPolicy": weighted(1), "spreadPolicy": SPREAD}, id="spread"),
    pytest.param(
        {"numberOfClusters": 6, "prioritizerPolicy": weighted(1), "sortBy": "Score", "decisionStrategy": GROUPS},
        id="groups in the order of scores",
    ),
]


@pytest.mark.parametrize("spec", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_noise_changes_no_decision(spec: dict[str, Any], seed: int) -> None:
    """Also not after a restart in between: what was decided is in the PlacementDecisions."""
    draw, noise = random.Random(seed), 7
    weights = len(spec["prioritizerPolicy"]["configurations"])
    base = {name: [draw.randint(-20, 20) for _ in range(weights)] for name in NAMES}
    fleet = [a_cluster(name, labels={"zone": f"z{place % 3}"}) for place, name in enumerate(NAMES)]
    hub = Hub(*fleet, *scores(base, draw, 0), with_hysteresis(noise, scoreRateLimit="1s", **spec))
    hub.settle()
    decided = hub.decisions()
    assert any(decided.values())
    for number in range(25):
        if number == 12:
            before, hub = hub, Hub(*fleet)
            for (kind, _), document in before.objects.items():
                if kind in ("Placement", "PlacementDecision", "AddOnPlacementScore"):
                    hub.show(kind, document)
        for each in scores(base, draw, noise):
            hub.put(each)
        hub.later(30)
        assert hub.decisions() == decided


def test_without_it_noise_changes_decisions() -> None:
    """Open Cluster Management has none, so it is off unless asked for."""
    hub = Hub(*some_clusters(2), a_score("c001", "r0", s=50), a_score("c002", "r0", s=49),
              a_placement(numberOfClusters=1, prioritizerPolicy=weighted(1)))  # fmt: skip
    hub.settle()
    hub.put(a_score("c002", "r0", s=51))
    hub.settle()
    assert hub.chosen() == ["c002"]


@pytest.mark.parametrize(
    ("first", "second", "gets"),
    [
        pytest.param(50, 70, "c001", id="as much as both may vary"),
        pytest.param(50, 71, "c001", id="one more, and the first name"),
        pytest.param(50, 72, "c002", id="more than that"),
        pytest.param(30, 51, "c001", id="the first fell"),
        pytest.param(28, 50, "c002", id="the first fell far"),
    ],
)
def test_a_real_difference_moves_it(first: int, second: int, gets: str) -> None:
    hub = Hub(*some_clusters(2), a_score("c001", "r0", s=50), a_score("c002", "r0", s=50),
              with_hysteresis(10, numberOfClusters=1, prioritizerPolicy=weighted(1)))  # fmt: skip
    hub.settle()
    assert hub.chosen() == ["c001"]
    hub.put(a_score("c001", "r0", s=first))
    hub.put(a_score("c002", "r0", s=second))
    hub.settle()
    assert hub.chosen() == [gets]


def test_a_filter_comes_first() -> None:
    hub = Hub(*some_clusters(2), a_score("c001", "r0", s=50),
              with_hysteresis(100, numberOfClusters=1, prioritizerPolicy=weighted(1)))  # fmt: skip
    hub.settle()
    hub.put(a_cluster("c001", taints=["example.com/down:NoSelect"]))
    hub.settle()
    assert hub.chosen() == ["c002"]


def test_fewer_clusters_are_the_best_of_those_it_has() -> None:
    hub = Hub(*some_clusters(3), *(a_score(f"c00{n}", "r0", s=n) for n in (1, 2, 3)),
              with_hysteresis(5, numberOfClusters=2, prioritizerPolicy=weighted(1)))  # fmt: skip
    hub.settle()
    hub.put(with_hysteresis(5, numberOfClusters=1, prioritizerPolicy=weighted(1)))
    hub.settle()
    assert hub.chosen() == ["c003"]


def test_a_default_for_all_and_a_placement_that_wants_none() -> None:
    spec: dict[str, Any] = {"numberOfClusters": 1, "prioritizerPolicy": weighted(1)}
    unruly = with_hysteresis(0, **spec)
    unruly.metadata.labels["unruly"] = "true"
    for placement, gets in ((a_placement(**spec), "c001"), (unruly, "c002")):
        hub = Hub(*some_clusters(2), a_score("c001", "r0", s=50), placement, hysteresis=10)
        hub.settle()
        hub.put(a_score("c002", "r0", s=55))
        hub.settle()
        assert hub.chosen() == [gets]


@pytest.mark.parametrize("given", ["", "x", "-1", "101", "5.5", "1_0", "٥", "9" * 5000])
def test_an_annotation_that_is_no_number(given: str) -> None:
    found = chosen(with_hysteresis(given, prioritizerPolicy=weighted(1)), some_clusters(2), ocm=False)
    assert found.status.code == MISCONFIGURED
    assert found.status.text.startswith("metadata.annotations[stowplan.io/hysteresis]: found ")
    assert found.status.text.endswith("write a number from 0 to 100, such as 5") and len(found.status.text) < 300


def test_compatibility_with_ocm_switches_it_off() -> None:
    hub = Hub(*some_clusters(2), a_score("c001", "r0", s=50),
              with_hysteresis("nonsense", numberOfClusters=1, prioritizerPolicy=weighted(1)), ocm=True)  # fmt: skip
    hub.settle()
    hub.put(a_score("c002", "r0", s=51))
    hub.settle()
    assert hub.chosen() == ["c002"]


def test_an_explanation_names_what_is_kept() -> None:
    hub = Hub(*some_clusters(3), a_score("c001", "demo", s=50), a_score("c002", "demo", s=40),
              with_hysteresis(10, numberOfClusters=1, prioritizerPolicy=by_score()))  # fmt: skip
    hub.settle()
    hub.put(a_score("c002", "demo", s=60))
    hub.later(60)
    found = explanation(hub.engine.choose(hub.placement(), hub.now))
    assert found["selected"] == ["c001"]
    assert found["hysteresis"] == {"margin": 20, "kept": ["c001"]}
    needs = {each["clusterName"]: each["needs"] for each in found["notSelected"]}
    assert needs == {"c002": 12, "c003": 72}, "its name is after the chosen one's"
    listed = hub.objects["PlacementDecision", "test/test-decision-1"]["status"]["decisions"]
    assert listed == [{"clusterName": "c001", "reason": "KeptByHysteresis", "score": 50}]
    hub.put(a_score("c002", "demo", s=72))
    hub.settle()
    assert hub.chosen() == ["c002"], "as it said"


def test_what_is_best_anyway_is_not_called_kept() -> None:
    hub = Hub(*some_clusters(2), a_score("c001", "demo", s=50),
              with_hysteresis(10, numberOfClusters=1, prioritizerPolicy=by_score()))  # fmt: skip
    hub.settle()
    assert explanation(hub.engine.choose(hub.placement(), hub.now))["hysteresis"] == {"margin": 20, "kept": []}


def test_noise_costs_no_writes_but_scores() -> None:
    hub = Hub(*some_clusters(2), a_score("c001", "demo", s=50), a_score("c002", "demo", s=45),
              with_hysteresis(5, numberOfClusters=1, prioritizerPolicy=by_score()))  # fmt: skip
    hub.settle()
    hub.forget()
    hub.put(a_score("c002", "demo", s=55))
    hub.later(61)
    assert [each.kind for each in hub.writes if isinstance(each, Patch)] == ["PlacementDecision"]
    assert hub.events == []
