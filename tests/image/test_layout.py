"""Layers and manifests: the same tree gives the same bytes, and what is read back is what was written."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest
from deploy.image import layout
from deploy.image.tree import SHARED, Tree

DATE = 1_700_000_000


def a_tree(*paths: str) -> Tree:
    tree = Tree()
    for path in paths:
        tree.file(path, f"the text of {path}", program=path.startswith("usr/bin/"))
    tree.link("bin", "usr/bin")
    tree.folder("tmp", SHARED)
    return tree


def test_the_order_of_making_does_not_count(tmp_path: Path) -> None:
    one = layout.layer(a_tree("a", "usr/bin/b", "c"), DATE, "x", tmp_path / "one")
    two = layout.layer(a_tree("c", "usr/bin/b", "a"), DATE, "x", tmp_path / "two")
    assert one == two
    assert one != layout.layer(a_tree("a", "usr/bin/b", "c"), DATE + 1, "x", tmp_path / "one")


def test_a_layer_is_read_back(tmp_path: Path) -> None:
    tree = a_tree("a", "usr/bin/b", "very/" + "long/" * 60 + "name")
    assert layout.unpacked(layout.layer(tree, DATE, "x", tmp_path).data).entries == tree.entries


def test_everything_is_roots_and_of_one_time(tmp_path: Path) -> None:
    data = layout.layer(a_tree("a", "usr/bin/b"), DATE, "x", tmp_path).data
    (tmp_path / "layer").write_bytes(data)
    with tarfile.open(tmp_path / "layer") as archive:
        assert {(each.uid, each.gid, each.uname, each.mtime) for each in archive} == {(0, 0, "", DATE)}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    out = tmp_path / "image"
    lower = layout.layer(a_tree("a", "b"), DATE, "lower", tmp_path / "cache")
    upper = Tree()
    upper.file("b", "newer")
    layers = [lower, layout.layer(upper, DATE, "upper", tmp_path / "cache")]
    layout.index([layout.manifest(layers, each, "1.2.3", DATE, out) for each in ("amd64", "arm64")], "1.2.3", out)
    return out


def test_the_layout(image: Path) -> None:
    assert json.loads((image / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (named,) = json.loads((image / "index.json").read_text())["manifests"]
    assert named["annotations"]["org.opencontainers.image.ref.name"] == "1.2.3"
    for blob in (image / "blobs" / "sha256").iterdir():
        assert blob.name == hashlib.sha256(blob.read_bytes()).hexdigest()


def test_what_a_runtime_reads(image: Path) -> None:
    manifest = layout.manifests(image)["arm64"]
    configuration = json.loads(layout.read(image, manifest["config"]["digest"]))
    assert configuration["architecture"] == "arm64" and configuration["os"] == "linux"
    assert configuration["config"]["User"] == "65532:65532"
    assert configuration["config"]["Cmd"] == ["/bin/stowplan", "run"] and "Entrypoint" not in configuration["config"]
    differences = configuration["rootfs"]["diff_ids"]
    assert len(differences) == len(manifest["layers"]) == len(configuration["history"]) == 2
    assert layout.compressed(manifest) == manifest["config"]["size"] + sum(each["size"] for each in manifest["layers"])


def test_layers_lie_over_each_other(image: Path) -> None:
    tree = layout.files(image, "amd64")
    assert tree.read("a") == b"the text of a" and tree.read("b") == b"newer"


def test_a_spoilt_blob_is_refused(image: Path) -> None:
    digest = layout.manifests(image)["amd64"]["layers"][0]["digest"]
    (image / "blobs" / "sha256" / digest.removeprefix("sha256:")).write_bytes(b"evil")
    with pytest.raises(ValueError, match="has other content"):
        layout.files(image, "amd64")


def test_the_archive_has_the_same_files(image: Path, tmp_path: Path) -> None:
    layout.archive(image, tmp_path / "one.tar", DATE)
    layout.archive(image, tmp_path / "two.tar", DATE)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    with tarfile.open(tmp_path / "one.tar") as archive:
        names = {each.name for each in archive if each.isfile()}
    assert names == {each.relative_to(image).as_posix() for each in image.rglob("*") if each.is_file()}
