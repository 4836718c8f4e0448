"""The workflows: accepted by actionlint, and pinned. What they call exists here."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy import tools

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
TEXTS = [file.read_text(encoding="utf-8") for file in FILES]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def steps() -> list[dict[str, Any]]:
    jobs = [job for text in TEXTS for job in yaml.safe_load(text)["jobs"].values()]
    return [step for job in jobs for step in job["steps"]]


@pytest.fixture(scope="module")
def actionlint() -> Path:
    return tools.built(tools.ACTIONLINT)


@pytest.mark.full  # it is built first, in a minute
def test_the_linter_accepts_them(actionlint: Path) -> None:
    done = subprocess.run([actionlint, *FILES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_the_linter_would_complain(actionlint: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "release.yaml"
    spoilt.write_text(TEXTS[0].replace("${{ vars.IMAGE }}", "${{ vras.IMAGE }}"), encoding="utf-8")
    done = subprocess.run([actionlint, spoilt], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and 'undefined variable "vras"' in done.stdout


def test_actions_are_pinned_by_their_commits() -> None:
    used = [step["uses"] for step in steps() if "uses" in step]
    assert used and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each) for each in used)
    pinned = {line.split("#")[0].strip() for text in TEXTS for line in text.splitlines() if "uses:" in line}
    assert len(pinned) == len({each.partition("@")[0] for each in pinned}), "one commit for each action"


def test_tools_in_go_are_pinned_at_the_versions_that_tests_use() -> None:
    (text,) = TEXTS
    assert f"{tools.CRANE.module.path}/cmd/crane@v{tools.CRANE.module.version}" in text
    modules = [each for each in yaml.safe_load(text)["env"].values() if "/cmd/" in each]
    assert len(modules) == 3 and all(re.search(r"@v\d+\.\d+\.\d+$", each) for each in modules)


def test_what_they_run_is_there() -> None:
    commands = [step["run"] for step in steps() if "run" in step]
    for target in re.findall(r"^make (\S+)", "\n".join(commands), re.MULTILINE):
        assert f"\n{target}: " in MAKEFILE
    for file in re.findall(r"tests/\S+\.py", "\n".join(commands)):
        assert (ROOT / file).exists()


def test_no_workflow_has_more_rights_than_it_needs() -> None:
    for text in TEXTS:
        document = yaml.safe_load(text)
        assert document["permissions"] == {"contents": "read"}
        assert [name for name, job in document["jobs"].items() if "permissions" in job] == ["image"]
        assert not re.search(r"\b[\w-]+\.(io|com|dev|org)/(?!google|sigstore)", text.replace("github.com/", ""))
