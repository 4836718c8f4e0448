"""Packages of Debian and wheels become trees in which nothing of their makers' machines is left."""

from __future__ import annotations

import pytest
from deploy.image.archives import ArchiveError, control, metadata_of, unpack_package, unpack_wheel
from deploy.image.tree import Tree

from tests.image import parts

FILES: dict[str, str | int] = {
    "": 0o755,
    "lib": 0o755,
    "lib/libx.so.1": "code",
    "usr/share/x": 0o2777,
    "usr/share/x/a": "text",
    "usr/share/x/b": "link to a",
    "usr/share/x/c": "hard link to ./usr/share/x/a",
}


def test_a_package() -> None:
    tree = Tree()
    unpack_package(parts.package("Package: x\nVersion: 1\n", FILES), tree)
    assert {path: (entry.mode, entry.data or entry.target) for path, entry in tree.entries.items()} == {
        "usr": (0o755, ""),
        "usr/lib": (0o755, ""),
        "usr/lib/libx.so.1": (0o755, b"code"),
        "usr/share": (0o755, ""),
        "usr/share/x": (0o755, ""),
        "usr/share/x/a": (0o755, b"text"),
        "usr/share/x/b": (0o777, "a"),
        "usr/share/x/c": (0o755, b"text"),
    }


def test_what_a_package_says_of_itself() -> None:
    assert control(parts.package("Package: x\n", {})) == {"control": "Package: x\n"}


def test_what_is_no_package() -> None:
    with pytest.raises(ArchiveError, match="not an ar archive"):
        control(b"<html>")
    with pytest.raises(ArchiveError, match=r"without control\.tar"):
        control(b"!<arch>\n")


@pytest.mark.parametrize("path", ["../evil", "a/../../evil", "/evil"])
def test_nothing_leaves_the_image(path: str) -> None:
    with pytest.raises(ValueError, match="not a path inside an image"):
        unpack_wheel(parts.wheel("x", "1", {path: "evil"}), "app", Tree())


def test_a_wheel() -> None:
    tree = Tree()
    data = parts.wheel("x", "1", {"x.py": "", "x-1.data/purelib/y.py": "y", "x-1.data/scripts/run": "#!python"})
    unpack_wheel(data, "app", tree)
    assert {path for path, _ in tree.files()} == {"app/x.py", "app/y.py", "app/x-1.dist-info/METADATA"}
    assert metadata_of(data).startswith("Metadata-Version: 2.4\nName: x\n")
