"""Decoding of API JSON and YAML values, and errors that name the path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stowplan.objects import kinds, quantity
from stowplan.objects.clusters import AddOnPlacementScore
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


# -- documents that Go reads, and a decoder does not


def _deep(levels: int = 1200) -> str:
    return '{"f:a":' * levels + "{}" + "}" * levels


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(f'"managedFields": [{{"fieldsV1": {_deep()}}}]', id="managedFields nested 1,200 deep"),
        pytest.param(f'"managedFields": [{{"fieldsV1": {_deep(10_000)}}}]', id="as deep as the API server takes"),
        pytest.param(f'"managedFields": {"[" * 2000}{"]" * 2000}', id="lists in lists"),
        pytest.param(r'"managedFields": [{"manager": "\ud800"}]', id="half a character in managedFields"),
        pytest.param(r'"annotations": {"a": "\udfff\u202e\u0000"}', id="half a character in an annotation"),
        pytest.param(f'"labels": null, "managedFields": [{{"fieldsV1": {_deep()}}}]', id="nested deep, with a null"),
    ],
)
def test_what_kube_scheduler_reads_is_read(metadata: str) -> None:
    text = f'{{"metadata": {{"name": "p", {metadata}}}, "spec": {{"nodeName": "n"}}}}'
    found = kinds.decode(Pod, text.encode())
    assert (found.name, found.node_name) == ("p", "n")


def test_bytes_that_are_no_utf_8_are_read_as_go_reads_them() -> None:
    assert kinds.decode(Pod, b'{"metadata": {"name": "p", "annotations": {"a": "\xff"}}}').annotations == {
        "a": "\ufffd"
    }


def test_a_quantity_of_5000_digits_is_a_quantity() -> None:
    document = {"status": {"allocatable": {"cpu": "9" * 5000, "memory": "0" * 5000 + "1Gi"}}}
    for node in (kinds.convert(Node, document), kinds.decode(Node, json.dumps(document))):
        assert {name: quantity.of(name, text) for name, text in node.status.allocatable.items()} == {
            "cpu": 0,
            "memory": 2**30,
        }
        assert max(map(len, node.status.allocatable.values())) <= quantity.LONGEST


def test_a_time_of_the_year_0_is_long_ago() -> None:
    document = {
        "metadata": {"name": "s", "annotations": {"a": "0000-01-01T00:00:00Z"}},
        "status": {"validUntil": "0000-01-01T00:00:00Z", "scores": [{"name": "x", "value": 3}]},
    }
    found = kinds.decode(AddOnPlacementScore, json.dumps(document))
    assert found.status.valid_until is not None and found.status.valid_until.year == 1
    assert found.annotations == {"a": "0000-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"metadata": {"name": "p"', id="cut off"),
        pytest.param(b"[" * 5000 + b"]" * 5000, id="lists in lists"),
        pytest.param(_deep().encode(), id="something else, nested deep"),
        pytest.param(b'{"spec": {"priority": ' + b"9" * 5000 + b"}}", id="a number of 5,000 digits"),
        pytest.param(b'{"spec": {"priority": 1e999}}', id="a number beyond all"),
        pytest.param(
            b'{"spec": {"containers": [{"resources": {"requests": {"cpu": "1e' + b"9" * 30 + b'"}}}]}}', id="exponent"
        ),
        pytest.param(b'{"status": {"startTime": "yesterday"}}', id="no time"),
    ],
)
def test_whatever_a_document_is_nothing_but_a_config_error_is_raised(text: bytes) -> None:
    try:
        kinds.decode(Pod, text)
    except ConfigError as error:
        assert len(str(error)) < 1000
