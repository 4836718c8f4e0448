"""Decoding of API JSON and YAML values, and errors that name the path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stowplan.objects import kinds
from stowplan.objects.errors import ConfigError
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PriorityClass


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_every_kind_can_be_empty(kind: str) -> None:
    assert kinds.decode(kinds.KINDS[kind], '{"metadata": {"name": "x"}}').name == "x"


def test_json_and_yaml_values_give_the_same_object() -> None:
    manifest = {
        "metadata": {"name": "p", "namespace": "n", "labels": {"a": "b"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            "priority": 5,
        },
    }
    assert kinds.decode(Pod, json.dumps(manifest)) == kinds.convert(Pod, manifest)


def test_fields_that_no_decision_reads_are_ignored() -> None:
    pod = kinds.decode(
        Pod, '{"apiVersion": "v1", "kind": "Pod", "spec": {"dnsPolicy": "Default", "containers": [{"env": []}]}}'
    )
    assert pod.spec.containers[0].name == ""


def test_null_is_an_absent_field() -> None:
    text = (
        '{"metadata": {"name": "p", "creationTimestamp": null, "labels": null},'
        ' "spec": {"affinity": {"nodeAffinity": null}, "tolerations": null, "nodeName": null}}'
    )
    assert kinds.decode(Pod, text) == kinds.decode(Pod, '{"metadata": {"name": "p"}}')


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        pytest.param(2, "2", id="a number"),
        pytest.param(0.5, "0.5", id="a fraction"),
        pytest.param("500m", "500m", id="a text"),
    ],
)
def test_quantities_may_be_numbers(amount: Any, text: str) -> None:
    manifest = {"status": {"allocatable": {"cpu": amount}}}
    for node in (kinds.convert(Node, manifest), kinds.decode(Node, json.dumps(manifest))):
        assert node.status.allocatable == {"cpu": text}


@pytest.mark.parametrize(
    ("kind", "text", "error"),
    [
        pytest.param(
            Pod,
            '{"metadata": {"name": "p"}, "spec": {"containers": [{}, {"ports": [{"hostPort": "x"}]}]}}',
            "Pod p: spec.containers[1].ports[0].hostPort: expected `int`, got `str`",
            id="a wrong type, deep inside",
        ),
        pytest.param(
            Pod,
            '{"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}}',
            "Pod p: spec.containers[0].resources.requests[...]: expected a quantity such as 500m or 1Gi, found 'lots'",
            id="a quantity that is none",
        ),
        pytest.param(Node, '{"metadata": 5}', "Node: metadata: expected `object`, got `int`", id="not metadata"),
        pytest.param(Node, '{"metadata": null, "spec": 5}', "Node: spec: expected `object`, got `int`", id="no name"),
        pytest.param(Node, "[]", "Node: expected `object`, got `array`", id="a list"),
        pytest.param(Node, "5", "Node: expected `object`, got `int`", id="a number"),
        pytest.param(
            PriorityClass,
            '{"metadata": {"name": "c"}, "value": "high"}',
            "PriorityClass c: value: expected `int`, got `str`",
            id="a word for a number",
        ),
        pytest.param(Node, "{", "not a JSON object: Input data was truncated", id="half an object"),
        pytest.param(Node, "", "not a JSON object: Input data was truncated", id="nothing"),
        pytest.param(Node, b"\xff\xfe", "not a JSON object: JSON is malformed: invalid character (byte 0)", id="bytes"),
    ],
)  # fmt: skip
def test_errors_name_the_object_and_the_path(kind: Any, text: Any, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        kinds.decode(kind, text)
    assert str(caught.value) == error
