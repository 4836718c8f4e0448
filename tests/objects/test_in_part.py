"""An object of which some fields cannot be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stowplan.objects.in_part import read_in_part
from stowplan.objects.meta import Object, ObjectMeta
from stowplan.objects.pod_parts import Container, PodSpec
from stowplan.objects.pods import Pod

KNOWN = Pod(
    ObjectMeta(name="web", labels={"app": "web"}, resource_version="1"),
    PodSpec(containers=(Container(name="c"),), node_name="n1", priority=7),
)


def document(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "2", "labels": {"app": "new"}}
    return {"metadata": metadata, "spec": {"nodeName": "n2", **spec}, "status": {"phase": "Running"}}


@pytest.mark.parametrize(
    ("spec", "containers", "priority"),
    [
        pytest.param({"containers": 5, "priority": 3}, ("c",), 3, id="the field that cannot be read is as it was"),
        pytest.param({"containers": 5, "priority": []}, ("c",), 7, id="two such fields"),
        pytest.param({"containers": 5}, ("c",), None, id="a field that is not there is not there"),
    ],
)
def test_what_can_be_read_is_new_and_the_rest_as_it_was(
    spec: dict[str, Any], containers: tuple[str, ...], priority: int | None
) -> None:
    found = read_in_part(Pod, json.dumps(document(**spec)).encode(), KNOWN)
    assert (found.key, found.labels, found.node_name, found.status.phase) == (
        "shop/web",
        {"app": "new"},
        "n2",
        "Running",
    )
    assert (tuple(each.name for each in found.spec.containers), found.spec.priority) == (containers, priority)


def test_without_an_earlier_version_the_field_is_missing() -> None:
    found = read_in_part(Pod, json.dumps(document(containers=5)).encode())
    assert (found.node_name, found.spec.containers) == ("n2", ())


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"labels": 5}, id="labels"),
        pytest.param({"creationTimestamp": "yesterday"}, id="a time"),
        pytest.param({"ownerReferences": {}, "annotations": [1]}, id="several"),
    ],
)
def test_an_object_has_its_name_whatever_else_is_in_its_metadata(metadata: dict[str, Any]) -> None:
    named = {"metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "2", **metadata}}
    found = read_in_part(Object, json.dumps(named).encode())
    assert (found.key, found.uid, found.metadata.resource_version) == ("shop/web", "u", "2")


@pytest.mark.parametrize("text", [b"", b"5", b"[]", b'{"metadata": 5}', b'{"metadata": {"name": 5}}'])
def test_of_anything_else_nothing_is_read(text: bytes) -> None:
    assert read_in_part(Object, text).key in ("", "5")
