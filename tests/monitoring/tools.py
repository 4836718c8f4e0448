"""Prometheus and promtool: those on the PATH, or else Debian's package, unpacked into the cache. Nothing is installed.

`python -m tests.monitoring.tools` fetches them (`make test-tools`); tests that need them do so, too. apt checks what it
downloads by the signature and the checksums of the distribution. Without apt and without the programs these tests are
skipped, and say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.controlplane import build

PACKAGE = "prometheus"
NAMES = ("prometheus", "promtool")
WITHIN = 300.0  # seconds for a command of apt


class NoToolsError(Exception):
    """The programs are not there, and cannot be fetched."""


def folder() -> Path:
    return build.cache().parent / PACKAGE


def programs() -> dict[str, Path]:
    """The path of each program by its name; fetched if need be."""
    found = {name: shutil.which(name) for name in NAMES}
    if all(found.values()):
        return {name: Path(path) for name, path in found.items() if path}
    unpacked = {name: folder() / "usr" / "bin" / name for name in NAMES}
    if not all(path.exists() for path in unpacked.values()):
        with build.locked(build.to_stderr, folder(), what="Prometheus"):
            if not all(path.exists() for path in unpacked.values()):  # another process may have fetched them
                _fetch()
    return unpacked


def tool(name: str) -> Path:
    """For tests: the path of a program; the test is skipped if it cannot be had."""
    try:
        return programs()[name]
    except NoToolsError as reason:
        pytest.skip(str(reason))


def _fetch() -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NoToolsError(f"no {' and '.join(NAMES)} on the PATH, and no apt-get to fetch Debian's package with")
    build.to_stderr(f"fetching Debian's package {PACKAGE} ...")
    for old in folder().glob("*.deb"):
        old.unlink()
    download = ["apt-get", "download", "-qq", PACKAGE]
    if _run(download):  # the lists of packages may be missing, or old
        root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        _run([*root, "apt-get", "update", "-qq"])
        if problem := _run(download):
            raise NoToolsError(f"no {' and '.join(NAMES)}: {problem}")
    (archive,) = folder().glob("*.deb")
    beside = folder() / "unpacked"
    shutil.rmtree(beside, ignore_errors=True)
    if problem := _run(["dpkg-deb", "-x", str(archive), str(beside)]):
        raise NoToolsError(problem)
    shutil.rmtree(folder() / "usr", ignore_errors=True)
    (beside / "usr").rename(folder() / "usr")
    archive.unlink()
    shutil.rmtree(beside)


def _run(command: Sequence[str]) -> str:
    """Return what is wrong; empty if nothing is."""
    try:
        done = subprocess.run(command, cwd=folder(), capture_output=True, text=True, timeout=WITHIN, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else f"`{' '.join(command)}`: {done.stderr.strip()[-500:]}"


if __name__ == "__main__":
    try:
        build.to_stderr("\n".join(map(str, programs().values())))
    except NoToolsError as reason:
        sys.exit(str(reason))
