"""Each thing that must not be in an image is found. The libraries are NumPy's, in a tree that has too few of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from deploy.image import bytecode, checks, elf, licences
from deploy.image.contents import APP, BUNDLE
from deploy.image.tree import Entry, Tree

from tests.image.test_elf import pytestmark  # noqa: F401 (the same machines)

NUMPY = f"{APP}/numpy/_core/module.so"
LIBRARIES = f"{APP}/numpy.libs"


@pytest.fixture
def tree() -> Tree:
    tree = Tree()
    tree.file(BUNDLE, "-----BEGIN CERTIFICATE-----")
    tree.file(f"{APP}/x.py", "")
    tree.file(bytecode.place(f"{APP}/x.py"), "")
    return tree


def found(tree: Tree, architecture: str = "amd64") -> list[str]:
    return list(checks.complaints(tree, architecture))


def test_nothing_is_wrong(tree: Tree) -> None:
    assert found(tree) == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(lambda t: t.put("usr/bin/x", Entry(0o4755, b"")), "mode 4755 lends rights", id="setuid"),
        pytest.param(
            lambda t: t.put("etc/x", Entry(0o666, b"")), "mode 666 lends rights or lets others write", id="all"
        ),
        pytest.param(lambda t: t.put("etc", Entry(0o1777)), "etc: mode 1777", id="only tmp is everybody's"),
        pytest.param(lambda t: t.file("usr/bin/sh", ""), "usr/bin/sh: has no place", id="a shell"),
        pytest.param(lambda t: t.link("usr/bin/x", "y"), "a link to y, which is not there", id="a broken link"),
        pytest.param(lambda t: t.file(f"{APP}/y.py", ""), "y.py: is not compiled", id="a module that is not compiled"),
        pytest.param(lambda t: t.file(BUNDLE, ""), "no certificate", id="an empty bundle of certificates"),
    ],
)
def test_what_is_wrong_is_told(tree: Tree, spoil: Callable[[Tree], None], said: str) -> None:
    spoil(tree)
    (line,) = found(tree)
    assert said in line


def test_libraries(tree: Tree) -> None:
    folder = Path(np.__file__).parent
    (module,) = (folder / "_core").glob("_multiarray_umath.*.so")
    data = module.read_bytes()
    machine = elf.read(data).machine
    (other,) = {"amd64", "arm64"} - {machine}
    tree.file(NUMPY, data)
    assert found(tree, other) == [f"{NUMPY}: is for {machine}"]
    assert f"{NUMPY}: needs libc.so.6, which is not there" in found(tree, machine)
    lacking = {line for line in found(tree, machine) if "openblas" in line}
    assert len(lacking) == 1
    for each in (folder.parent / "numpy.libs").iterdir():
        tree.file(f"{LIBRARIES}/{each.name}", each.read_bytes())
    assert not {line for line in found(tree, machine) if line.startswith(NUMPY) and "openblas" in line}


def test_a_library_without_the_symbols(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (Tree(), Tree())
    files = {
        "usr/bin/x": elf.Linked("amd64", needed=("liby.so",), versions={"liby.so": frozenset({"Y_2"})}),
        "usr/lib/liby.so": elf.Linked("amd64", defines=frozenset({"Y_1"})),
    }
    for path in files:
        old.file(path, elf.MAGIC + path.encode())
    monkeypatch.setattr(elf, "read", lambda data: files[data.removeprefix(elf.MAGIC).decode()])
    assert list(checks.of_libraries(old, "amd64")) == [
        "usr/bin/x: needs Y_2 of liby.so, which usr/lib/liby.so does not have"
    ]
    files["usr/lib/liby.so"] = elf.Linked("amd64", defines=frozenset({"Y_1", "Y_2"}))
    assert list(checks.of_libraries(old, "amd64")) == [] == list(checks.of_libraries(new, "amd64"))


def test_licences() -> None:
    tree = Tree()
    tree.file(f"{APP}/a-1.dist-info/METADATA", "")
    tree.file(f"{APP}/b-1.dist-info/METADATA", "")
    tree.file(f"{APP}/b-1.dist-info/licenses/LICENSE", "")
    tree.file("usr/share/doc/libx/copyright", "text")
    tree.link("usr/share/doc/liby", "libx")
    assert licences.missing(["libx", "liby", "libz"], tree) == [
        "libz: no copyright file",
        f"a: no licence file in {APP}/a-1.dist-info",
    ]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("License-Expression: MIT OR Apache-2.0\n", ("MIT OR Apache-2.0", [])),
        ("License: BSD\n", ("", ["BSD"])),
        ("License: many\n        lines\nClassifier: License :: OSI Approved :: MIT License\n", ("", ["MIT License"])),
        ("Name: x\n", ("", [])),
    ],
)
def test_a_projects_licence(metadata: str, expected: tuple[str, list[str]]) -> None:
    assert licences.of_project(metadata) == expected


def test_a_packages_licences() -> None:
    tree = Tree()
    tree.file("usr/share/doc/a/copyright", "Format: x\n\nFiles: *\nLicense: MIT\n\nLicense: GPL-2\n text\n")
    tree.file("usr/share/doc/b/copyright", "It is free.")
    assert licences.of_package("a", tree) == ["GPL-2", "MIT"]
    assert licences.of_package("b", tree) == ["see /usr/share/doc/b/copyright"]
