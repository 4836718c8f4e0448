"""Which packages are run, which tests cannot be asked of another program, and which failures are known.

expectations.yaml is the table; each entry has its reason, which docs/conformance.md shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

FILE = Path(__file__).with_name("expectations.yaml")
RUN = "run"

Reasons = Mapping[str, Mapping[str, str]]  # by package and test


class Expectations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table. `packages`: RUN, or why it is not run."""

    packages: dict[str, str]
    harmless_plugins: dict[str, str] = {}
    not_applicable: dict[str, dict[str, str]] = {}
    known_failures: dict[str, dict[str, str]] = {}

    @property
    def runs(self) -> list[str]:
        """The packages that are run, in the order of the table."""
        return [package for package, what in self.packages.items() if what == RUN]

    def skipped(self, package: str) -> str:
        """The tests that are not run, as a regular expression for `go test -skip`."""
        return "|".join(self.not_applicable.get(package, ()))

    def explanation(self, package: str, test: str) -> str:
        """Why this test is known to fail; nothing if it is not."""
        return reason(self.known_failures, package, test)


def reason(table: Reasons, package: str, test: str) -> str:
    return next((why for name, why in table.get(package, {}).items() if re.match(name, test)), "")


def load(file: Path = FILE) -> Expectations:
    return msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), Expectations)
