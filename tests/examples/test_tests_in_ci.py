"""The tests of the example pass in a run of pytest of their own, fail when they should, and are those of the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps.cli import main
from tests.examples.loading import EXAMPLES

FOLDER = EXAMPLES / "09-tests-in-ci"
PAGE = EXAMPLES.parent / "docs" / "testing.md"
SHOWN = re.search(r"^```\nAssertionError: (.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)

WAIT = '    pods = embedded_cluster.wait_until_running("app=cache", count=2'
# Once both pods were tried there is nothing more to wait for, however busy the machine is.
BOTH_TRIED = "".join(f'    embedded_cluster.wait_until_pending("cache-{number}", within=300)\n' for number in (0, 1))


def run_pytest(folder: Path, *words: str) -> tuple[int, str]:
    """Run pytest from another folder, without our own settings. The fixture is that of the installed Stowplan."""
    clean = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={folder}", "-W", "error"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", *clean, *words, str(folder)],
        cwd=EXAMPLES.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_example_passes() -> None:
    code, said = run_pytest(FOLDER)
    assert code == 0, said
    assert "3 passed" in said


def test_a_manifest_that_does_not_fit_is_caught_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(FOLDER, folder)
    test = (folder / "test_shop.py").read_text()
    assert WAIT in test
    (folder / "test_shop.py").write_text(test.replace(WAIT, f"{BOTH_TRIED}{WAIT}, within=0"))
    (folder / "caches.yaml").write_text((folder / "caches.yaml").read_text().replace("8Gi", "800Gi"))
    code, said = run_pytest(folder, "-k", "caches")
    assert code == 1, said
    assert SHOWN is not None
    found = without_times(said)
    parts = [part for line in SHOWN[1].splitlines() for part in without_times(line).split("…")]
    assert [part for part in parts if part.strip() not in found] == []


def without_times(text: str) -> str:
    return " ".join(re.sub(r"\b\d+ s\b", "N s", text).replace("\nE ", "\n").split())


def test_the_configuration_is_checked_as_the_workflow_does_it() -> None:
    steps = yaml.safe_load((FOLDER / "ci.yaml").read_text())["jobs"]["test"]["steps"]
    assert {"run": "stowplan config check scheduler.yaml"} in steps and {"run": "pytest"} in steps
    said = CliRunner().invoke(main, ["config", "check", str(FOLDER / "scheduler.yaml")])
    assert said.exit_code == 0, said.output


@pytest.mark.parametrize("name", sorted(each.name for each in FOLDER.iterdir() if each.suffix in (".py", ".yaml")))
def test_the_page_has_the_files_as_they_are(name: str) -> None:
    assert f"```{'python' if name.endswith('.py') else 'yaml'}\n{(FOLDER / name).read_text()}```" in PAGE.read_text()
