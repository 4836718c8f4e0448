"""The examples of docs/explain.md are true: each command prints what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main

PAGE = Path(__file__).parents[3] / "docs" / "explain.md"
EXAMPLES = re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
FILE = re.compile(r"^`([a-z.]+)`:\n\n```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n\$ stowplan (.*?)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_there_are_ten() -> None:
    assert len(EXAMPLES) == 10


@pytest.mark.parametrize("example", [pytest.param(each, id=each.splitlines()[0]) for each in EXAMPLES])
def test_an_example_is_true(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILE.findall(example):
        (tmp_path / name).write_text(text, encoding="utf-8")
    ((command, shown),) = CONSOLE.findall(example)
    answer = CliRunner().invoke(main, shlex.split(command), env={"COLUMNS": "80"})
    assert answer.exit_code in (0, 1), answer.output
    printed = "\n".join(line.rstrip() for line in answer.stdout.splitlines())
    whole = shown.removesuffix("…\n").rstrip("\n")
    assert printed == whole if whole == shown.rstrip("\n") else printed.startswith(f"{whole}\n")


@pytest.mark.parametrize("example", [pytest.param(each, id=each.splitlines()[0]) for each in EXAMPLES])
def test_the_best_remedy_with_its_command_is_within_ten_lines(example: str) -> None:
    """As a terminal with 80 columns wraps them. A node is added by a provider: that has no command."""
    ((_, shown),) = CONSOLE.findall(example)
    lines = [line[at : at + 80] for line in shown.splitlines() for at in range(0, max(len(line), 1), 80)]
    heading = next(at for at, line in enumerate(lines) if line.startswith("Remed"))
    assert heading > 0 and lines[heading + 1].startswith("  1. ")
    following = ("  2. ", "The scheduler says", "┏", "  --all", "As it is")
    ends = next((at for at, line in enumerate(lines) if at > heading and line.startswith(following)), len(lines))
    has_command = any(line.startswith("     kubectl ") for line in lines[heading:ends])
    assert has_command or lines[heading + 1].startswith("  1. add a node")
    assert ends <= 10, "the lines before the next remedy"
    assert "…" not in "".join(lines[:heading]), "no cause is cut"
