"""The examples of docs/what-if.md are true: each command prints what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main

PAGE = (Path(__file__).parents[3] / "docs" / "what-if.md").read_text(encoding="utf-8")
EXAMPLES = re.split(r"^##+ ", PAGE, flags=re.MULTILINE)
EXAMPLES = [each for each in EXAMPLES if "```console" in each]
FILE = re.compile(r"^`([a-z.]+)`:\n\n```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n\$ stowplan (.*?)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_there_are_four() -> None:
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize("example", [pytest.param(each, id=each.splitlines()[0]) for each in EXAMPLES])
def test_an_example_is_true(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILE.findall(example):
        (tmp_path / name).write_text(text, encoding="utf-8")
    ((command, shown),) = CONSOLE.findall(example)
    answer = CliRunner().invoke(main, shlex.split(command), env={"COLUMNS": "80"})
    assert answer.exit_code in (0, 1), answer.output
    assert [line.rstrip() for line in answer.stdout.splitlines()] == shown.splitlines()


@pytest.mark.parametrize("command", ["what-if", "capacity"])
def test_the_page_names_every_flag_of_its_own(command: str) -> None:
    shared = {
        "from_",
        "files",
        "plugin_path",
        "feature_gates",
        "kubeconfig",
        "context",
        "output",
        "seed",
        "all_remedies",
    }
    names = [each for each in main.commands[command].params if each.name not in shared]
    assert [each.name for each in names if not any(f"{flag}" in PAGE for flag in each.opts)] == []
