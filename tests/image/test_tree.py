"""The tree: links are followed as a kernel does, and layers are differences."""

from __future__ import annotations

from pathlib import Path

import pytest
from deploy.image.tree import SHARED, Tree, in_any


@pytest.fixture
def tree() -> Tree:
    tree = Tree()
    tree.file("usr/lib/x86/libc.so.6", "code", program=True)
    tree.link("lib", "usr/lib")
    tree.link("usr/lib64/ld.so", "/lib/x86/libc.so.6")
    tree.link("usr/lib/up", "../lib64/ld.so")
    tree.link("loop", "loop")
    tree.link("lost", "nowhere")
    tree.link("out", "../../../usr")
    tree.folder("tmp", SHARED)
    return tree


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("usr/lib/x86/libc.so.6", "usr/lib/x86/libc.so.6"),
        ("lib/x86/libc.so.6", "usr/lib/x86/libc.so.6"),
        ("usr/lib64/ld.so", "usr/lib/x86/libc.so.6"),
        ("lib/up", "usr/lib/x86/libc.so.6"),
        ("out/lib/x86/libc.so.6", "usr/lib/x86/libc.so.6"),
        ("loop", None),
        ("lost", None),
        ("usr/lib/absent", None),
    ],
)
def test_links_are_followed(tree: Tree, path: str, found: str | None) -> None:
    assert tree.resolve(path) == found
    assert tree.read(path) == (b"code" if found else None)


def test_removing_a_folder_removes_what_is_in_it(tree: Tree) -> None:
    tree.remove(lambda path: path == "usr/lib")
    assert [path for path in tree.entries if path.startswith("usr/lib/")] == []
    assert "usr/lib64/ld.so" in tree.entries


def test_empty_folders(tree: Tree) -> None:
    tree.folder("var/empty")
    tree.without_empty_folders()
    assert not {"var", "var/empty", "tmp"} & {*tree.entries} and "usr/lib/x86" in tree.entries


def test_one_layer_over_another(tree: Tree) -> None:
    upper = Tree()
    upper.file("usr/lib/x86/libc.so.6", "newer")
    assert tree.plus(upper).read("lib/x86/libc.so.6") == b"newer"


def test_it_is_written(tree: Tree, tmp_path: Path) -> None:
    tree.write(tmp_path)
    assert (tmp_path / "lib" / "x86" / "libc.so.6").read_text() == "code"
    assert (tmp_path / "tmp").stat().st_mode & 0o7777 == SHARED
    assert (tmp_path / "usr" / "lib" / "x86" / "libc.so.6").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(("path", "inside"), [("a", True), ("a/b", True), ("ab", False), ("b/a", False)])
def test_in_any(path: str, inside: bool) -> None:
    assert in_any(path, ["a", "c"]) is inside
