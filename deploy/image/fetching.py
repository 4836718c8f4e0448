"""Bring what the locks name into a cache. A file is known by its SHA-256; one with another hash is refused.

Packages of Debian come from the mirrors that apt's sources name, or STOWPLAN_DEBIAN_MIRRORS (base addresses, separated
by spaces) where there is no apt, or where a mirror has dropped a version: an archive of snapshots keeps them all.
Wheels come from pip's configured index.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from deploy.image.locks import BACKEND, WHEELS, Lock, Package, wheels
from deploy.image.selection import PYTHON
from deploy.image.tags import flags

MIRRORS = "STOWPLAN_DEBIAN_MIRRORS"
ROOT = Path(__file__).parents[2]
SECONDS = 60  # without an answer


class FetchError(Exception):
    """A part of the image could not be had."""


def packages(lock: Lock, cache: Path) -> dict[Package, Path]:
    """Return the file of each package."""
    folder = cache / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    mirrors = Mirrors()
    return {each: package(each, folder, mirrors) for each in lock.packages}


def package(wanted: Package, folder: Path, mirrors: Mirrors) -> Path:
    file = folder / f"{wanted.sha256}.deb"
    if file.exists() and sha256(file.read_bytes()) == wanted.sha256:
        return file
    data = mirrors.get(wanted)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_bytes(data)
    part.replace(file)
    return file


class Mirrors:
    """The mirrors of this machine; the one that had the last package is asked first for the next."""

    def __init__(self, addresses: Sequence[str] | None = None) -> None:
        self.addresses = list(addresses if addresses is not None else configured())

    def get(self, wanted: Package) -> bytes:
        if not self.addresses:
            raise FetchError(f"no mirror of Debian is known: apt has no sources here; name one in {MIRRORS}")
        said = []
        for address in list(self.addresses):
            url = f"{address.rstrip('/')}/{wanted.path}"
            try:
                with urllib.request.urlopen(url, timeout=SECONDS) as answer:
                    data: bytes = answer.read()
            except (urllib.error.URLError, OSError, ValueError) as error:
                said.append(f"  {url}: {error}")
                continue
            if (found := sha256(data)) != wanted.sha256:
                said.append(f"  {url}: has SHA-256 {found}, expected {wanted.sha256}")
                continue
            self.addresses.remove(address)
            self.addresses.insert(0, address)
            return data
        hint = f"If mirrors have a younger version only: `make image-lock`, or an archive of snapshots in {MIRRORS}."
        raise FetchError("\n".join([f"{wanted.name} {wanted.version} is on no mirror:", *said, hint]))


def configured(environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield the mirrors of this machine, each once."""
    if named := environment.get(MIRRORS):
        yield from named.split()
        return
    if shutil.which("apt-get") is None:
        return
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    yield from dict.fromkeys(done.stdout.split())


def libraries(architecture: str, cache: Path) -> list[Path]:
    """Return the wheels of the lock for an architecture, in the order of their names."""
    folder = cache / f"wheels-{architecture}-{sha256(WHEELS.read_bytes())[:16]}"
    expected = {each.name: each.sha256 for each in wheels()}
    if len(present(folder)) != len(expected):
        pip("download", "--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", str(WHEELS),
            "--dest", str(folder), *flags(architecture))  # fmt: skip
    known = frozenset().union(*expected.values())
    for file in present(folder):
        if (found := sha256(file.read_bytes())) not in known:
            raise FetchError(f"{file}: has SHA-256 {found}, which {WHEELS.name} does not name; remove the file")
    return present(folder)


def present(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.whl"), key=lambda file: file.name.lower())


def stowplan(cache: Path, out: Path) -> Path:
    """Build Stowplan's own wheel with the locked backend; nothing else is asked for."""
    shutil.rmtree(out, ignore_errors=True)
    # The date that the backend writes into the archive; what counts is unpacked and gets another one.
    environment = {**os.environ, "PYTHONPATH": str(backend(cache)), "SOURCE_DATE_EPOCH": "315532800"}
    pip("wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(out), str(ROOT),
        environment=environment)  # fmt: skip
    (wheel,) = out.glob("*.whl")
    return wheel


def backend(cache: Path) -> Path:
    """Return a folder with the locked backend, to be put on PYTHONPATH."""
    folder = cache / f"backend-{sha256(BACKEND.read_bytes())[:16]}"
    if not folder.exists():
        part = folder.with_suffix(f".{os.getpid()}")
        pip("install", "--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", str(BACKEND),
            "--target", str(part))  # fmt: skip
        settle(part, folder)
    return folder


def settle(part: Path, folder: Path) -> None:
    """Give a folder that is whole its name; another process may have been faster."""
    try:
        part.rename(folder)
    except OSError:
        shutil.rmtree(part)
        if not folder.exists():
            raise


def pip(*arguments: str, environment: Mapping[str, str] | None = None) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FetchError(f"pip {arguments[0]} failed (image: Python {PYTHON}):\n{done.stdout}{done.stderr}")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
