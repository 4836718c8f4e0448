"""Manifests of a workload: what is read, what is refused, and the patch that brings an object back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stowplan.apps.place.follow import kubeconfigs, manifest
from stowplan.apps.place.follow.kubeconfigs import Kubeconfigs
from stowplan.objects.errors import ConfigError

SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"a": "1", "b": "2"}}


ONE = "{apiVersion: v1, kind: Pod, metadata: {name: x}}\n"


def wanted(**more: Any) -> dict[str, Any]:
    return manifest.marked({**SETTINGS, **more}, "me", "default")


def test_definitions_and_namespaces_come_first(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: s, namespace: n, uid: x}, data: {a: null, b: c}, "
        "status: {}}\n"
        "---\n{apiVersion: v1, kind: Namespace, metadata: {name: n}}\n---\n"
        "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: d}}\n"
    )
    found = manifest.read([file])
    assert [each["kind"] for each in found.objects] == ["CustomResourceDefinition", "Namespace", "ConfigMap"]
    assert found.objects[2]["metadata"] == {"name": "s", "namespace": "n"} and found.objects[2]["data"] == {"b": "c"}
    assert "status" not in found.objects[2]
    before = manifest.fingerprint([tmp_path])
    file.write_text(file.read_text() + "# only a remark\n")
    assert manifest.read([file]).digest == found.digest and manifest.fingerprint([tmp_path]) != before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "found no objects", id="nothing"),
        pytest.param("a: [", "cannot be read", id="not YAML"),
        pytest.param("{apiVersion: v1, kind: Pod, metadata: {generateName: x}}", "Pod: metadata.name", id="no name"),
        pytest.param("{kind: Pod, metadata: {name: x}}", "Pod: apiVersion", id="no version"),
        pytest.param(f"{ONE}---\n{ONE}", "Pod x is there twice", id="twice"),
    ],
)
def test_manifests_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "it.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said) as raised:
        manifest.read([file])
    assert "it.yaml" in str(raised.value)


def test_objects_are_marked() -> None:
    made = wanted()
    assert made["metadata"]["namespace"] == "default" and manifest.is_ours(made, "me")
    assert not manifest.is_ours(made, "you") and not manifest.is_ours(SETTINGS, "me")
    assert manifest.selector("me") == "app.kubernetes.io/managed-by=stowplan-follow,stowplan.io/follower=me"


def test_long_names_become_labels() -> None:
    one, another = (manifest.label_value(f"{'n' * 63}.placement-{number}") for number in range(2))
    assert one != another and len(one) == len(another) == 63 and manifest.label_value("n.p") == "n.p"


def changed(live: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**live, **more}


@pytest.mark.parametrize(
    ("live", "found"),
    [
        pytest.param(wanted(), None, id="as it was made"),
        pytest.param(changed(wanted(), status={"x": 1}, extra=1), None, id="others added fields"),
        pytest.param(changed(wanted(), data={"a": "9", "b": "2"}), {"a": "1", "b": "2"}, id="a value was changed"),
        pytest.param(changed(wanted(), data={"a": "1"}), {"a": "1", "b": "2"}, id="a field was removed"),
        pytest.param(
            wanted(data={"a": "1", "c": "3"}), {"a": "1", "b": "2", "c": None}, id="the manifest has lost one"
        ),
        pytest.param(
            changed(wanted(data={"a": "1", "b": "2", "c": "3"}), data={"a": "1", "b": "2", "d": "theirs"}),
            {"a": "1", "b": "2"},
            id="which is gone already, and others added one",
        ),
        pytest.param(wanted(data=["x"]), {"a": "1", "b": "2"}, id="a list became a mapping"),
    ],
)
def test_the_patch_that_brings_an_object_back(live: dict[str, Any], found: Any) -> None:
    patch = manifest.patch_for(live, wanted())
    assert (patch and patch["data"]) == found


@pytest.mark.parametrize(
    ("live", "same"),
    [
        pytest.param([{"name": "main", "image": "x", "imagePullPolicy": "Always"}], True, id="with a default"),
        pytest.param([{"name": "main", "image": "y"}], False, id="another value"),
        pytest.param([{"name": "main", "image": "x"}, {"name": "more"}], False, id="one more"),
        pytest.param({}, False, id="no list"),
    ],
)
def test_lists_are_compared_one_by_one(live: Any, same: bool) -> None:
    made = wanted(data=[{"name": "main", "image": "x"}])
    assert (manifest.patch_for(changed(made, data=live), made) is None) == same


@pytest.mark.parametrize(
    ("live", "same"),
    [
        pytest.param({"cpu": "1", "memory": "1Gi"}, True, id="the same amount in other words"),
        pytest.param({"cpu": "1", "memory": "1G"}, False, id="another amount"),
        pytest.param({"cpu": "1"}, False, id="one is missing"),
        pytest.param({"cpu": "1", "memory": "much"}, False, id="no amount"),
    ],
)
def test_amounts_are_compared_as_amounts(live: Any, same: bool) -> None:
    made = wanted(data={"requests": {"cpu": "1000m", "memory": "1024Mi"}})
    assert (manifest.patch_for(changed(made, data={"requests": live}), made) is None) == same


def test_a_label_that_the_manifest_lost_is_removed() -> None:
    before = manifest.marked(SETTINGS | {"metadata": {"name": "s", "labels": {"team": "web"}}}, "me", "default")
    patch = manifest.patch_for(before, wanted())
    assert patch is not None and patch["metadata"]["labels"]["team"] is None


# -- kubeconfigs


def test_the_files_of_a_folder_are_clusters(tmp_path: Path) -> None:
    for name in ("east.kubeconfig", "west", "north.yaml", "..data", ".hidden"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    mine = tmp_path / "folder" / "mine"
    mine.write_text("mine")
    found = Kubeconfigs({"west": mine}, tmp_path)
    assert {name: file.name for name, (file, _) in found.found().items()} == {
        "east": "east.kubeconfig",
        "north": "north.yaml",
        "west": "mine",
    }
    before = found.found()["east"]
    (tmp_path / "east.kubeconfig").write_text("new credentials")
    assert found.found()["east"] != before


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(["east"], "expected NAME=KUBECONFIG", id="no file"),
        pytest.param(["=x"], "expected NAME=KUBECONFIG", id="no name"),
        pytest.param(["a=x", "a=y"], "two kubeconfigs of a", id="twice"),
    ],
)
def test_clusters_that_cannot_be_used(given: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        kubeconfigs.pairs(given)


def test_files_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--cluster a: no such file; expected a kubeconfig"):
        Kubeconfigs({"a": tmp_path / "x"})
    with pytest.raises(ConfigError, match="no such folder"):
        Kubeconfigs({}, tmp_path / "x")
