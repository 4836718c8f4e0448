"""Whether a file was written or replaced since: by its time, its size and its inode, without reading it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

FileVersion: TypeAlias = tuple[int, int, int]


def version(status: os.stat_result) -> FileVersion:
    return status.st_mtime_ns, status.st_size, status.st_ino


def versions(files: Iterable[str | Path]) -> list[FileVersion | None]:
    """Return the version of each file; None for one that cannot be looked at."""
    return [_version_of(file) for file in files]


def _version_of(file: str | Path) -> FileVersion | None:
    try:
        return version(Path(file).stat())
    except (OSError, ValueError):  # no such file, no right to look at it; a null byte in its name
        return None
