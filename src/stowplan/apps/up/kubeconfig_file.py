"""The kubeconfig that `stowplan up` writes: a file of its own, never somebody else's.

A file that exists is replaced only if it is empty, or an old one of ours: it has the mark of an embedded cluster, and
nothing but that cluster and its user (kubectl keeps the mark when it changes the context's namespace, say). A cluster
holds a lock on its file while it runs, so another one in the same folder takes the next name. At the end the file is
deleted if it is still the one that we wrote. Only its owner can read it: it may have a token.
"""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stowplan.embedded.cluster import MARK
from stowplan.objects import bounded_yaml
from stowplan.objects.errors import ConfigError

DEFAULT = Path("stowplan.kubeconfig")
REMEDY = "give --kubeconfig a path where no file is"


class InUseError(ConfigError):
    """The file is of a cluster that runs."""


@dataclass(frozen=True)
class WrittenKubeconfig:
    """A file that this process wrote, and the lock that it holds on it."""

    path: Path
    lock: int

    def close(self, cluster: str) -> None:
        """Delete the file if it is still the one of this cluster, and give up the lock."""
        delete(self.path, cluster)
        os.close(self.lock)


def check(file: Path) -> None:
    """Raise ConfigError if there is a file that is not ours. An empty one may be filled."""
    if os.path.lexists(file) and not _is_empty(file) and identity(file) is None:
        raise ConfigError("exists, and was not written by stowplan up", file=str(file), remedy=REMEDY)


def write_next(file: Path, text: str) -> WrittenKubeconfig:
    """Write the file, or the next name that no running cluster has: stowplan-2.kubeconfig."""
    number, name = 1, file
    while True:
        try:
            return write(name, text)
        except InUseError:
            number += 1
            name = file.with_name(f"{file.stem}-{number}{file.suffix}")


def write(file: Path, text: str) -> WrittenKubeconfig:
    """Write the file, over an old one of ours if there is one. It is locked before anybody can see it."""
    check(file)
    written = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        lock = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.write(lock, text.encode())
            _put(written, file)
        except BaseException:
            os.close(lock)
            raise
        finally:
            written.unlink(missing_ok=True)
    except FileExistsError:  # it appeared since we looked
        raise InUseError("was just written by somebody else", file=str(file), remedy=REMEDY) from None
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(file)) from None
    return WrittenKubeconfig(file, lock)


def _put(written: Path, file: Path) -> None:
    """Give a new file its name, in one step: there is always a whole file."""
    if not file.exists():
        file.hardlink_to(written)
        return
    old = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(old, fcntl.LOCK_EX | fcntl.LOCK_NB)
        written.replace(file)
    except BlockingIOError:
        remedy = "give --kubeconfig another path"
        raise InUseError("belongs to a cluster that runs", file=str(file), remedy=remedy) from None
    finally:
        os.close(old)


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
