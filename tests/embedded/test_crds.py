"""Custom resources: served at once, pruned, defaulted, checked."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.errors import ApiError
from stowplan.embedded.schema.structural import StructuralSchema
from stowplan.embedded.tables import custom
from tests.embedded.kubectl_manifests import DEFINITION, WIDGET
from tests.embedded.virtual_cluster import VirtualCluster


@pytest.fixture
def cluster() -> VirtualCluster:
    world = VirtualCluster(controllers=False)
    world.create(DEFINITION)
    return world


def widget(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


def test_a_definition_is_established_and_served_at_once(cluster: VirtualCluster) -> None:
    found = cluster.get("customresourcedefinitions.apiextensions.k8s.io", "widgets.example.io")
    assert {each["type"]: each["status"] for each in found["status"]["conditions"]} == {
        "NamesAccepted": "True", "Established": "True",
    }  # fmt: skip
    assert found["spec"]["names"]["listKind"] == "WidgetList"
    made = cluster.create(WIDGET)
    assert made["spec"] == {"size": 3, "colour": "red"}
    assert made["metadata"]["generation"] == 1


def test_unknown_fields_are_dropped_with_a_warning(cluster: VirtualCluster) -> None:
    options = cluster.options()
    resource = cluster.resource("example.io/v1", "Widget")
    made = cluster.api.create(resource, "default", widget(size=1, bogus={"a": 1}), options)
    assert "bogus" not in made["spec"]
    assert options.warnings == ['unknown field "spec.bogus"']


def test_the_status_has_a_door_of_its_own(cluster: VirtualCluster) -> None:
    made = cluster.create({**widget(size=1), "status": {"ready": True}})
    assert "status" not in made
    after = cluster.update({**made, "spec": {"size": 9}, "status": {"ready": True}}, "status")
    assert (after["spec"]["size"], after["status"]) == (1, {"ready": True})
    assert after["metadata"]["generation"] == 1
    later = cluster.update({**after, "spec": {"size": 2}, "status": {"ready": False}})
    assert (later["spec"]["size"], later["status"], later["metadata"]["generation"]) == (2, {"ready": True}, 2)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({}, "spec.size: Required value", id="something required is missing"),
        pytest.param({"size": "x"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: '
                     '"string"', id="a wrong type"),
        pytest.param({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
                     id="too small"),
        pytest.param({"size": 1, "colour": "green"}, 'spec.colour: Unsupported value: "green": supported values: '
                     '"red", "blue"', id="none of the choices"),
    ],
)  # fmt: skip
def test_refusals_of_the_schema(cluster: VirtualCluster, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        cluster.create(widget(**spec))
    assert refused.value.code == 422
    assert refused.value.message == f'Widget.example.io "w" is invalid: {message}'


def test_a_definition_takes_its_objects_along(cluster: VirtualCluster) -> None:
    cluster.create(WIDGET)
    cluster.delete("customresourcedefinitions.apiextensions.k8s.io", "widgets.example.io")
    assert cluster.api.catalogue.of_kind("example.io/v1", "Widget") is None
    assert cluster.all("widgets.example.io") == []


def test_two_versions_share_their_objects() -> None:
    cluster = VirtualCluster(controllers=False)
    version = "  - name: v2\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object, "
    cluster.create(DEFINITION + version + "x-kubernetes-preserve-unknown-fields: true}}\n")
    cluster.create(WIDGET)
    assert cluster.api.catalogue.versions("example.io") == ["v2", "v1"]
    resource = cluster.resource("example.io/v2", "Widget")
    assert cluster.api.get(resource, "default", "one")["spec"]["size"] == 3


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param(("name: widgets.example.io", "name: other.example.io"), "metadata.name", id="a wrong name"),
        pytest.param(("storage: true", "storage: false"), "spec.versions", id="no version to store"),
        pytest.param(("type: object", "type: thing"), "type", id="an unknown type"),
        pytest.param(("scope: Namespaced", "scope: Galaxy"), "spec.scope", id="an unknown scope"),
        pytest.param(("minimum: 1", "pattern: '('"), "pattern", id="a pattern that is none"),
    ],
)
def test_definitions_that_cannot_be_served(change: tuple[str, str], field: str) -> None:
    with pytest.raises(ApiError) as refused:
        VirtualCluster(controllers=False).create(DEFINITION.replace(*change, 1))
    assert refused.value.code == 422
    assert field in refused.value.message


@pytest.mark.parametrize(
    ("schema", "document", "pruned"),
    [
        pytest.param({"type": "object"}, {"a": 1}, {}, id="nothing is known"),
        pytest.param({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"a": 1}, {"a": 1},
                     id="everything is kept"),
        pytest.param({"type": "object", "additionalProperties": {"type": "object", "properties": {"b": {}}}},
                     {"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, id="a map of objects"),
        pytest.param({"type": "object", "properties": {"l": {"items": {"properties": {"a": {}}}}}},
                     {"l": [{"a": 1, "b": 2}]}, {"l": [{"a": 1}]}, id="a list of objects"),
    ],
)  # fmt: skip
def test_pruning(schema: dict[str, Any], document: dict[str, Any], pruned: dict[str, Any]) -> None:
    assert StructuralSchema(schema).pruned(document) == pruned


SET = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
MAP = {
    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
    "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "in": SET}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        pytest.param(SET, ["a", "b"], [], id="a set"),
        pytest.param(SET, ["a", "b", "a"], ['l[2]: Duplicate value: "a"'], id="a set with one twice"),
        pytest.param({**SET, "x-kubernetes-list-type": "atomic"}, ["a", "a"], [], id="a list may have one twice"),
        pytest.param(MAP, [{"a": "x", "b": 1}, {"a": "x", "b": 2}], [], id="two keys, one alike"),
        pytest.param(
            MAP, [{"a": "x", "b": 1}, {"b": 1, "a": "x"}], ['l[1]: Duplicate value: {"a":"x","b":1}'], id="both alike"
        ),
        pytest.param(MAP, [{"a": "x", "in": ["p", "p"]}], ['l[0].in[1]: Duplicate value: "p"'], id="further down"),
        pytest.param({"type": "string", "format": "date-time"}, "2026-01-01T00:00:00Z", [], id="a time"),
        pytest.param({"type": "string", "format": "date-time"}, "2026-01-01T00:00:00.5+02:00", [], id="a finer one"),
        pytest.param(
            {"type": "string", "format": "date-time"},
            "2026-01-01",
            ['l: Invalid value: "2026-01-01": l in body must be of type date-time: "2026-01-01"'],
            id="a day is no time",
        ),
        pytest.param({"type": "string", "format": "hostname"}, "a b", [], id="other formats are not looked at"),
    ],
)
def test_duplicates_and_times(schema: dict[str, Any], value: Any, message: list[str]) -> None:
    structural = StructuralSchema({"type": "object", "properties": {"l": schema}})
    assert [f"{cause.field}: {cause.message}" for cause in structural.causes({"l": value})] == message


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param(".spec.size", [3], id="a field"),
        pytest.param('.status.conditions[?(@.type=="Ready")].status', ["True"], id="an item by its type"),
        pytest.param(".spec.list[*].name", ["a", "b"], id="all items"),
        pytest.param(".spec.list[1].name", ["b"], id="one item"),
        pytest.param(".metadata.labels.x\\.io/y", ["z"], id="a name with a dot"),
        pytest.param(".spec.none.at.all", [], id="nothing"),
    ],
)
def test_paths_of_columns(path: str, found: list[Any]) -> None:
    document = {
        "metadata": {"labels": {"x.io/y": "z"}},
        "spec": {"size": 3, "list": [{"name": "a"}, {"name": "b"}]},
        "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
    }
    assert custom.values(document, path) == found
