"""From which clusters a placement may choose."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.columns.fleet.clusters import Fleet
from stowplan.framework.placement import evaluation
from stowplan.framework.placement.decision import PlacementChoice, PlacementQuestion
from stowplan.objects.clusters import ManagedCluster
from stowplan.plugins import clusters
from tests.placement.fleets import NOW, a_binding, a_cluster, a_placement, a_set


def chosen(placement: Any, *objects: Any, strict: bool = True) -> PlacementChoice:
    fleet = Fleet()
    sets = ClusterSets(fleet, strict=strict)
    for found in objects:
        (fleet if isinstance(found, ManagedCluster) else sets).put(found)
    return evaluation.choose(
        PlacementQuestion(placement, fleet, NOW, fleet.rows(()), True), sets, clusters.policy(ocm=True)
    )


EVERYBODY = a_set("all", selectorType="LabelSelector", labelSelector={})
SHIFT = a_set("shift", selectorType="LabelSelector", labelSelector={"matchLabels": {"vendor": "openShift"}})
NOBODY = a_set("nobody", selectorType="LabelSelector")
C1, C2 = a_cluster("c1", of="one", labels={"vendor": "openShift"}), a_cluster("c2", of="two")
FREE = a_cluster("c3", of="")
TWO = (a_set("one"), a_set("two", selectorType="ExclusiveClusterSetLabel"), a_binding("one"), a_binding("two"))


@pytest.mark.parametrize(
    ("spec", "objects", "sets", "expected"),
    [
        pytest.param({}, [C1, C2, a_set("one"), a_set("two")], (), [], id="nothing is bound"),
        pytest.param({}, [C1, C2, a_binding("one")], (), [], id="bound to a set that is not there"),
        pytest.param({}, [C1, C2, a_set("one"), a_binding("one", "elsewhere")], (), [], id="bound elsewhere"),
        pytest.param({}, [C1, C2, *TWO], ("one", "two"), ["c1", "c2"], id="all bound sets"),
        pytest.param({"clusterSets": ["two"]}, [C1, C2, *TWO], ("two",), ["c2"], id="only what the placement wants"),
        pytest.param({"clusterSets": ["two", "x"]}, [C1, C2, *TWO], ("two",), ["c2"], id="and what there is of that"),
        pytest.param({"clusterSets": ["x"]}, [C1, C2, *TWO], (), [], id="nothing of what it wants"),
        pytest.param({}, [C1, a_cluster("c2", of="two", leaving=True), *TWO], ("one", "two"), ["c1"], id="one leaves"),
        pytest.param({}, [C1, C2, FREE, EVERYBODY, a_binding("all")], ("all",), ["c1", "c2", "c3"], id="everybody"),
        pytest.param({}, [C1, C2, SHIFT, a_binding("shift")], ("shift",), ["c1"], id="by a label"),
        pytest.param({}, [C1, C2, NOBODY, a_binding("nobody")], ("nobody",), [], id="no selector selects nobody"),
        pytest.param(
            {}, [C1, SHIFT, a_binding("shift"), *TWO], ("one", "shift", "two"), ["c1"], id="in two sets, once"
        ),
    ],
)
def test_candidates(spec: dict[str, Any], objects: list[Any], sets: tuple[str, ...], expected: list[str]) -> None:
    choice = chosen(a_placement(**spec), *objects)
    assert (choice.sets, choice.names) == (sets, expected)


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"selectorType": "Unheard"}, id="an unknown sort"),
        pytest.param(
            {"selectorType": "LabelSelector", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}},
            id="an unknown operator",
        ),
    ],
)
def test_a_set_that_cannot_be_used_is_an_error(selector: dict[str, Any]) -> None:
    choice = chosen(a_placement(), C1, a_set("odd", **selector), a_binding("odd"))
    assert choice.status.code == "Error"
    assert choice.status.message.startswith('failed to get clusters from ClusterSet "odd": ')


def test_a_binding_that_is_called_otherwise_than_its_set_counts_only_in_compatibility() -> None:
    odd = a_binding("one")
    odd = type(odd)(metadata=odd.metadata, spec=type(odd.spec)("two"))
    assert chosen(a_placement(), C1, a_set("one"), odd).sets == ()
    assert chosen(a_placement(), C1, a_set("one"), odd, strict=False).sets == ("one",)
