"""docs/seeds.md: all claims are there, and what they refer to exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
CLAIMS = {"FlavourClusterWide": 26, "Placement": 42, "SPPriority": 28, "WorkloadPolicy": 32, "KubeNexus": 46}
TEST = re.compile(r"`([\w./-]+\.py)(?:::(test_\w+))?`")
OF_THE_TREE = ("deploy", "docs", "examples", "tests", "benchmarks")


def rows(design: str) -> list[list[str]]:
    """The cells of each claim of a design."""
    section = PAGE.split(f"\n### Claims: {design}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines()[3:] if line]


@pytest.mark.parametrize("design", CLAIMS)
def test_every_claim_is_there_once_and_complete(design: str) -> None:
    found = rows(design)
    assert [int(each[0]) for each in found] == list(range(1, CLAIMS[design] + 1))
    assert all(len(each) == 5 and each[1] and each[4] for each in found)
    assert f"| {CLAIMS[design]} |" in PAGE.split("\n## ")[0]


@pytest.mark.parametrize("design", CLAIMS)
def test_the_tests_exist(design: str) -> None:
    missing = []
    for number, _, _, checked, _ in rows(design):
        for path, name in TEST.findall(checked):
            file = ROOT / "tests" / path
            if not file.is_file() or (name and not re.search(rf"def {name}\(", file.read_text(encoding="utf-8"))):
                missing.append((number, path, name))
    assert not missing


@pytest.mark.parametrize("design", CLAIMS)
def test_the_places_exist(design: str) -> None:
    missing = []
    for number, _, where, _, _ in rows(design):
        for path in re.findall(r"`([\w-]+/[\w./-]+)`", where):
            base = ROOT if path.split("/")[0] in OF_THE_TREE else ROOT / "src" / "stowplan"
            if not any((base / f"{path}{suffix}").exists() for suffix in ("", ".py")):
                missing.append((number, path))
    assert not missing
