"""The gate of the example: a git repository, a change that passes, one that fails, and the steps of its workflow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.examples.loading import EXAMPLES

FOLDER = EXAMPLES / "10-policy-gate"
PAGE = (EXAMPLES.parent / "docs" / "simulation.md").read_text(encoding="utf-8")
STEPS = [
    each["run"]
    for each in yaml.safe_load((FOLDER / "ci.yaml").read_text())["jobs"]["simulate"]["steps"]
    if "run" in each
]
BIN = Path(sys.executable).parent


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A clone in which a pull request for `main` is checked out."""
    shutil.copytree(FOLDER, tmp_path / "main")
    git(tmp_path / "main", "init")
    git(tmp_path / "main", "add", "-A")
    git(tmp_path / "main", "commit", "-m", "as it is today")
    git(tmp_path, "clone", str(tmp_path / "main"), "clone")
    return tmp_path / "clone"


@pytest.mark.parametrize(("change", "code"), [("pack.yaml", 0), ("no-preemption.yaml", 1)])
def test_the_workflow_judges_a_change_as_the_page_shows_it(repository: Path, change: str, code: int) -> None:
    shutil.copy(repository / change, repository / "scheduler.yaml")
    environment = os.environ | {"GITHUB_BASE_REF": "main", "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    assert STEPS[0] == "pip install stowplan"
    for step in STEPS[1:]:
        done = subprocess.run(
            ["bash", "-e", "-c", step], cwd=repository, env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode == code, done.stderr
    assert f"```\n{done.stdout}```" in PAGE, (
        f"docs/simulation.md has another output; this is that of today:\n{done.stdout}"
    )
    suite = ElementTree.parse(repository / "junit.xml").getroot()
    assert suite is not None and suite.attrib["tests"] == "3" and (suite.attrib["failures"] == "0") == (code == 0)


@pytest.mark.parametrize("name", ["expect.yaml", "ci.yaml"])
def test_the_page_has_the_files_as_they_are(name: str) -> None:
    assert f"```yaml\n{(FOLDER / name).read_text()}```" in PAGE
