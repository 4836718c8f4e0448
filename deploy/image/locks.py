"""The locks: each package of Debian and each wheel of the image, with its version and SHA-256. `renewal` writes them.

locked/amd64.json    packages of Debian for one architecture, and where they lie on any mirror
locked/arm64.json
locked/wheels.txt    the libraries from PyPI, for pip's --require-hashes; hashes for all architectures
locked/backend.txt   what builds Stowplan's own wheel; it is not in the image
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deploy.image.selection import ARCHITECTURES, PACKAGES

FOLDER = Path(__file__).parent / "locked"
WHEELS, BACKEND = FOLDER / "wheels.txt", FOLDER / "backend.txt"
HASH = re.compile(r"[0-9a-f]{64}")
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)((?:\s+--hash=sha256:[0-9a-f]{64})+)$")


class LockError(Exception):
    """A lock says something that cannot be used."""


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    architecture: str  # "all" for files that fit any
    path: str  # below the root of a mirror
    size: int
    sha256: str
    source: str  # the source package; it has the same version unless it says so


@dataclass(frozen=True)
class Lock:
    """The packages of one architecture. `date`: of the youngest index that they were taken from, in seconds."""

    architecture: str
    date: int
    packages: tuple[Package, ...]


@dataclass(frozen=True)
class Wheel:
    name: str
    version: str
    sha256: frozenset[str]  # one for each file: a wheel in C has a file for each architecture


def place(architecture: str) -> Path:
    return FOLDER / f"{architecture}.json"


def read(architecture: str) -> Lock:
    file = place(architecture)
    if not file.exists():
        raise LockError(f"{file}: no such lock; there are locks for {', '.join(ARCHITECTURES)}")
    return parse(file.read_text(encoding="utf-8"), str(file))


def parse(text: str, file: str) -> Lock:
    try:
        document: Any = json.loads(text)
        packages = tuple(Package(**each) for each in document["packages"])
        lock = Lock(document["architecture"], document["date"], packages)
    except (ValueError, TypeError, KeyError) as error:
        raise LockError(f"{file}: not a lock of packages ({error}); `make image-lock` writes one") from None
    for package in lock.packages:
        if not HASH.fullmatch(package.sha256):
            raise LockError(f"{file}: {package.name}: {package.sha256!r} is not a SHA-256 in hexadecimal digits")
    found = {package.name for package in lock.packages}
    if wrong := sorted(found ^ set(PACKAGES)):
        raise LockError(f"{file}: not the packages of selection.py: {', '.join(wrong)}; `make image-lock` mends it")
    return lock


def written(lock: Lock) -> str:
    packages = [asdict(each) for each in sorted(lock.packages, key=lambda each: each.name)]
    document = {"architecture": lock.architecture, "date": lock.date, "packages": packages}
    return json.dumps(document, indent=1) + "\n"


def wheels(file: Path = WHEELS) -> list[Wheel]:
    """Read a file of requirements. Each has to be pinned, with its hashes on the same logical line."""
    found = []
    for line in file.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if not (line := line.partition("#")[0].strip()):
            continue
        match = PINNED.match(line)
        if match is None:
            raise LockError(f"{file}: {line.split()[0]}: expected NAME==VERSION --hash=sha256:…")
        hashes = frozenset(each.removeprefix("--hash=sha256:") for each in match[3].split())
        found.append(Wheel(match[1], match[2], hashes))
    return found


def written_wheels(wheels: list[Wheel], story: str) -> str:
    lines = [f"# {line}" for line in story.splitlines()]
    for each in sorted(wheels, key=lambda each: normal(each.name)):
        lines += [
            " \\\n    ".join([f"{each.name}=={each.version}", *(f"--hash=sha256:{h}" for h in sorted(each.sha256))])
        ]
    return "\n".join(lines) + "\n"


def normal(name: str) -> str:
    """A project's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
