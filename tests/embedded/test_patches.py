"""JSON, merge and strategic merge patches, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.api import patching
from stowplan.embedded.api.strategic_merge import strategic_merge
from stowplan.embedded.errors import ApiError

DOCUMENT = {"a": {"b": [1, 2], "c": "x"}, "d": None}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param([], DOCUMENT, id="nothing changes nothing"),
        pytest.param([{"op": "add", "path": "/a/e", "value": 1}], {"a": {"b": [1, 2], "c": "x", "e": 1}, "d": None},
                     id="a field is added"),
        pytest.param([{"op": "add", "path": "/a/b/1", "value": 9}], {"a": {"b": [1, 9, 2], "c": "x"}, "d": None},
                     id="an item is put between others"),
        pytest.param([{"op": "add", "path": "/a/b/-", "value": 9}], {"a": {"b": [1, 2, 9], "c": "x"}, "d": None},
                     id="an item is put at the end"),
        pytest.param([{"op": "remove", "path": "/a/b/0"}], {"a": {"b": [2], "c": "x"}, "d": None}, id="remove an item"),
        pytest.param([{"op": "replace", "path": "/a/none", "value": 1}],
                     {"a": {"b": [1, 2], "c": "x", "none": 1}, "d": None}, id="replacing what is not there adds it"),
        pytest.param([{"op": "move", "from": "/a/c", "path": "/d"}], {"a": {"b": [1, 2]}, "d": "x"}, id="moved"),
        pytest.param([{"op": "copy", "from": "/a/c", "path": "/e"}], DOCUMENT | {"e": "x"}, id="copied"),
        pytest.param([{"op": "test", "path": "/a/c", "value": "x"}], DOCUMENT, id="a test that holds"),
        pytest.param([{"op": "add", "path": "/a~1b~0c", "value": 1}], DOCUMENT | {"a/b~c": 1}, id="escaped names"),
        pytest.param([{"op": "replace", "path": "", "value": {}}], {}, id="the whole document"),
    ],
)  # fmt: skip
def test_json_patch(operations: Any, expected: Any) -> None:
    assert patching.json_patch(DOCUMENT, operations) == expected


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        pytest.param({"op": "add"}, 400, id="no list"),
        pytest.param(["x"], 400, id="no operations"),
        pytest.param([{"op": "nope", "path": "/a"}], 422, id="an unknown operation"),
        pytest.param([{"path": "/a"}], 422, id="no operation"),
        pytest.param([{"op": "remove", "path": "/none"}], 422, id="nothing to remove"),
        pytest.param([{"op": "remove", "path": ""}], 422, id="the whole document cannot be removed"),
        pytest.param([{"op": "add", "path": "/a/b/7", "value": 1}], 422, id="beyond the end"),
        pytest.param([{"op": "add", "path": "/a/b/x", "value": 1}], 422, id="no number"),
        pytest.param([{"op": "add", "path": "a", "value": 1}], 422, id="no pointer"),
        pytest.param([{"op": "add", "path": "/a/c/d", "value": 1}], 422, id="below a string"),
        pytest.param([{"op": "add", "path": "/a"}], 422, id="no value"),
        pytest.param([{"op": "test", "path": "/a/c", "value": "y"}], 422, id="a test that does not hold"),
        pytest.param([{"op": "add", "path": 5, "value": 1}], 422, id="a path that is no text"),
    ],
)
def test_json_patches_that_do_not_fit(operations: Any, code: int) -> None:
    with pytest.raises(ApiError) as refused:
        patching.json_patch(DOCUMENT, operations)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="adds"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {}}, id="null removes"),
        pytest.param({"a": [1]}, {"a": [2]}, {"a": [2]}, id="lists are replaced"),
        pytest.param({"a": 1}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}, id="an object in place of a number"),
    ],
)
def test_merge_patch(document: Any, patch: Any, expected: Any) -> None:
    assert patching.merge(document, patch) == expected


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "finalizers": ["a", "b"]}, "spec": spec}


TWO: list[dict[str, Any]] = [
    {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]},
    {"name": "b", "image": "2"},
]


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        pytest.param(
            pod(containers=TWO), {"spec": {"containers": [{"name": "b", "image": "3"}]}},
            pod(containers=[TWO[0], {"name": "b", "image": "3"}]), id="containers are merged by name",
        ),
        pytest.param(
            pod(containers=TWO), {"spec": {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]}},
            pod(containers=[{**TWO[0], "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}, TWO[1]]),
            id="lists in lists, too",
        ),
        pytest.param(
            pod(containers=TWO), {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}},
            pod(containers=[TWO[1]]), id="an item is deleted",
        ),
        pytest.param(
            pod(containers=TWO), {"spec": {"containers": [{"$patch": "replace"}, {"name": "c"}]}},
            pod(containers=[{"name": "c"}]), id="a list is replaced",
        ),
        pytest.param(
            pod(containers=TWO),
            {"spec": {"containers": [{"name": "c"}], "$setElementOrder/containers": [
                {"name": "c"}, {"name": "a"}, {"name": "b"}]}},
            pod(containers=[{"name": "c"}, *TWO]), id="in the order of the patch",
        ),
        pytest.param(
            pod(tolerations=[{"key": "a"}]), {"spec": {"tolerations": [{"key": "b"}]}}, pod(tolerations=[{"key": "b"}]),
            id="tolerations are replaced",
        ),
        pytest.param(
            pod(), {"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"name": "p", "finalizers": ["b", "c"]}, "spec": {}}, id="finalizers are a set of words",
        ),
        pytest.param(
            pod(nodeSelector={"a": "1"}), {"spec": {"nodeSelector": {"a": None, "b": "2"}}},
            pod(nodeSelector={"b": "2"}), id="maps are merged",
        ),
        pytest.param(
            pod(volumes=[{"name": "v", "emptyDir": {}}]),
            {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}},
            pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), id="a volume has one source",
        ),
        pytest.param(pod(a=1), {"$patch": "replace", "spec": {}}, {"spec": {}}, id="everything is replaced"),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}},
            {"status": {"conditions": [{"type": "Ready", "status": "False"},
                                       {"type": "PodScheduled", "status": "True"}]}},
            id="conditions are merged by type",
        ),
    ],
)  # fmt: skip
def test_strategic_merge(document: Any, patch: Any, expected: Any) -> None:
    assert strategic_merge(document, patch, "core.v1.Pod") == expected


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"metadata": {"finalizers": {}}}, id="an object for a list"),
        pytest.param({"spec": {"containers": [{"image": "x"}]}}, id="an item without its key"),
        pytest.param({"spec": {"containers": ["x"]}}, id="an item that is no object"),
        pytest.param({"spec": {"$patch": "nope"}}, id="an unknown directive"),
    ],
)
def test_strategic_patches_that_do_not_fit(patch: Any) -> None:
    with pytest.raises(ApiError) as refused:
        strategic_merge(pod(containers=TWO), patch, "core.v1.Pod")
    assert refused.value.code == 422
