"""From which clusters a placement may choose."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.columns.fleet.clusters import Fleet
from stowplan.framework.placement import evaluation
from stowplan.framework.placement.choice import PlacementChoice, PlacementQuestion
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


ALL = a_set("all", selectorType="LabelSelector", labelSelector={})
SHIFT = a_set("shift", selectorType="LabelSelector", labelSelector={"matchLabels": {"vendor": "openShift"}})
NONE = a_set("none", selectorType="LabelSelector")
C1, C2 = a_cluster("c1", of="one", labels={"vendor": "openShift"}), a_cluster("c2", of="two")
FREE = a_cluster("c3", of="")
TWO = (a_set("one"), a_set("two", selectorType="ExclusiveClusterSetLabel"), a_binding("one"), a_binding("two"))


@pytest.mark.parametrize(
    ("spec", "objects", "sets", "expected"),
    [
        pytest.param({}, [C1, C2, a_set("one"), a_set("two")], (), [], id="nothing is bound"),
        pytest.param({}, [C1, C2, a_binding("one")], (), [], id="bound to an unknown set"),
        pytest.param({}, [C1, C2, a_set("one"), a_binding("one", "elsewhere")], (), [], id="bound elsewhere"),
        pytest.param({}, [C1, C2, *TWO], ("one", "two"), ["c1", "c2"], id="all bound sets"),
        pytest.param({"clusterSets": ["two"]}, [C1, C2, *TWO], ("two",), ["c2"], id="sets that the placement names"),
        pytest.param({"clusterSets": ["two", "x"]}, [C1, C2, *TWO], ("two",), ["c2"], id="an unknown set is ignored"),
        pytest.param({"clusterSets": ["x"]}, [C1, C2, *TWO], (), [], id="unknown sets only"),
        pytest.param(
            {},
            [C1, a_cluster("c2", of="two", terminating=True), *TWO],
            ("one", "two"),
            ["c1"],
            id="a terminating cluster",
        ),
        pytest.param({}, [C1, C2, FREE, ALL, a_binding("all")], ("all",), ["c1", "c2", "c3"], id="all clusters"),
        pytest.param({}, [C1, C2, SHIFT, a_binding("shift")], ("shift",), ["c1"], id="by a label"),
        pytest.param({}, [C1, C2, NONE, a_binding("none")], ("none",), [], id="no selector selects no cluster"),
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
        pytest.param({"selectorType": "Unheard"}, id="an unknown type"),
        pytest.param(
            {"selectorType": "LabelSelector", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}},
            id="an unknown operator",
        ),
    ],
)
def test_an_invalid_set_is_an_error(selector: dict[str, Any]) -> None:
    choice = chosen(a_placement(), C1, a_set("odd", **selector), a_binding("odd"))
    assert choice.status.code == "Error"
    assert choice.status.message.startswith('failed to get clusters from ClusterSet "odd": ')


def test_a_binding_with_another_name_than_its_set_counts_only_in_compatibility() -> None:
    odd = a_binding("one")
    odd = type(odd)(metadata=odd.metadata, spec=type(odd.spec)("two"))
    assert chosen(a_placement(), C1, a_set("one"), odd).sets == ()
    assert chosen(a_placement(), C1, a_set("one"), odd, strict=False).sets == ("one",)
