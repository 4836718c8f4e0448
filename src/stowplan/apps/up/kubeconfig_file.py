"""The kubeconfig that `stowplan up` writes: a file of its own, never somebody else's.

A file that exists is replaced only if it is empty, or an old one of ours: it has the mark of an embedded cluster, and
nothing but that cluster and its user (kubectl keeps the mark when it changes the context's namespace, say). At the end
the file is deleted if it is still the one that we wrote. Only its owner can read it: it may have a token.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from stowplan.embedded.cluster import MARK
from stowplan.objects import bounded_yaml
from stowplan.objects.errors import ConfigError

REMEDY = "give --kubeconfig a path where no file is"


def check(file: Path) -> None:
    """Raise ConfigError if there is a file that is not ours. An empty one may be filled."""
    if os.path.lexists(file) and not _is_empty(file) and identity(file) is None:
        raise ConfigError("exists, and was not written by stowplan up", file=str(file), remedy=REMEDY)


def write(file: Path, text: str) -> None:
    """Write the file, over an old one of ours if there is one."""
    check(file)
    exists = file.exists()
    written = file.with_name(f".{file.name}.{os.getpid()}") if exists else file
    try:
        with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
        if exists:
            written.replace(file)  # in one step: there is always a whole file
    except FileExistsError:  # it appeared since we looked
        raise ConfigError("exists, and was not written by stowplan up", file=str(written), remedy=REMEDY) from None
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(file)) from None


def delete(file: Path, wanted: str) -> None:
    """Delete the file if it is still the one of this cluster."""
    if identity(file) == wanted:
        with suppress(OSError):
            file.unlink()


def _is_empty(file: Path) -> bool:
    status = file.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_size == 0


def identity(file: Path) -> str | None:
    """Return which cluster of ours the file is for; None if it is not ours, or more than ours is in it."""
    try:
        if not stat.S_ISREG(file.lstat().st_mode):
            return None
        found = bounded_yaml.load(file.read_bytes())
    except (OSError, ConfigError):
        return None
    if not isinstance(found, dict) or any(_names(found.get(part)) != ["stowplan"] for part in ("clusters", "users")):
        return None
    for each in found.get("extensions") or ():
        if isinstance(each, dict) and each.get("name") == MARK and isinstance(each.get("extension"), dict):
            return str(each["extension"].get("id", ""))
    return None


def _names(entries: Any) -> list[Any]:
    return [each.get("name") if isinstance(each, dict) else None for each in entries or ()]
