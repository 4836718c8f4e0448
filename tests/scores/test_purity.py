"""All but the writer and the web is arithmetic: no clock, no random number, no I/O."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_architecture import OUTSIDE, SOURCE, imported

OUTWARD = {"__init__.py", "writer.py", "http_source.py"}
PURE = [file for file in sorted((SOURCE / "scores").glob("*.py")) if file.name not in OUTWARD]


def test_there_are_pure_parts() -> None:
    assert len(PURE) >= 7


@pytest.mark.parametrize("file", PURE, ids=lambda file: file.name)
def test_a_part_that_only_computes(file: Path) -> None:
    assert {module.partition(".")[0] for module in imported(file)} & OUTSIDE == set()
    text = file.read_text(encoding="utf-8")
    assert ".now(" not in text and "open(" not in text and "print(" not in text


def test_a_producer_of_ones_own_loads_no_scheduler() -> None:
    code = "import sys, stowplan.scores; print('numpy' in sys.modules, 'aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
