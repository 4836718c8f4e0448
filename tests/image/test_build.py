"""The image as a whole: built twice, measured, and what is in it. Building takes minutes."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from deploy.image import bom, build, fetching, layout, locks
from deploy.image.bom import needs
from deploy.image.contents import APP, STATUS
from deploy.image.selection import ARCHITECTURES, LEFT_OUT, PACKAGES
from deploy.image.tree import Tree
from jsonschema import Draft7Validator
from referencing import Registry, Resource

pytestmark = pytest.mark.full
SCHEMA = "cyclonedx-python-lib==11.12.0 --hash=sha256:0e807521a921a5c3cb8ce1153f8a61d29eedfe76a46aac2796b7c6b573391a54"
SPECIFIC = re.compile(r"/[^/]*(x86_64|aarch64)[^/]*")


@pytest.fixture(scope="module")
def trees(image: build.Image) -> dict[str, Tree]:
    return {each: layout.files(image.folder, each) for each in ARCHITECTURES}


def test_two_builds_have_the_same_digest(image: build.Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second build finds what was fetched, and nothing that the first one compiled, compressed or unpacked."""
    cache = build.cache_folder()
    other = tmp_path / "stowplan" / "image"
    other.mkdir(parents=True)
    for each in cache.iterdir():
        if each.name.startswith(("packages", "wheels-", "backend-")):
            (other / each.name).symlink_to(each)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    again = build.image(tmp_path / "out", ARCHITECTURES, [], print)
    assert again.digest == image.digest
    assert hashlib.sha256(again.archive.read_bytes()).digest() == hashlib.sha256(image.archive.read_bytes()).digest()
    shutil.rmtree(tmp_path / "out")


def test_its_size(image: build.Image, capsys: pytest.CaptureFixture[str]) -> None:
    assert set(image.sizes) == set(ARCHITECTURES)
    with capsys.disabled():
        sys.stdout.write("".join(f"\n{each}: {size / 1e6:.1f} MB compressed" for each, size in image.sizes.items()))
    assert all(30_000_000 < size <= build.LARGEST for size in image.sizes.values())


def test_both_architectures_have_the_same_files(trees: dict[str, Tree]) -> None:
    """But for the names of machines, and what compilers for the machines made otherwise."""
    names = [{SPECIFIC.sub("/…", path) for path in tree.entries if ".libs/" not in path} for tree in trees.values()]
    differing = names[0] ^ names[1]
    # The loader lies in lib64 on one of them; some packages have licences and modules for one machine only.
    assert {path for path in differing if path.startswith(APP)} == set()
    assert {path.split("/")[1] for path in differing if path.startswith("usr/")} <= {"lib", "lib64"}


def test_bytecode_is_the_same_for_both(trees: dict[str, Tree]) -> None:
    one, two = (
        {path: data for path, data in tree.files() if path.endswith(".pyc") and path.startswith(APP)}
        for tree in trees.values()
    )
    assert len(one) > 1000
    differing = {path for path in {*one, *two} if one.get(path) != two.get(path)}
    assert {path for path in differing if "__config__" not in path} == set(), "NumPy notes how it was built"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_dependency_is_there_or_left_out_for_a_reason(architecture: str, trees: dict[str, Tree]) -> None:
    tree, used = trees[architecture], set()
    for name in PACKAGES:
        stanza = (tree.read(f"{STATUS}/{name}") or b"").decode()
        assert f"Package: {name}\n" in stanza
        missing = {each for each in needs(stanza) if each not in PACKAGES}
        assert missing <= set(LEFT_OUT), name
        used |= missing
    assert used == set(LEFT_OUT), "a reason that nothing needs any more"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_bill_of_materials(architecture: str, trees: dict[str, Tree], image: build.Image) -> None:
    tree = trees[architecture]
    text = (tree.read(bom.PLACE) or b"").decode()
    version = image.folder.name.removeprefix("stowplan-")
    assert image.folder.with_name(f"stowplan-{version}-{architecture}.cdx.json").read_text() == text
    document: dict[str, Any] = json.loads(text)
    listed = {each["name"].lower(): each for each in document["components"]}
    lock = locks.read(architecture)
    assert {each.name for each in lock.packages} <= set(listed)
    assert {locks.normal(each.name) for each in locks.wheels()} <= {locks.normal(name) for name in listed}
    assert len(listed) == len(lock.packages) + len(locks.wheels()) + 1, "and the release"
    hashes = {each.sha256 for each in lock.packages} | {each for wheel in locks.wheels() for each in wheel.sha256}
    for component in document["components"][1:]:
        assert component["hashes"][0]["content"] in hashes, component["name"]
        assert component["licenses"], component["name"]
    assert document["metadata"]["component"]["version"] == version
    references = {each["bom-ref"] for each in (*document["components"], document["metadata"]["component"])}
    for each in document["dependencies"]:
        assert {each["ref"], *each["dependsOn"]} <= references
    by_reference = {each["ref"]: each["dependsOn"] for each in document["dependencies"]}
    assert any("numpy" in each for each in by_reference[document["metadata"]["component"]["bom-ref"]])


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Draft7Validator:
    """CycloneDX's own schema, from a wheel that brings it: too many dependencies to be one of ours."""
    folder = tmp_path_factory.mktemp("schema")
    (folder / "wanted.txt").write_text(SCHEMA, encoding="utf-8")
    fetching.pip("download", "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(folder / "wanted.txt"),
                 "--dest", str(folder))  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = ("bom-1.6", "spdx", "jsf-0.82")
        documents = [json.loads(archive.read(f"cyclonedx/schema/_res/{each}.SNAPSHOT.schema.json")) for each in names]
    known = Registry().with_resources([(each["$id"], Resource.from_contents(each)) for each in documents])
    return Draft7Validator(documents[0], registry=known)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_bill_of_materials_is_valid(architecture: str, trees: dict[str, Tree], schema: Draft7Validator) -> None:
    document = json.loads(trees[architecture].read(bom.PLACE) or b"")
    assert [f"{each.json_path}: {each.message}" for each in schema.iter_errors(document)] == []
    document["components"][0]["type"] = "riddle"
    assert not schema.is_valid(document)


def test_what_a_layer_is_for(image: build.Image) -> None:
    """The distribution's layer and the libraries' change seldom; only the last one has Stowplan."""
    manifest = layout.manifests(image.folder)[ARCHITECTURES[0]]
    trees = [layout.unpacked(layout.read(image.folder, each["digest"])) for each in manifest["layers"]]
    assert [f"{APP}/stowplan/__init__.py" in tree.entries for tree in trees] == [False, False, True]
    assert [f"{APP}/numpy/__init__.py" in tree.entries for tree in trees] == [False, True, False]
    assert [f"{STATUS}/libc6" in tree.entries for tree in trees] == [True, False, False]
