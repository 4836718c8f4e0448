"""Placements and scores that the embedded and a real API server refuse with 422, and their messages."""

from __future__ import annotations

from typing import Any

import pytest

GROUP = "cluster.open-cluster-management.io"


def placement(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement", "metadata": {"name": "p"}, "spec": spec}


def prioritizer(**configuration: Any) -> dict[str, Any]:
    return placement(prioritizerPolicy={"configurations": [configuration]})


STEADY = {"scoreCoordinate": {"builtIn": "Steady"}}

REFUSED = [
    pytest.param(prioritizer(**STEADY, weight=11), "weight in body should be less than or equal", id="weight 11"),
    pytest.param(prioritizer(**STEADY, weight=-11), "should be greater than or equal to -10", id="weight -11"),
    pytest.param(prioritizer(weight=1), "spec.prioritizerPolicy.configurations[0]", id="a nameless prioritizer"),
    pytest.param(prioritizer(scoreCoordinate={"type": "Add"}), 'Unsupported value: "Add"', id="no such type"),
    pytest.param(
        prioritizer(scoreCoordinate={"type": "AddOn", "addOn": {"resourceName": "r"}}),
        "addOn.scoreName: Required value",
        id="an add-on without a score",
    ),
    pytest.param(
        prioritizer(scoreCoordinate={"builtIn": "Steady", "whenMissing": "never"}),
        'supported values: "zero", "min", "exclude", "lastKnown"',
        id="a whenMissing that is none",
    ),
    pytest.param(placement(numberOfClusters=-1), "spec.numberOfClusters", id="fewer than no clusters"),
    pytest.param(placement(sortBy="Age"), "spec.sortBy", id="an order that is none"),
    pytest.param(placement(scoreRateLimit="1.5m"), "spec.scoreRateLimit", id="half a minute too much"),
    pytest.param(
        placement(spreadPolicy={"spreadConstraints": [{"topologyKey": "zone"}]}),
        "topologyKeyType: Required value",
        id="a spread by an unknown topology",
    ),
    pytest.param(
        placement(
            spreadPolicy={"spreadConstraints": [{"topologyKey": "z", "topologyKeyType": "Label", "maxSkew": 0}]}
        ),
        "maxSkew in body should be greater than or equal to 1",
        id="no skew at all",
    ),
    pytest.param(
        placement(decisionStrategy={"groupStrategy": {"clustersPerDecisionGroup": "0%"}}),
        "clustersPerDecisionGroup",
        id="groups without clusters",
    ),
    pytest.param(placement(tolerations=[{"effect": "NoSchedule"}]), "tolerations[0].effect", id="a nodes' effect"),
    pytest.param(
        {"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement", "metadata": {"name": "p"}},
        "spec: Required value",
        id="no spec",
    ),
    pytest.param(
        {
            "apiVersion": f"{GROUP}/v1", "kind": "ManagedCluster", "metadata": {"name": "c"},
            "spec": {"taints": [{"key": "a b", "effect": "NoSelect"}]},
        },
        "spec.taints[0].key",
        id="a taint's key with a blank",
    ),
]  # fmt: skip
REFUSED_SCORES = [
    pytest.param({"scores": [{"name": "a", "value": 101}]}, "status.scores[0].value", id="101"),
    pytest.param({"scores": [{"name": "a", "value": -101}]}, "status.scores[0].value", id="-101"),
    pytest.param({"scores": [{"name": "a", "value": 1.5}]}, "status.scores[0].value", id="a fraction"),
    pytest.param({"scores": [{"prioritizer": "a", "value": 1}]}, "status.scores[0].name: Required", id="no name"),
    pytest.param({"scores": [{"name": "a"}]}, "status.scores[0].value: Required value", id="no value"),
    pytest.param(
        {"scores": [{"name": "a", "value": 1}, {"name": "b", "value": 1}, {"name": "a", "value": 2}]},
        'status.scores[2]: Duplicate value: {"name":"a"}',
        id="one name twice",
    ),
    pytest.param(
        {"validUntil": "tomorrow"},
        'Invalid value: "tomorrow": validUntil in body must be of type date-time: "tomorrow"',
        id="a time that is none",
    ),
]
