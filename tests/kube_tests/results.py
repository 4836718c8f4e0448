"""Results of runs, kept in a file: a package that is done need not be run again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from tests.kube_tests.outcomes import Outcome

ROOT = Path(__file__).parents[2]


class PackageResults(msgspec.Struct):
    """`whole`: all tests of the package were run, at some commit."""

    whole: bool = False
    seconds: float = 0.0
    tests: dict[str, Outcome] = {}


class Results(msgspec.Struct):
    kubernetes: str
    packages: dict[str, PackageResults] = {}

    def is_done(self, package: str) -> bool:
        return package in self.packages and self.packages[package].whole

    def add(self, package: str, found: dict[str, Outcome], seconds: float, *, whole: bool) -> None:
        """Add the outcomes of a run; of a run of some tests only to those of the others."""
        before = self.packages.get(package, PackageResults())
        if whole:
            self.packages[package] = PackageResults(True, seconds, found)
        else:
            self.packages[package] = PackageResults(before.whole, before.seconds, before.tests | found)

    def write(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1))


def read(file: Path, kubernetes: str) -> Results:
    """Return the results in a file; none if there is no file, or if they are of another version."""
    if not file.exists():
        return Results(kubernetes)
    found = msgspec.json.decode(file.read_bytes(), type=Results)
    return found if found.kubernetes == kubernetes else Results(kubernetes)


def commit() -> str:
    """The commit of this checkout; with a plus if the scheduler's code differs from it."""
    found = _git("rev-parse", "--short=7", "HEAD").stdout.strip()
    return (found or "unknown") + ("+" if _git("diff", "--quiet", "HEAD", "--", "src").returncode == 1 else "")


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
