"""What the runs of a sweep depend on: the contents of files, settings, and the version of Stowplan.

Every process checks the files before each run: a file that changed meanwhile would give a table of two things. A
journal has the inputs in its first line, and is for these only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

import stowplan
from stowplan.objects.errors import ConfigError

MISSING = ""


class SweepInputs(msgspec.Struct, frozen=True):
    """`folder`: the one where all paths start. `files`: the SHA-256 of each. `python_path`: where else modules are."""

    folder: str
    files: dict[str, str]
    settings: dict[str, Any] = {}
    python_path: tuple[str, ...] = ()
    versions: dict[str, str] = {}

    def check(self) -> None:
        """Raise ConfigError for a file that is not as it was when the sweep began."""
        for name, expected in self.files.items():
            found = digest(Path(self.folder, name))
            if found != expected:
                what = "changed since the sweep began" if found else "is not there"
                remedy = "leave the files of a sweep as they are until it ends"
                raise ConfigError(what, file=name, remedy=remedy)
        for name, expected in self.versions.items():
            if installed()[name] != expected:
                remedy = "install the same version everywhere"
                raise ConfigError(
                    f"{name} is {installed()[name]} here, and {expected} where the sweep began", remedy=remedy
                )

    def difference(self, other: SweepInputs) -> str:
        """Return what is not the same in other inputs; an empty text if everything is. The folder may differ."""
        for name, mine, theirs in (
            ("the version of ", self.versions, other.versions),
            ("", self.settings, other.settings),
            ("", self.files, other.files),
        ):
            for key in sorted(mine.keys() | theirs.keys()):
                if mine.get(key) != theirs.get(key):
                    return f"{name}{key}"
        return ""


@cache
def installed() -> dict[str, str]:
    """Return the versions that the figures of a run may depend on; of Stowplan with a digest of its code.

    Whoever develops Stowplan changes its code and not its version.
    """
    root, digests = Path(stowplan.__file__).parent, hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digests.update(f"{file.relative_to(root)} {digest(file)}\n".encode())
    return {"numpy": version("numpy"), "stowplan": f"{version('stowplan')} ({digests.hexdigest()[:12]})"}


def inputs_of(files: Iterable[Path], settings: dict[str, Any], python_path: Iterable[Path] = ()) -> SweepInputs:
    """Return the inputs of a sweep that is started here, with these files."""
    found = {relative(each): digest(each) for each in files}
    for name, sha in found.items():
        if sha == MISSING:
            raise ConfigError("cannot be read", file=name)
    plain = msgspec.json.decode(msgspec.json.encode(settings))  # as a journal will have them
    return SweepInputs(
        str(Path.cwd()), dict(sorted(found.items())), plain, tuple(map(relative, python_path)), installed()
    )


def relative(path: Path) -> str:
    """Return a path as it starts at the folder of the sweep, so that it can be used on another machine."""
    return os.path.relpath(path)


def digest(file: Path) -> str:
    """Return the SHA-256 of a file; an empty text if it cannot be read."""
    try:
        with file.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest()
    except OSError:
        return MISSING
