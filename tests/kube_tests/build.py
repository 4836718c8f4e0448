"""The test programs of packages, built once and kept with the edited source (source.py).

A program's recipe, written last, has a digest of the edits: after a change of these it is built again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.controlplane.build import CannotBuildError, Tell, go, go_environment, locked
from tests.kube_tests import edits, source

ARGUMENTS = ["test", "-c", "-mod=mod", "-buildvcs=false", "-trimpath", "-ldflags=-s -w"]


def program(package: str) -> Path:
    return source.cache() / "bin" / f"{package.replace('/', '-')}.test"


def folder(package: str) -> Path:
    """Where the package's tests run: beside their data."""
    return source.cache() / "source" / "test" / "integration" / package


def recipe() -> str:
    """How programs are built, and of what."""
    texts = [repr(edits.EDITS), *(file.read_text() for file in edits.ADDED.values())]
    return json.dumps([*ARGUMENTS, hashlib.sha256("\0".join(texts).encode()).hexdigest()])


def is_built(package: str) -> bool:
    file = program(package).with_suffix(".recipe")
    return file.exists() and file.read_text() == recipe()


def build(packages: Iterable[str], tell: Tell) -> None:
    """Build what is not built yet. The first one takes minutes, and 4 GB."""
    wanted = [package for package in packages if not is_built(package)]
    if not wanted:
        return
    if shutil.which("go") is None:
        raise CannotBuildError(f"no Go to build the tests of {', '.join(wanted)} with")
    source.cache().mkdir(parents=True, exist_ok=True)
    with locked(tell, source.cache(), "the tests"), go_environment() as environment:
        source.prepare(source.cache() / "source", environment, tell)
        for number, package in enumerate(wanted, 1):
            if not is_built(package):  # another process may have built it while we waited for the lock
                started = time.monotonic()
                tell(f"building the tests of {package}, {number} of {len(wanted)} ...")
                build_one(package, environment)
                tell(f"built the tests of {package} in {time.monotonic() - started:.0f} s")


def build_one(package: str, environment: Mapping[str, str]) -> None:
    file = program(package)
    file.parent.mkdir(exist_ok=True)
    done = file.with_suffix(".recipe")
    done.unlink(missing_ok=True)
    go([*ARGUMENTS, "-o", str(file), f"./test/integration/{package}"], source.cache() / "source", environment)
    done.write_text(recipe())
