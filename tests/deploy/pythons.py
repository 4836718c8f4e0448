"""The Pythons that Stowplan is installed with: of this machine, or of Debian's testing suite, unpacked into the cache.

A Python of Debian's comes with all that it needs, its libc, too, so it needs a `/usr` of its own. A mount namespace
gives it one: there `/usr` is what was unpacked, and all else is as everywhere. Nothing is installed. The mirror is the
one that apt's sources name; apt checks signatures and checksums. Neither version nor hash is pinned: this suite keeps
no old versions, and a younger patch release is as good a test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.image import fetching
from deploy.image.renewal import private_apt

from tests.controlplane import build

SUITE = "testing"
WITHIN = 300.0  # seconds for a command of apt
OTHER_USR = 'mount --bind "$0" /usr && exec "$@"'
DONE = "unpacked"  # written last


class NoPythonError(Exception):
    """There is none of that version, and it cannot be fetched."""


@dataclass(frozen=True)
class Python:
    """`within` are the words before each command that uses it."""

    program: Path
    within: tuple[str, ...] = ()


def python(version: str) -> Python:
    return next(of_this_machine(version), None) or of_debian(version)


def of_this_machine(version: str) -> Iterator[Python]:
    """Yield what runs these tests, what pyenv keeps, and what is on the PATH, if it is of that version."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        yield Python(Path(sys.executable))
    folders = sorted((Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions").glob(f"{version}.*"))
    for found in (*(folder / "bin" / "python" for folder in folders), shutil.which(f"python{version}")):
        if found and works(Python(Path(found)), version):
            yield Python(Path(found))


def works(found: Python, version: str) -> bool:
    """A shim of pyenv may be on the PATH for a version that is not chosen."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([*found.within, found.program, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


def of_debian(version: str) -> Python:
    for program in ("apt-get", "dpkg-deb", "unshare"):
        if shutil.which(program) is None:
            raise NoPythonError(f"no Python {version}, and no {program} to use Debian's with")
    name = f"python{version}"
    folder = build.cache().parent / name
    with build.locked(build.to_stderr, folder, what=name):
        if not (folder / DONE).exists():
            fetch((f"{name}-venv", "libstdc++6"), folder)  # wheels bring no C++ library
    user = () if os.geteuid() == 0 else ("--map-root-user",)
    found = Python(Path("/usr/bin") / name, ("unshare", "--mount", *user, "sh", "-c", OTHER_USR, str(folder / "usr")))
    if not works(found, version):
        raise NoPythonError(f"no Python {version}, and Debian's does not run here (it needs a mount namespace)")
    return found


def fetch(packages: Sequence[str], folder: Path) -> None:
    """Unpack packages with all that they depend on, as if nothing were installed."""
    build.to_stderr(f"fetching {' and '.join(packages)} of Debian {SUITE} ...")
    shutil.rmtree(folder / "usr", ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="apt-", dir=folder) as name:
        environment = os.environ | {"APT_CONFIG": str(private_apt(Path(name), architecture()))}
        own = Path(name) / "sources.list"
        flags = [f"-oDir::Etc::sourcelist={own}", "-oDir::Etc::sourceparts=-", "-oDebug::NoLocking=true"]
        update(own, flags, environment)
        install = ["install", "--download-only", "--yes", "--no-install-recommends", *packages]
        if problem := apt([*flags, *install], environment):
            raise NoPythonError(problem)
        for archive in sorted(Path(name).glob("archives/*.deb")):
            subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
    (folder / DONE).touch()


def update(sources: Path, flags: list[str], environment: Mapping[str, str]) -> None:
    """Read the suite's index from the first mirror of this machine that has it."""
    problem = "apt has no sources"
    for mirror in fetching.configured():
        sources.write_text(f"deb {mirror} {SUITE} main\n", encoding="utf-8")
        problem = apt([*flags, "-oAPT::Update::Error-Mode=any", "update"], environment)
        if not problem:
            return
    raise NoPythonError(f"no mirror of apt's sources has Debian {SUITE}: {problem}")


def architecture() -> str:
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


def apt(words: list[str], environment: Mapping[str, str]) -> str:
    """Return what is wrong; empty if nothing is."""
    try:
        done = subprocess.run(
            ["apt-get", "-qq", *words], env=environment, capture_output=True, text=True, timeout=WITHIN, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else f"apt-get {words[-1]}: {(done.stderr or done.stdout).strip()[-500:]}"
