"""Server-side apply: who owns what, conflicts, and what is removed."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.ownership import applying, comparison, field_paths, managers
from stowplan.embedded.ownership.shapes import BuiltinShape, CustomShape
from tests.embedded.client import APPLY, MERGE, PODS, Client

MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENT = BuiltinShape("apps.v1.Deployment")
POD = BuiltinShape("core.v1.Pod")


def config(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}


def apply(client: Client, manager: str, document: dict[str, Any], **query: str) -> tuple[int, Any]:
    return client.ask("PATCH", f"{MAPS}/m", document, APPLY, fieldManager=manager, **query)


def owners(client: Client) -> dict[str, Any]:
    _, found = client.ask("GET", f"{MAPS}/m")
    return {entry["manager"]: entry["fieldsV1"] for entry in found["metadata"]["managedFields"]}


def test_a_new_object_belongs_to_who_applies_it() -> None:
    client = Client()
    status, found = apply(client, "one", config(a="b"))
    assert status == 201
    (entry,) = found["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("one", "Apply", "v1")
    assert entry["fieldsV1"] == {"f:data": {"f:a": {}}}


def test_a_change_of_what_another_owns_is_a_conflict() -> None:
    client = Client()
    apply(client, "one", config(a="b", c="d"))
    status, error = apply(client, "two", config(a="x"))
    assert (status, error["reason"]) == (409, "Conflict")
    assert error["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    said = {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    assert error["details"]["causes"] == [said]
    status, error = apply(client, "two", config(a="x", c="y"))
    assert error["message"] == 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.c'


def test_force_takes_what_another_owns() -> None:
    client = Client()
    apply(client, "one", config(a="b", c="d"))
    status, found = apply(client, "two", config(a="x"), force="true")
    assert (status, found["data"]) == (200, {"a": "x", "c": "d"})
    assert owners(client) == {"one": {"f:data": {"f:c": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_the_same_value_has_two_owners_and_goes_with_the_last() -> None:
    client = Client()
    apply(client, "one", config(a="b", c="d"))
    assert apply(client, "two", config(a="b"))[0] == 200
    assert apply(client, "one", config(c="d"))[1]["data"] == {"a": "b", "c": "d"}
    assert apply(client, "two", config())[1]["data"] == {"c": "d"}


def test_a_write_that_is_no_apply_owns_what_it_changes() -> None:
    client = Client()
    apply(client, "one", config(a="b", c="d"))
    client.ask("PATCH", f"{MAPS}/m", {"data": {"a": "x", "c": None}}, MERGE, fieldManager="patcher")
    assert owners(client) == {"patcher": {"f:data": {"f:a": {}}}}
    _, error = apply(client, "one", config(a="b"))
    assert error["message"].endswith('conflict with "patcher" using v1: .data.a')


def test_what_was_there_before_the_first_apply() -> None:
    client = Client()
    pod = {"metadata": {"name": "m", "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    assert "managedFields" not in client.ask("POST", PODS, pod)[1]["metadata"]
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "c"}}}
    status, error = client.ask("PATCH", f"{PODS}/m", applied, APPLY, fieldManager="one")
    assert (status, error["message"].partition(" with ")[2]) == (
        409, '1 conflict: conflict with "before-first-apply" using v1: .metadata.labels.a')  # fmt: skip


def test_a_dry_run_changes_nothing() -> None:
    client = Client()
    apply(client, "one", config(a="b"))
    before = client.ask("GET", f"{MAPS}/m")
    assert apply(client, "one", config(a="c"), dryRun="All")[1]["data"] == {"a": "c"}
    assert client.ask("GET", f"{MAPS}/m") == before
    assert apply(client, "one", config(a="b"))[1] == before[1], "applied again, it keeps its version"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param({"kind": "ConfigMap"}, "apiVersion is missing", id="no version"),
        pytest.param({"apiVersion": "v1", "kind": "Pod"}, "expected v1, Kind=ConfigMap", id="another kind"),
        pytest.param({**config(), "metadata": {"name": "x"}}, "does not match the name on the URL", id="another name"),
        pytest.param({**config(), "metadata": {"managedFields": [{}]}}, "metadata.managedFields must be nil",
                     id="owners"),
        pytest.param({**config(), "dta": {}}, ".dta: field not declared in schema", id="an unknown field"),
        pytest.param([], "no object", id="a list"),
        pytest.param({**config(), "data": "x"}, "cannot unmarshal", id="a wrong type"),
    ],
)  # fmt: skip
def test_what_cannot_be_applied(document: Any, message: str) -> None:
    status, error = apply(Client(), "one", document)
    assert status == 400
    assert message in error["message"]


CONTAINER = {"name": "c", "image": "x", "ports": [{"containerPort": 80}], "command": ["a"]}
WITH_CONTAINER: dict[str, Any] = {"spec": {"containers": [CONTAINER], "nodeSelector": {"a": "b"}}}


def test_the_paths_of_a_pod() -> None:
    port = 'k:{"containerPort":80,"protocol":"TCP"}'
    fields: dict[str, Any] = {
        ".": {},
        "f:name": {},
        "f:image": {},
        "f:command": {},
        "f:ports": {port: {".": {}, "f:containerPort": {}}},
    }
    expected = {"f:spec": {"f:containers": {'k:{"name":"c"}': fields}, "f:nodeSelector": {}}}
    found = comparison.paths_of(WITH_CONTAINER, POD)
    assert field_paths.as_tree(found) == expected
    assert field_paths.from_tree(expected) == found
    texts = {field_paths.shown(path) for path in found}
    assert '.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"].containerPort' in texts


@pytest.mark.parametrize("tree", [[], "x", {"f:a": 1}, {"q:a": {}}, {"a": {}}], ids=str)
def test_what_is_no_set_of_fields(tree: Any) -> None:
    with pytest.raises(ValueError, match="FieldsV1"):
        field_paths.from_tree(tree)


def test_items_are_merged_by_their_keys_and_removed_as_a_whole() -> None:
    more = {"spec": {"containers": [{"name": "d", "image": "y"}, {"name": "c", "image": "z"}]}}
    merged = applying.merged(WITH_CONTAINER, more, POD)
    assert [(each["name"], each["image"]) for each in merged["spec"]["containers"]] == [("c", "z"), ("d", "y")]
    dropped = comparison.paths_of({"spec": {"containers": [{"name": "d", "image": "y"}]}}, POD)
    left = applying.pruned(merged, POD, dropped, ())
    assert [each["name"] for each in left["spec"]["containers"]] == ["c"]
    needed = [("f:spec", "f:containers", 'k:{"name":"d"}', "f:env")]
    left = applying.pruned(merged, POD, dropped, needed)
    assert left["spec"]["containers"][1] == {"name": "d"}, "the item stays with its key, since somebody needs it"


def test_a_custom_resource_is_divided_by_its_schema() -> None:
    item = {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}}
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"], "items": item}
    spec = {"type": "object", "properties": {
        "keyed": keyed, "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "whole": {"type": "array", "items": item}, "atomic": {"type": "object", "x-kubernetes-map-type": "atomic"},
    }}  # fmt: skip
    shape = CustomShape({"type": "object", "properties": {"spec": spec}}, top=True)
    document = {"spec": {"keyed": [{"id": "a", "n": 1}], "set": ["x"], "whole": [{"id": "b"}], "atomic": {"q": 1}}}
    assert field_paths.as_tree(comparison.paths_of(document, shape))["f:spec"] == {
        "f:keyed": {'k:{"id":"a"}': {".": {}, "f:id": {}, "f:n": {}}}, "f:set": {'v:"x"': {}}, "f:whole": {},
        "f:atomic": {},
    }  # fmt: skip


def test_who_owns_the_same_keeps_the_time() -> None:
    one = managers.Manager("one", managers.APPLY, "v1")
    first = managers.written({one: frozenset({("f:data", "f:a")})}, (), "before")
    again = managers.written(managers.read(first), first, "now")
    assert again == first
