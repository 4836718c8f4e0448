"""The files of an image, in memory: paths without a slash in front, each a file, a link or a folder.

Everything belongs to root, nobody else may write, and no file lends its owner's rights. So the tree that a package has
on disk, and the user who builds, leave no trace.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER, FILE, PROGRAM, SHARED = 0o755, 0o644, 0o755, 0o1777
DEEPEST = 40  # links that follow each other, as in Linux


@dataclass(frozen=True)
class Entry:
    """A file, if it has data; a link, if it has a target; otherwise a folder."""

    mode: int
    data: bytes | None = None
    target: str = ""

    @property
    def is_folder(self) -> bool:
        return self.data is None and not self.target


class Tree:
    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def file(self, path: str, data: bytes | str, *, program: bool = False) -> None:
        content = data.encode() if isinstance(data, str) else data
        self.put(path, Entry(PROGRAM if program else FILE, content))

    def link(self, path: str, target: str) -> None:
        self.put(path, Entry(0o777, None, target))

    def folder(self, path: str, mode: int = FOLDER) -> None:
        if path and (path not in self.entries or mode != FOLDER):
            self.put(path, Entry(mode))

    def put(self, path: str, entry: Entry) -> None:
        """Add an entry and the folders above it."""
        clean = posixpath.normpath(path)
        if clean != path or path.startswith(("/", "../")) or path in (".", ".."):
            raise ValueError(f"{path!r} is not a path inside an image")
        above = posixpath.dirname(path)
        if above and above not in self.entries:
            self.folder(above)
        self.entries[path] = entry

    def remove(self, doomed: Callable[[str], bool]) -> None:
        """Remove what the function says, and what lies in removed folders."""
        gone = {path for path in self.entries if doomed(path)}
        self.entries = {
            path: entry for path, entry in self.entries.items() if path not in gone and gone.isdisjoint(above(path))
        }

    def without_empty_folders(self) -> None:
        used = {folder for path, entry in self.entries.items() if not entry.is_folder for folder in above(path)}
        self.entries = {path: entry for path, entry in self.entries.items() if not entry.is_folder or path in used}

    def minus(self, other: Tree) -> Tree:
        """Return what this tree has and the other has not, or has otherwise: the next layer."""
        rest = Tree()
        rest.entries = {path: entry for path, entry in self.entries.items() if other.entries.get(path) != entry}
        return rest

    def plus(self, *others: Tree) -> Tree:
        whole = Tree()
        for tree in (self, *others):
            whole.entries.update(tree.entries)
        return whole

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield each file with its data, in the order of the paths."""
        for path in sorted(self.entries):
            data = self.entries[path].data
            if data is not None:
                yield path, data

    def resolve(self, path: str) -> str | None:
        """Follow links; return the path of what is there at last, or None."""
        for _ in range(DEEPEST):
            for part in (*above(path)[::-1], path):
                entry = self.entries.get(part)
                if entry is None:
                    return None
                if entry.target:
                    start = "" if entry.target.startswith("/") else posixpath.dirname(part)
                    led = posixpath.normpath(posixpath.join("/", start, entry.target.lstrip("/")))
                    path = (led + path[len(part) :]).lstrip("/")
                    break
            else:
                return path
        return None

    def read(self, path: str) -> bytes | None:
        found = self.resolve(path)
        return None if found is None else self.entries[found].data

    def write(self, folder: Path) -> None:
        """Write the tree into a folder that is empty."""
        for path in sorted(self.entries):
            entry, place = self.entries[path], folder / path
            if entry.target:
                place.symlink_to(entry.target)
            elif entry.data is None:
                place.mkdir()
                place.chmod(entry.mode)
            else:
                place.write_bytes(entry.data)
                place.chmod(entry.mode)


def above(path: str) -> list[str]:
    """Return the folders above a path, the nearest first."""
    found = []
    while path := posixpath.dirname(path):
        found.append(path)
    return found


def in_any(path: str, folders: Iterable[str]) -> bool:
    """Whether the path is one of these, or in one of them."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
