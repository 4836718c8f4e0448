"""Responses of Prometheus and of scorers: values, and errors of unusable responses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stowplan.kube.responses import RefusedError, Response
from stowplan.objects import kinds
from stowplan.objects.clusters import ManagedCluster
from stowplan.objects.errors import ConfigError, StowplanError
from stowplan.scores import prometheus, scorer
from stowplan.scores.demand import EVERYTHING, Demand
from stowplan.scores.http_source import AnswerError, HttpSource


def answered(document: Any, status: int = 200) -> Response:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Response(status, [], body)


def a_vector(*samples: tuple[dict[str, str], str], **more: Any) -> Response:
    result = [{"metric": metric, "value": [1700000000.123, value]} for metric, value in samples]
    return answered({"status": "success", "data": {"resultType": "vector", "result": result}, **more})


@pytest.mark.parametrize(
    ("answer", "values", "notes"),
    [
        pytest.param(a_vector(), {}, [], id="nothing"),
        pytest.param(
            a_vector(({"cluster": "a"}, "1.5"), ({"cluster": "b"}, "2e9")), {"a": 1.5, "b": 2e9}, [], id="two clusters"
        ),
        pytest.param(
            a_vector(({"cluster": "a"}, "1"), ({"job": "x"}, "2"), ({}, "3")),
            {"a": 1.0},
            ['2 of 3 samples have no label "cluster" and are skipped'],
            id="samples without the label",
        ),
        pytest.param(
            a_vector(({"cluster": "a"}, "NaN"), ({"cluster": "b"}, "+Inf")),
            {"b": float("inf")},
            ["not a number: a"],
            id="no numbers",
        ),
        pytest.param(a_vector(warnings=["a store is gone"]), {}, ["a store is gone"], id="Thanos warns"),
    ],
)
def test_a_vector(answer: Response, values: dict[str, float], notes: list[str]) -> None:
    found = prometheus.read(answer, "cluster", "query")
    assert (found.values, found.notes) == (values, notes)


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        pytest.param(
            answered({"status": "error", "errorType": "bad_data", "error": "parse error"}, 400),
            RefusedError,
            "query: 400 bad_data: parse error",
            id="a query that is none",
        ),
        pytest.param(
            a_vector(({"cluster": "a", "pod": "x"}, "1"), ({"cluster": "a", "pod": "y"}, "2")),
            AnswerError,
            'several samples with cluster="a", expected one; aggregate it, as in: max by \\(cluster\\)',
            id="two samples of one cluster",
        ),
        pytest.param(
            answered({"status": "success", "data": {"resultType": "matrix", "result": []}}),
            AnswerError,
            "the query gives a matrix, expected an instant vector",
            id="a range",
        ),
        pytest.param(
            answered({"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}),
            AnswerError,
            "the query gives a scalar",
            id="one number",
        ),
        pytest.param(
            answered({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}}]}}),
            AnswerError,
            "missing required field `value`",
            id="a histogram",
        ),
        pytest.param(answered(b"<html>", 502), RefusedError, "query: 502 <html>", id="a proxy's page"),
        pytest.param(answered(b"<html>"), AnswerError, "not one of Prometheus' API", id="a page"),
        pytest.param(answered({}), AnswerError, "missing required field `status`", id="some other JSON"),
    ],
)
def test_unusable_responses(answer: Response, kind: type[StowplanError], message: str) -> None:
    with pytest.raises(kind, match=message):
        prometheus.read(answer, "cluster", "query")


CLUSTER = kinds.convert(
    ManagedCluster,
    {
        "metadata": {"name": "cluster1", "labels": {"region": "eu"}},
        "status": {
            "capacity": {"cpu": "10"},
            "allocatable": {"cpu": 9},
            "clusterClaims": [{"name": "id.k8s.io", "value": "x"}],
            "version": {"kubernetes": "v1.36.4"},
        },
    },
)


def test_the_request_to_a_scorer() -> None:
    described = {
        "name": "cluster1",
        "labels": {"region": "eu"},
        "claims": {"id.k8s.io": "x"},
        "allocatable": {"cpu": "9"},
        "capacity": {"cpu": "10"},
        "kubernetesVersion": "v1.36.4",
    }
    assert scorer.request_body([CLUSTER], EVERYTHING) == {"clusters": [described], "scores": None}
    assert scorer.request_body([], Demand(frozenset({"b", "a"})))["scores"] == ["a", "b"]


def test_the_response_of_a_scorer() -> None:
    answer = answered({"scores": {"cluster1": {"latency": 80, "sla": -5.5}}, "more": 1})
    assert scorer.read(answer, "scorer") == {"cluster1": {"latency": 80.0, "sla": -5.5}}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(answered({"scores": {"a": {"x": "80"}}}), r"scores\[\.\.\.\]\[\.\.\.\]: expected", id="a text"),
        pytest.param(answered({"scores": {"a": 80}}), "expected `object`, got `int`; expected", id="no name"),
        pytest.param(answered([]), "expected `object`, got `array`", id="a list"),
        pytest.param(answered(b"fine"), "the answer is not JSON", id="no JSON"),
        pytest.param(answered({"message": "busy"}, 503), "POST scorer: 503 busy", id="a refusal"),
    ],
)
def test_invalid_responses_of_scorers(answer: Response, message: str) -> None:
    with pytest.raises(StowplanError, match=message):
        scorer.read(answer, "scorer")


@pytest.mark.parametrize("url", ["prometheus:9090", "ftp://prometheus", "http://", ""])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ConfigError, match="expected an address such as http://"):
        HttpSource(url)
