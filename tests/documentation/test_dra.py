"""docs/dra.md, followed: from a slice to a pod, every command is run, and what the page shows is what is printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.controlplane import fixtures
from tests.documentation import pages, terminals
from tests.documentation.pages import ROOT
from tests.documentation.terminals import Shell
from tests.documentation.test_tutorial import follow, start

PAGE = ROOT / "docs" / "dra.md"


def test_the_page(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kubectl = fixtures.kubectl(request.config)
    environment = terminals.clean_environment(kubectl.parent, Path(sys.executable).parent)
    for name, text in terminals.files(PAGE.read_text(encoding="utf-8")).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with Shell(tmp_path, environment) as first, Shell(tmp_path, environment) as second:
        for step in terminals.steps(pages.blocks(PAGE)):
            if step.first_terminal:
                start(first, step, tmp_path / "stowplan.kubeconfig")
            else:
                follow(second, step)
