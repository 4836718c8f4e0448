"""Predicates: labels, claims and CEL, alone and together."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.placement.interfaces import Misconfigured
from stowplan.framework.placement.plugin_calls import call_cluster_filter
from stowplan.framework.profile import EnabledPlugin
from stowplan.plugins.clusters.predicate import PredicatePlugin
from tests.placement.fleets import a_cluster, a_placement, a_score, a_view

PLUGIN = PredicatePlugin()
CLOUDS = [
    a_cluster("c1", labels={"cloud": "Amazon"}, claims={"cloud": "Amazon", "region": "us-east-1"}),
    a_cluster("c2", labels={"cloud": "Google"}, claims={"cloud": "Google", "region": "us-east-1"}),
    a_cluster("c3", labels={"cloud": "Azure"}, claims={"cloud": "Azure", "region": "eu-west-1"}),
    a_score("c1", "demo", cpu=90),
    a_score("c2", "demo", cpu=70),
    a_score("c3", "demo", valid=-1, cpu=95),
]


def required(
    labels: dict[str, str] | None = None, claims: dict[str, list[str]] | None = None, cel: list[str] | None = None
) -> dict[str, Any]:
    expressions = [{"key": key, "operator": "In", "values": values} for key, values in (claims or {}).items()]
    selector = {
        "labelSelector": {"matchLabels": labels or {}},
        "claimSelector": {"matchExpressions": expressions},
        "celSelector": {"celExpressions": cel or []},
    }
    return {"requiredClusterSelector": selector}


def matching(*predicates: dict[str, Any], ocm: bool = True) -> list[str] | Misconfigured:
    placement = a_placement(predicates=list(predicates))
    clusters = a_view(placement, CLOUDS, ["c1", "c2", "c3"], ocm=ocm)
    found = call_cluster_filter(EnabledPlugin("Predicate", PLUGIN), placement, clusters)
    if isinstance(found, Misconfigured):
        return found
    return clusters.names if found.kept is None else clusters.where(found.kept).names


IN_AMAZON = 'managedCluster.metadata.labels["cloud"] == "Amazon"'
GOOD_SCORE = 'managedCluster.scores("demo").filter(s, s.name == "cpu").all(e, e.value > 80)'


@pytest.mark.parametrize(
    ("predicates", "expected"),
    [
        pytest.param([], ["c1", "c2", "c3"], id="no predicates"),
        pytest.param([required()], ["c1", "c2", "c3"], id="an empty predicate"),
        pytest.param([required({"cloud": "Amazon"})], ["c1"], id="a label"),
        pytest.param([required(claims={"cloud": ["Amazon"]})], ["c1"], id="a claim"),
        pytest.param([required({"cloud": "Google"}, {"region": ["us-east-1"]})], ["c2"], id="a label and a claim"),
        pytest.param(
            [required({"cloud": "Google"}, {"region": ["eu-west-1"]})], [], id="a label, and a claim of another cluster"
        ),
        pytest.param([required({"cloud": "Amazon"}), required({"cloud": "Google"})], ["c1", "c2"], id="either of two"),
        pytest.param([required(cel=[IN_AMAZON])], ["c1"], id="an expression about labels"),
        pytest.param(
            [
                required(
                    cel=['managedCluster.status.clusterClaims.exists(c, c.name == "region" && c.value == "eu-west-1")']
                )
            ],
            ["c3"],
            id="an expression about claims",
        ),
        pytest.param([required(cel=[IN_AMAZON, "1 == 1"])], ["c1"], id="two expressions, both true"),
        pytest.param([required(cel=[IN_AMAZON, "1 == 2"])], [], id="two expressions, one false"),
        pytest.param([required({"cloud": "Google"}, cel=[IN_AMAZON])], [], id="an expression and another label"),
        pytest.param([required(cel=[])], ["c1", "c2", "c3"], id="no expressions"),
        pytest.param([required(cel=['managedCluster.scores("none").size() >= 0'])], [], id="missing scores"),
        pytest.param([required(cel=["managedCluster.metadata.name"])], [], id="neither true nor false"),
        pytest.param([required(cel=['managedCluster.metadata.labels.nope == "x"'])], [], id="a missing label"),
    ],
)
def test_which_clusters_match(predicates: list[Any], expected: list[str]) -> None:
    assert matching(*predicates) == expected


def test_expressions_see_expired_scores_only_in_compatibility() -> None:
    assert matching(required(cel=[GOOD_SCORE]), ocm=True) == ["c1", "c3"]
    assert matching(required(cel=[GOOD_SCORE]), ocm=False) == ["c1"]


@pytest.mark.parametrize(
    ("predicate", "path"),
    [
        pytest.param(required(cel=[IN_AMAZON, "nonsense("]), "celSelector.celExpressions", id="what does not parse"),
        pytest.param(
            required(cel=["cluster.metadata.name == 'x'"]), "celSelector.celExpressions", id="an unknown name"
        ),
        pytest.param(
            required(cel=['"a" + 1 == "a1"']), "celSelector.celExpressions", id="types that do not go together"
        ),
        pytest.param(required(cel=["1" * 20_000]), "celSelector.celExpressions", id="too long"),
        pytest.param(required({"bad key!": "x"}), "labelSelector", id="an invalid key"),
        pytest.param(required(claims={"cloud": []}), "claimSelector", id="no values"),
    ],
)
def test_misconfigured_predicates(predicate: dict[str, Any], path: str) -> None:
    found = matching(required({"cloud": "Amazon"}), predicate)
    assert isinstance(found, Misconfigured)
    assert found.path == f"spec.predicates[1].requiredClusterSelector.{path}"


@pytest.mark.parametrize(
    ("predicates", "reason"),
    [
        pytest.param([required({"cloud": "x"})], "its labels do not match the labelSelector", id="labels"),
        pytest.param([required(claims={"cloud": ["x"]})], "its claims do not match the claimSelector", id="claims"),
        pytest.param([required(cel=["1 == 1", "1 == 2"])], "1 == 2 is false", id="an expression"),
        pytest.param(
            [required(cel=["managedCluster.nope"])], "managedCluster.nope fails: no such key: nope", id="an error"
        ),
        pytest.param([required(cel=["1"])], "1 is neither true nor false", id="no boolean"),
        pytest.param([required({"a": "b"}), required({"a": "c"})], "none of the 2 predicates matches", id="several"),
    ],
)
def test_why_a_cluster_does_not_match(predicates: list[Any], reason: str) -> None:
    placement = a_placement(predicates=predicates)
    assert PLUGIN.why(placement, a_view(placement, CLOUDS, ["c1"])[0]) == reason
