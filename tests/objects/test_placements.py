"""Clusters and placements in all their forms; quantities as in Go."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects import kinds, quantity
from stowplan.objects.clusters import AddOnPlacementScore, ManagedCluster
from stowplan.objects.placements import Placement
from tests.placement.fleets import a_cluster, a_placement


@pytest.mark.parametrize(
    ("text", "number", "written"),
    [
        pytest.param("8", 8.0, "8", id="whole"),
        pytest.param("0.5", 0.5, "500m", id="a half"),
        pytest.param("1500m", 1.5, "1500m", id="thousandths"),
        pytest.param("1000m", 1.0, "1", id="a thousand thousandths"),
        pytest.param("1000k", 1e6, "1M", id="a thousand thousands"),
        pytest.param("64Gi", 64.0 * 2**30, "64Gi", id="binary"),
        pytest.param("1024Ki", 2.0**20, "1Mi", id="binary, and more"),
        pytest.param("1.5Gi", 1.5 * 2**30, "1536Mi", id="binary, with a fraction"),
        pytest.param("512", 512.0, "512", id="no suffix stays none"),
        pytest.param("1e3", 1000.0, "1e3", id="with an exponent"),
        pytest.param("0Gi", 0.0, "0", id="nothing"),
        pytest.param("-2", -2.0, "-2", id="below nothing"),
        pytest.param("0.1", 1 * (1 / 10), "100m", id="digits times a power of ten"),
        pytest.param("0.123456789", 123456789 * (1 / 1e9), "123456789n", id="nine digits"),
        pytest.param(
            "9999999999999999999", 9999999999999999999 * 1e9 * (1 / 1e9), "9999999999999999999", id="too many"
        ),
    ],
)
def test_quantities_as_doubles_and_as_go_writes_them(text: str, number: float, written: str) -> None:
    assert (quantity.approximate(text), quantity.canonical(text)) == (number, written)


def test_an_invalid_quantity() -> None:
    for function in (quantity.approximate, quantity.canonical):
        with pytest.raises(ValueError, match="expected a quantity"):
            function("much")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(
            {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}}, ("BuiltIn", "Steady"), id="today's"
        ),
        pytest.param(
            {"scoreCoordinate": {"type": "BuildIn", "buildIn": "Steady"}}, ("BuiltIn", "Steady"), id="the first"
        ),
        pytest.param({"scoreCoordinate": {"buildIn": "Steady"}}, ("BuiltIn", "Steady"), id="no type"),
        pytest.param({"name": "Steady"}, ("BuiltIn", "Steady"), id="by name"),
        pytest.param({"name": "X", "scoreCoordinate": {"buildIn": "Steady"}}, ("BuiltIn", "Steady"), id="both"),
        pytest.param(
            {"name": "X", "scoreCoordinate": {"builtIn": "Steady"}}, ("BuiltIn", "Steady"), id="both, today's"
        ),
        pytest.param(
            {"name": "Steady", "scoreCoordinate": {"type": "BuiltIn"}}, ("BuiltIn", "Steady"), id="a name alone"
        ),
        pytest.param({"scoreCoordinate": {"type": "AddOn"}}, ("AddOn", ""), id="an add-on"),
    ],
)
def test_the_forms_of_a_coordinate(config: dict[str, Any], expected: tuple[str, str]) -> None:
    placement = a_placement(prioritizerPolicy={"configurations": [config]})
    found = placement.spec.prioritizer_policy.configurations[0]
    assert found.coordinate is not None
    assert (found.coordinate.type, found.coordinate.built_in, found.weight) == (*expected, 1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("30s", 30.0, id="seconds"),
        pytest.param("2m", 120.0, id="minutes"),
        pytest.param("1h", 3600.0, id="an hour"),
        pytest.param("", 60.0, id="nothing said"),
    ],
)
def test_how_often_scores_may_be_written(text: str, seconds: float) -> None:
    assert a_placement(scoreRateLimit=text).score_pause == seconds


def test_expressions_see_a_cluster_as_go_writes_it() -> None:
    cluster = a_cluster("c1", cpu=("1000m", "2"), taints=["a=b:NoSelect"], labels={"x": "y"}, of="")
    assert cluster.document == {
        "metadata": {"name": "c1", "labels": {"x": "y"}},
        "spec": {
            "hubAcceptsClient": True,
            "taints": [{"key": "a", "effect": "NoSelect", "value": "b", "timeAdded": "2026-06-01T11:00:00Z"}],
        },
        "status": {"conditions": None, "allocatable": {"cpu": "1"}, "capacity": {"cpu": "2"}, "version": {}},
    }


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        pytest.param({}, True, id="the same"),
        pytest.param({"resourceVersion": "9", "generation": 3}, True, id="written again"),
        pytest.param({"labels": {"a": "b"}}, False, id="another label"),
        pytest.param({"annotations": {"a": "b"}}, False, id="another annotation"),
    ],
)
def test_a_renewal_is_not_a_change(other: dict[str, Any], alike: bool) -> None:
    one, two = (kinds.convert(ManagedCluster, {"metadata": {"name": "c", **more}}) for more in ({}, other))
    assert one.same_content(two) is alike


def test_values_that_an_api_server_rejects_are_decoded() -> None:
    document = {"status": {"scores": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]}}
    assert kinds.convert(AddOnPlacementScore, document).values == {"a": 2}


def test_nulls_are_absent_fields() -> None:
    data = b'{"metadata": {"name": "p"}, "spec": {"numberOfClusters": null, "predicates": null, "tolerations": null}}'
    assert kinds.decode(Placement, data).spec == Placement().spec
