"""Under which terms each part is: the licence files in the image, and the short names for the bill of materials."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable
from email.parser import HeaderParser

from deploy.image.contents import APP, DOCS
from deploy.image.locks import normal
from deploy.image.tree import Tree

FILE = re.compile(r"(licen[cs]e|copying|notice|authors|copyright)", re.IGNORECASE)
NAMED = re.compile(
    r"^License:[ \t]*(\S.*)$", re.MULTILINE
)  # in a copyright file of Debian in its machine-readable form
LONGEST = 64  # some projects write the whole text into the field for its name


def of_package(name: str, tree: Tree) -> list[str]:
    """Return the names of a package's licences, or where to read them."""
    text = (tree.read(f"{DOCS}/{name}/copyright") or b"").decode("utf-8", "replace")
    names = sorted({each.strip() for each in NAMED.findall(text)}) if "Format:" in text.partition("\n\n")[0] else []
    return names or [f"see /{DOCS}/{name}/copyright"]


def of_project(metadata: str) -> tuple[str, list[str]]:
    """Return a project's licence as an SPDX expression, or as names."""
    fields = HeaderParser().parsestr(metadata)
    if expression := fields.get("License-Expression"):
        return expression.strip(), []
    stated = (fields.get("License") or "").strip()
    if stated and len(stated) <= LONGEST and "\n" not in stated:
        return "", [stated]
    classified = [each.rpartition(" :: ")[2] for each in fields.get_all("Classifier", []) if each.startswith("License")]
    return "", classified


def files_of(info: str, tree: Tree) -> list[str]:
    """Return the licence files of a project, which lie in its .dist-info folder."""
    return [
        path
        for path, _ in tree.files()
        if path.startswith(f"{info}/") and ("/licenses/" in path or FILE.match(posixpath.basename(path)))
    ]


def projects(tree: Tree) -> dict[str, str]:
    """Return the .dist-info folder of each project in the image, by the project's name as PyPI compares it."""
    found = {}
    for path in tree.entries:
        folder, name = posixpath.split(path)
        if name == "METADATA" and folder.endswith(".dist-info") and posixpath.dirname(folder) == APP:
            found[normal(posixpath.basename(folder).partition("-")[0])] = folder
    return found


def missing(packages: Iterable[str], tree: Tree, own: Collection[str] = ()) -> list[str]:
    """Return what has no licence in the image. `own`: projects of whoever builds it, who need none of themselves."""
    of_debian = [f"{each}: no copyright file" for each in packages if not tree.read(f"{DOCS}/{each}/copyright")]
    return of_debian + [
        f"{name}: no licence file in {info}"
        for name, info in projects(tree).items()
        if name not in own and not files_of(info, tree)
    ]
