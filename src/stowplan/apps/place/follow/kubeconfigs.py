"""The kubeconfigs of the member clusters: named one by one (`--cluster`), or the files of a folder (`--clusters-dir`).

A folder is read again and again: a mounted Secret changes when a cluster joins or gets new credentials. The name of a
file is the name of its cluster, with or without the ending .kubeconfig, .yaml or .conf.

Whoever can write to the folder chooses the clusters, but runs nothing here: a file with an exec plugin is refused. A
file that is named by `--cluster` may have one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from stowplan.objects.errors import ConfigError

ENDINGS = (".kubeconfig", ".yaml", ".yml", ".conf")


class Kubeconfigs:
    def __init__(self, named: Mapping[str, Path], folder: Path | None = None) -> None:
        """Raises ConfigError if a file or the folder does not exist."""
        self._named, self._folder = named, folder
        for name, file in named.items():
            if not file.is_file():
                raise ConfigError(
                    "no such file", file=str(file), path=f"--cluster {name}", remedy="expected a kubeconfig"
                )
        if folder is not None and not folder.is_dir():
            raise ConfigError("no such folder", file=str(folder), path="--clusters-dir")

    def found(self) -> dict[str, tuple[Path, str]]:
        """Return the file of each cluster, and a digest of what is in it. Files that cannot be read are left out."""
        files = {**self._in_folder(), **self._named}
        digests = {name: _digest(file) for name, file in files.items()}
        return {name: (files[name], digest) for name, digest in digests.items() if digest}

    def _in_folder(self) -> dict[str, Path]:
        if self._folder is None:
            return {}
        try:  # a mounted Secret has hidden entries of its own
            files = [each for each in self._folder.iterdir() if each.is_file() and not each.name.startswith(".")]
        except OSError:
            return {}
        return {each.stem if each.suffix in ENDINGS else each.name: each for each in sorted(files)}


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def pairs(given: Iterable[str]) -> dict[str, Path]:
    """Return the files of NAME=KUBECONFIG, by name. Raises ConfigError for anything else."""
    found: dict[str, Path] = {}
    for text in given:
        name, _, file = text.partition("=")
        if not name or not file:
            raise ConfigError(f"found {text!r}, expected NAME=KUBECONFIG", path="--cluster")
        if name in found:
            raise ConfigError(f"found two kubeconfigs of {name}, expected one", path="--cluster")
        found[name] = Path(file)
    return found
