"""The locks that are committed: whole, and at the versions of constraints.txt. What is wrong with one is told."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from deploy.image import fetching, locks
from deploy.image.fetching import FetchError, Mirrors
from deploy.image.locks import BACKEND, WHEELS, LockError, Package, normal
from deploy.image.renewal import different, stanza
from deploy.image.selection import ARCHITECTURES, PACKAGES

ROOT = Path(__file__).parents[2]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
PINNED = {normal(name): version for name, _, version in (line.partition("==") for line in CONSTRAINTS)}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_architecture_has_the_same_packages_at_the_same_versions(architecture: str) -> None:
    lock, first = locks.read(architecture), locks.read(ARCHITECTURES[0])
    assert [(each.name, each.version) for each in lock.packages] == [
        (each.name, each.version) for each in first.packages
    ]
    assert {each.architecture for each in lock.packages} == {architecture, "all"}
    assert all(each.path.startswith("pool/") for each in lock.packages), "no address of a mirror"


def test_the_wheels_are_those_that_tests_run_with() -> None:
    """`make image-lock` after a change of constraints.txt or of the requirements in pyproject.toml."""
    found = {normal(each.name): each.version for each in locks.wheels()}
    assert found == {name: PINNED[name] for name in found}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {normal(re.split(r"[<>=;\s]", each)[0]) for each in project["dependencies"]}
    assert required <= set(found)


def test_the_backend_is_locked() -> None:
    assert "hatchling" in {each.name for each in locks.wheels(BACKEND)}


def test_wheels_are_written_as_they_are_read() -> None:
    story = "".join(line[2:] + "\n" for line in WHEELS.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
    assert locks.written_wheels(locks.wheels(), story.strip()) == WHEELS.read_text(encoding="utf-8")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_packages_are_written_as_they_are_read(architecture: str) -> None:
    assert locks.written(locks.read(architecture)) == locks.place(architecture).read_text(encoding="utf-8")


# -- what is wrong with a lock


def test_a_lock_that_is_none() -> None:
    with pytest.raises(LockError, match=r"x\.json: not a lock of packages .*`make image-lock` writes one"):
        locks.parse("[]", "x.json")


def test_a_lock_with_a_short_hash() -> None:
    document = json.loads(locks.place("amd64").read_text(encoding="utf-8"))
    document["packages"][0]["sha256"] = "123"
    with pytest.raises(LockError, match=r"base-files: '123' is not a SHA-256"):
        locks.parse(json.dumps(document), "x.json")


def test_a_lock_of_another_selection() -> None:
    document = json.loads(locks.place("amd64").read_text(encoding="utf-8"))
    document["packages"].pop()
    with pytest.raises(LockError, match=f"not the packages of selection.py: {sorted(PACKAGES)[-1]}"):
        locks.parse(json.dumps(document), "x.json")


@pytest.mark.parametrize("line", ["numpy", "numpy>=2", "numpy==2.4.6", "numpy==2.4.6 --hash=md5:12"])
def test_a_requirement_without_its_hash(line: str, tmp_path: Path) -> None:
    (tmp_path / "wheels.txt").write_text(line)
    with pytest.raises(LockError, match=r"wheels\.txt: numpy\S*: expected NAME==VERSION --hash=sha256"):
        locks.wheels(tmp_path / "wheels.txt")


# -- the index of Debian


def test_a_paragraph() -> None:
    assert stanza("Package: x\nDepends: a,\n b\nVersion: 1:2\n") == {
        "Package": "x",
        "Depends": "a,\nb",
        "Version": "1:2",
    }


def test_what_is_new_in_a_lock_is_told_but_for_its_date() -> None:
    assert list(different('"date": 1,\n"version": "1",\n', '"date": 2,\n"version": "2",\n')) == ['now "version": "2"']


# -- fetching


@pytest.fixture
def wanted() -> Package:
    return Package("x", "1.0", "all", "pool/x_1.0_all.deb", 4, fetching.sha256(b"good"), "x")


def mirror(folder: Path, data: bytes) -> str:
    (folder / "pool").mkdir(parents=True)
    (folder / "pool" / "x_1.0_all.deb").write_bytes(data)
    return folder.as_uri()


def test_the_mirror_that_has_it_is_asked_first_next_time(wanted: Package, tmp_path: Path) -> None:
    bad, good = mirror(tmp_path / "bad", b"evil"), mirror(tmp_path / "good", b"good")
    mirrors = Mirrors([(tmp_path / "none").as_uri(), bad, good])
    assert mirrors.get(wanted) == b"good"
    assert mirrors.addresses[0] == good


def test_a_file_with_another_hash_is_refused_and_not_kept(wanted: Package, tmp_path: Path) -> None:
    mirrors = Mirrors([mirror(tmp_path / "bad", b"evil")])
    (tmp_path / "cache").mkdir()
    with pytest.raises(FetchError, match=r"x 1\.0 is on no mirror(?s:.*)expected .*(?s:.*)make image-lock"):
        fetching.package(wanted, tmp_path / "cache", mirrors)
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_is_in_the_cache_is_not_fetched_unless_it_was_spoilt(wanted: Package, tmp_path: Path) -> None:
    good = Mirrors([mirror(tmp_path / "good", b"good")])
    file = fetching.package(wanted, tmp_path, good)
    assert fetching.package(wanted, tmp_path, Mirrors([])) == file
    file.write_bytes(b"evil")
    assert fetching.package(wanted, tmp_path, good).read_bytes() == b"good"


def test_without_mirrors_the_setting_is_named(wanted: Package) -> None:
    with pytest.raises(FetchError, match="STOWPLAN_DEBIAN_MIRRORS"):
        Mirrors([]).get(wanted)


def test_the_setting_goes_before_the_sources_of_apt() -> None:
    assert list(fetching.configured({"STOWPLAN_DEBIAN_MIRRORS": "file:///a file:///b"})) == ["file:///a", "file:///b"]
