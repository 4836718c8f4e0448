"""The first steps of pages that start with a cluster of their own: each command is typed as it stands, in order."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.controlplane import fixtures
from tests.documentation import pages
from tests.documentation.pages import ROOT
from tests.documentation.terminals import WITHIN, Shell, clean_environment

BEGINS = "stowplan up"
MAY_BE_NO = "stowplan place explain"  # exit code 1: fewer clusters than the Placement asks for


def first_steps(page: Path) -> list[str]:
    """Return the first block that starts a cluster in the background."""
    found = [block.text.splitlines() for block in pages.blocks(page) if block.text.startswith(BEGINS)]
    return next(lines for lines in found if "&" in lines[0])


@pytest.mark.parametrize(
    ("page", "last"),
    [
        pytest.param("embedded.md", "pods/binding", id="the embedded cluster with RBAC"),
        pytest.param("placement.md", "default/web", id="placements"),
        pytest.param("scores.md", "disasterrecovery", id="scores"),
    ],
)
def test_first_steps(page: str, last: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    document = ROOT / "docs" / page
    kubectl = fixtures.kubectl(request.config)
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    yaml = [block.text for block in pages.blocks(document) if block.language == "yaml"]
    (tmp_path / "FILE").write_text("---\n".join(yaml[:2]), encoding="utf-8")  # "the YAML blocks below"
    with Shell(tmp_path, clean_environment(kubectl.parent, Path(sys.executable).parent)) as shell:
        for command in first_steps(document):
            printed, code = shell.run(command)
            assert code == 0 or (command.startswith(MAY_BE_NO) and code == 1), f"{command}: {code}\n{printed}"
            if command.startswith(BEGINS):
                wait_for(tmp_path / "stowplan.kubeconfig")
        assert last in printed
        shell.run("kill $(jobs -p); wait")


def wait_for(file: Path) -> None:
    """Until the file is there, as a reader waits for the line that says so."""
    until = time.monotonic() + WITHIN
    while not (file.exists() and file.stat().st_size):
        assert time.monotonic() < until, f"{file} was never written"
        time.sleep(0.05)
