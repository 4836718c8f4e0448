"""What is wrong with an image: found without starting it, so it holds for every architecture."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from deploy.image import bytecode, elf
from deploy.image.contents import APP, BUNDLE, modules
from deploy.image.selection import MACHINES
from deploy.image.tree import SHARED, Tree

FORBIDDEN = ("sh", "bash", "dash", "pip", "pip3", "apt", "apt-get", "dpkg", "perl")
ORIGIN = "$ORIGIN"


def complaints(tree: Tree, architecture: str) -> Iterator[str]:
    yield from of_modes(tree)
    yield from of_links(tree)
    yield from of_modules(tree)
    yield from of_libraries(tree, architecture)
    if b"BEGIN CERTIFICATE" not in (tree.read(BUNDLE) or b""):
        yield f"{BUNDLE}: no certificate"


def of_modes(tree: Tree) -> Iterator[str]:
    for path, entry in tree.entries.items():
        if entry.mode & 0o6022 and not entry.target and (path, entry.mode) != ("tmp", SHARED):
            yield f"{path}: mode {entry.mode:o} lends rights or lets others write"
        if posixpath.basename(path) in FORBIDDEN and posixpath.dirname(path) == "usr/bin":
            yield f"{path}: has no place in this image"


def of_links(tree: Tree) -> Iterator[str]:
    for path, entry in tree.entries.items():
        if entry.target and tree.resolve(path) is None:
            yield f"{path}: a link to {entry.target}, which is not there"


def of_modules(tree: Tree) -> Iterator[str]:
    for path in modules(tree):
        if bytecode.place(path) not in tree.entries:
            yield f"{path}: is not compiled"


def of_libraries(tree: Tree, architecture: str) -> Iterator[str]:
    """Every program and library is of the architecture, and finds all that it needs, with the symbols it asks for."""
    read = {path: elf.read(data) for path, data in tree.files() if elf.is_elf(data)}
    for path, linked in read.items():
        if linked.machine != architecture:
            yield f"{path}: is for {linked.machine}"
            continue
        if linked.interpreter and tree.resolve(linked.interpreter.lstrip("/")) is None:
            yield f"{path}: its loader {linked.interpreter} is not there"
        for name in linked.needed:
            found = library(name, path, linked, tree, architecture)
            if found is None:
                yield f"{path}: needs {name}, which is not there"
                continue
            lacking = linked.versions.get(name, frozenset()) - read[found].defines
            if lacking:
                yield f"{path}: needs {', '.join(sorted(lacking))} of {name}, which {found} does not have"


def library(name: str, path: str, linked: elf.Linked, tree: Tree, architecture: str) -> str | None:
    """Find a library as the loader does: where the file says, then in the folders of the system."""
    here = posixpath.dirname(path)
    said = [posixpath.normpath(each.replace(ORIGIN, f"/{here}")).lstrip("/") for each in linked.search]
    for folder in (*said, f"usr/lib/{MACHINES[architecture]}-linux-gnu", "usr/lib", "usr/lib64"):
        found = tree.resolve(f"{folder}/{name}")
        if found is not None:
            return found
    # A library of the same wheel that another file of it has loaded already; wheels keep those in NAME.libs.
    beside = [each for each in tree.entries if each.startswith(APP) and posixpath.basename(each) == name]
    return beside[0] if beside else None
