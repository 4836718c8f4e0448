"""Remedies for placements: a table of causes, and draws that another scheduler judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from stowplan.diagnosis.placements.diagnosis import PlacementDiagnosis, diagnose_placement
from stowplan.diagnosis.placements.hub import TriedHub, satisfied
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement
from stowplan.plugins import clusters
from tests.diagnosis.drawn_placements import NOW, drawn
from tests.diagnosis.judged_placements import is_satisfied, one_step_less
from tests.placement.fleets import BOUND, a_cluster, a_placement, a_score, a_set, by_score

EUROPE = {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"region": "europe"}}}}
EURPOE = {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"region": "eurpoe"}}}}
SPREAD = {"spreadConstraints": [{"topologyKey": "region", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}


def diagnosed(placement: Placement, *objects: Object) -> PlacementDiagnosis:
    return diagnose_placement(placement, objects, clusters.policy(), NOW)


@pytest.mark.parametrize(
    ("spec", "objects", "code", "text"),
    [
        pytest.param(
            {"numberOfClusters": 3}, [*BOUND, a_cluster("a"), a_cluster("b")],
            "lower-number", "lower numberOfClusters from 3 to 2", id="fewer clusters exist than it asks for",
        ),
        pytest.param(
            {}, [a_set(), a_cluster("a")],
            "bind-cluster-set", "bind the set default to the namespace test", id="no set is bound",
        ),
        pytest.param(
            {}, [*BOUND, a_cluster("a", taints=["dedicated=x:NoSelect"])],
            "tolerate-cluster", "tolerate the taint dedicated=x:NoSelect", id="the only cluster has a taint",
        ),
        pytest.param(
            {"predicates": [EURPOE]}, [*BOUND, a_cluster("a", labels={"region": "europe"})],
            "predicate-value", "correct the value of region from eurpoe to europe", id="a typing error in a value",
        ),
        pytest.param(
            {"predicates": [EUROPE]}, [*BOUND, a_cluster("a", labels={"region": "asia"})],
            "label-cluster", "label cluster a so that region=europe", id="a label that no cluster has",
        ),
        pytest.param(
            {"prioritizerPolicy": by_score("load", "free", whenMissing="exclude")},
            [*BOUND, a_cluster("a"), a_score("a", "load", -60, free=5)],
            "renew-score", "renew the score load of cluster a", id="a score has expired",
        ),
        pytest.param(
            {"numberOfClusters": 4, "spreadPolicy": SPREAD},
            [*BOUND, *(a_cluster(name, labels={"region": "europe"}) for name in "abcd"),
             a_cluster("e", labels={"region": "asia"}, taints=["full:NoSelect"]),
             a_cluster("f", labels={"region": "africa"})],
            "raise-cluster-skew", "raise maxSkew of region from 1 to 2", id="hard spreading over two regions",
        ),
        pytest.param(
            {"clusterSets": ["edge"]}, [*BOUND, a_set("edge"), a_cluster("a")],
            "add-cluster-set", "add the set default to clusterSets", id="it names a set that is not bound",
        ),
    ],
)  # fmt: skip
def test_a_cause_has_its_remedy(spec: dict[str, Any], objects: list[Object], code: str, text: str) -> None:
    placement = a_placement(**spec)
    found = diagnosed(placement, *objects)
    assert [each.text for each in found.remedies if each.code == code] == [text]
    remedy = next(each for each in found.remedies if each.code == code)
    assert is_satisfied([*objects, placement], remedy.changes)
    assert remedy.clusters


def test_a_satisfied_placement_needs_nothing() -> None:
    found = diagnosed(a_placement(numberOfClusters=1), *BOUND, a_cluster("a"))
    assert found.satisfied
    assert (found.chosen, found.remedies) == (("a",), ())


def test_every_cause_of_a_cluster_is_named() -> None:
    tainted = a_cluster("a", labels={"region": "asia"}, taints=["dedicated=x:NoSelect"])
    found = diagnosed(a_placement(predicates=[EUROPE]), *BOUND, tainted, a_cluster("b", of=""))
    codes = {group.nodes: {each.plugin for each in group.causes} for group in found.clusters}
    assert len(codes["a",]) == 2
    assert "b" in {name for names in codes for name in names}


def test_two_changes_are_proposed_where_one_does_not_help() -> None:
    tainted = a_cluster("a", labels={"region": "europe"}, taints=["dedicated=x:NoSelect"])
    found = diagnosed(a_placement(predicates=[EURPOE]), *BOUND, tainted)
    assert found.remedies[0].code == "predicate-value+tolerate-cluster"
    assert all("+" in each.code for each in found.remedies)


def test_a_hub_without_clusters_can_satisfy_nobody() -> None:
    found = diagnosed(a_placement(numberOfClusters=1), *BOUND)
    assert (found.remedies, found.never) == ((), "the hub has no cluster")


# -- draws


def unsatisfied() -> Iterator[tuple[int, Placement, list[Object]]]:
    for seed in range(100_000):
        placement, objects = drawn(seed)
        choice = TriedHub(placement, objects, clusters.policy(), NOW).choose()
        assert choice is not None
        if not satisfied(choice):
            yield seed, placement, objects


def judged(number: int) -> Counter[str]:
    """Diagnose so many placements; every remedy must be sound and minimal. Return how many got one."""
    counts: Counter[str] = Counter()
    for _, (seed, placement, objects) in zip(range(number), unsatisfied(), strict=False):
        found = diagnose_placement(placement, objects, clusters.policy(), NOW)
        every = [*objects, placement]
        counts["placements"] += 1
        counts["with a remedy"] += bool(found.remedies)
        counts["never"] += bool(found.never)
        counts["bounded"] += bool(found.bounded)
        assert not is_satisfied(every, ())
        for remedy in found.remedies:
            counts["remedies"] += 1
            counts[f"  {remedy.code}"] += 1
            assert is_satisfied(every, remedy.changes), f"{seed}: {remedy.text}"
            for less in one_step_less(remedy):
                counts["smaller ones"] += 1
                assert not is_satisfied(every, less), f"{seed}: {remedy.text}: {less}"
    return counts


def test_remedies_of_drawn_placements_are_sound_and_minimal() -> None:
    counts = judged(12)
    assert counts["placements"] == 12
    assert counts["with a remedy"] + counts["never"] == 12


@pytest.mark.full
def test_remedies_of_many_drawn_placements_are_sound_and_minimal() -> None:
    counts = judged(100)
    print(counts)  # noqa: T201
    assert counts["placements"] == 100
    assert counts["with a remedy"] + counts["never"] >= 99
