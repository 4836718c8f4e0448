"""Changes applied to documents: patches whose parents are missing, several patches of one object, added nodes."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.diagnosis.patches import apply, completed, merged, patched, pointer, segments, with_parents
from stowplan.diagnosis.remedy import AddNodes, CreateObject, DeleteObject, Operation, PatchObject

POD: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"containers": [{"name": "a"}], "schedulingGates": [{"name": "x"}, {"name": "y"}, {"name": "z"}]},
}
TOLERATION = {"key": "dedicated", "operator": "Exists"}


def test_a_pointer_and_its_parts_are_inverse() -> None:
    path = pointer("metadata", "labels", "example.com/a~b", 0)
    assert path == "/metadata/labels/example.com~1a~0b/0"
    assert segments(path) == ["metadata", "labels", "example.com/a~b", "0"]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        pytest.param(
            Operation("add", "/spec/tolerations/-", TOLERATION),
            Operation("add", "/spec/tolerations", [TOLERATION]),
            id="a missing list is added with its first element",
        ),
        pytest.param(
            Operation("add", "/metadata/labels/app", "web"),
            Operation("add", "/metadata/labels", {"app": "web"}),
            id="a missing map is added with its first member",
        ),
        pytest.param(
            Operation("add", "/spec/schedulingGates/-", {"name": "w"}),
            Operation("add", "/spec/schedulingGates/-", {"name": "w"}),
            id="a list that exists gets one more",
        ),
    ],
)
def test_a_missing_parent_is_added_whole(operation: Operation, expected: Operation) -> None:
    assert completed([operation], POD) == (expected,)


def test_the_second_addition_finds_the_parent_that_the_first_one_made() -> None:
    addition = Operation("add", "/spec/tolerations/-", TOLERATION)
    other = Operation("add", "/spec/tolerations/-", {"key": "other", "operator": "Exists"})
    found = patched(POD, completed([addition, other], POD))
    assert [each["key"] for each in found["spec"]["tolerations"]] == ["dedicated", "other"]
    assert "tolerations" not in POD["spec"]


def test_patches_of_one_object_become_one_and_removals_go_from_the_end() -> None:
    gates = [PatchObject("Pod", "default/web", (Operation("remove", f"/spec/schedulingGates/{at}"),)) for at in (0, 2)]
    image = PatchObject("Pod", "default/web", (Operation("add", "/spec/containers/0/image", "b"),))
    (change,) = merged([*gates, image], {("Pod", "default/web"): POD})
    assert isinstance(change, PatchObject)
    found = patched(POD, change.operations)
    assert [gate["name"] for gate in found["spec"]["schedulingGates"]] == ["y"]
    assert found["spec"]["containers"] == [{"name": "a", "image": "b"}]


def test_changes_are_applied_in_order_and_leave_the_documents_as_they_were() -> None:
    node = {"metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}}}
    documents = {("Pod", "default/web"): POD, ("Node", "n"): node}
    template = {"kind": "Node", "metadata": {"labels": {"kubernetes.io/hostname": "", "pool": "a"}}}
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}}
    after = apply(documents, [DeleteObject("Pod", "default/web"), AddNodes(2, "n", template), CreateObject(claim)])
    assert list(after) == [
        ("Node", "n"), ("Node", "n-new-1"), ("Node", "n-new-2"), ("PersistentVolumeClaim", "default/data")
    ]  # fmt: skip
    assert after["Node", "n-new-2"]["metadata"]["labels"] == {"kubernetes.io/hostname": "n-new-2", "pool": "a"}
    assert ("Pod", "default/web") in documents
    assert "name" not in template["metadata"]


def test_an_object_is_deleted_and_created_once_and_in_order() -> None:
    first, second = DeleteObject("Pod", "default/b"), DeleteObject("Pod", "default/a")
    claim = CreateObject({"kind": "PersistentVolumeClaim"})
    assert merged([first, second, claim, first, claim], {}) == (first, second, claim)


@pytest.mark.parametrize(("typed", "path"), [(True, "/spec/nodeSelector"), (False, "/spec/nodeSelector/a")])
def test_an_empty_part_of_a_typed_object_may_be_missing_where_it_is_stored(typed: bool, path: str) -> None:
    operation = Operation("add", "/spec/nodeSelector/a", "1")
    assert with_parents(operation, {"spec": {"nodeSelector": {}}}, typed=typed).path == path
