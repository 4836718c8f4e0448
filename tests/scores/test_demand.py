"""The scores that Placements use."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects import kinds
from stowplan.objects.changes import Gone, Put
from stowplan.objects.placements import Placement
from stowplan.scores.demand import EVERYTHING, Demand, ScoreDemand


def a_placement(*configurations: dict[str, Any], cel: str = "", name: str = "p") -> Placement:
    selector = {"requiredClusterSelector": {"celSelector": {"celExpressions": [cel]}}}
    spec = {"prioritizerPolicy": {"configurations": list(configurations)}, "predicates": [selector] if cel else []}
    return kinds.convert(Placement, {"metadata": {"name": name, "namespace": "ns"}, "spec": spec})


def by(resource: str, score: str, **more: Any) -> dict[str, Any]:
    return {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": score}}, **more}


@pytest.mark.parametrize(
    ("placements", "wanted"),
    [
        pytest.param([], Demand(), id="no Placement"),
        pytest.param([a_placement(by("default", "cpu"))], Demand(frozenset({"cpu"})), id="one score"),
        pytest.param(
            [a_placement(by("default", "cpu")), a_placement(by("default", "mem"), by("other", "x"), name="q")],
            Demand(frozenset({"cpu", "mem"})),
            id="two Placements, and an object of another name",
        ),
        pytest.param([a_placement(by("default", "cpu", weight=0))], Demand(), id="weight 0 is no wish"),
        pytest.param([a_placement(by("default", "cpu", weight=-1))], Demand(frozenset({"cpu"})), id="the worst is one"),
        pytest.param([a_placement({"scoreCoordinate": {"builtIn": "Steady"}})], Demand(), id="built-in ones"),
        pytest.param(
            [a_placement(cel='managedCluster.scores("default").exists(s, s.value > 0)')], EVERYTHING, id="in CEL"
        ),
        pytest.param([a_placement(cel="managedCluster.scores( 'default' ).size() > 0")], EVERYTHING, id="spaced out"),
        pytest.param([a_placement(cel='managedCluster.scores("other").size() > 0')], Demand(), id="in CEL, of another"),
    ],
)
def test_demand(placements: list[Placement], wanted: Demand) -> None:
    wishes = ScoreDemand("default")
    assert wishes.apply([Put(each) for each in placements]) is bool(wanted)
    assert wishes.demand == wanted
    assert wishes.apply([Put(each) for each in placements]) is False, "nothing new"
    assert wishes.apply([Gone(each) for each in placements]) is bool(wanted)
    assert wishes.demand == Demand()


def test_what_is_in_a_demand() -> None:
    assert "anything" in EVERYTHING and EVERYTHING
    assert "cpu" in Demand(frozenset({"cpu"})) and "mem" not in Demand(frozenset({"cpu"}))
    assert not Demand()


def test_wishes_come_and_go_one_by_one() -> None:
    wishes, cpu = ScoreDemand("default"), a_placement(by("default", "cpu"), name="a")
    assert wishes.apply([Put(cpu)])
    assert not wishes.apply([Put(a_placement(by("default", "cpu"), name="b"))]), "somebody else wanted it already"
    assert not wishes.apply([Gone(cpu)]), "somebody else still wants it"
    assert wishes.apply([Put(a_placement(by("default", "mem"), name="b"))])
    assert wishes.demand == Demand(frozenset({"mem"}))
