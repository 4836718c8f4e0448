"""Every command in every page could be typed: commands, flags and targets of make exist.

`test_typed.py` types them.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from documentation.command_line import main

from tests.documentation import pages
from tests.documentation.pages import ROOT

SHELLS = ("", "shell", "console", "bash", "sh", "yaml")  # workflows of CI have commands in YAML
STOWPLAN = re.compile(r"(?:^\s*(?:\$ |- run: )?|[|&;(]\s*)(?:\.venv/bin/|kubectl )?stowplan (?=[a-z-])(.*)")
MAKE = re.compile(r"^\s*(?:\$ )?make ([a-z-]+)")
MODULE = re.compile(r"python3? -m ((?:tests|benchmarks|documentation|stowplan)[\w.]*)")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
PAGES = [each for each in pages.pages() if pages.named(each).split("/")[0] not in ("tests", "CHANGELOG.md")]


def lines(page: Path) -> Iterator[str]:
    """Yield the lines of blocks that could be typed."""
    for block in pages.blocks(page):
        if block.language in SHELLS:
            yield from block.text.replace("\\\n", " ").splitlines()


def commands(line: str) -> Iterator[list[str]]:
    """Yield the words after each `stowplan` of the line, up to what ends the command."""
    found = STOWPLAN.search(line)
    if found and not line.lstrip().startswith("#"):
        words = re.split(r"\s#|[|)&;`]|\s>|\s<", found[1])[0]
        yield shlex.split(words.replace("'", " ").replace('"', " "))


def problem(words: list[str]) -> str | None:
    """Return what is wrong with a command, or None."""
    command: click.Command = main
    path = ["stowplan"]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        found = command.get_command(click.Context(command), name)
        if found is None:
            return f"{' '.join(path)} has no command {name}"
        command = found
        path.append(name)
    known = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)} | {"--help", "-h", "-V"}
    flags = [word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
    unknown = [each for each in flags if each not in known and each[:2] not in known]
    return f"{' '.join(path)} has no flag {unknown[0]}" if unknown else None


@pytest.mark.parametrize("page", [pytest.param(each, id=pages.named(each)) for each in PAGES])
def test_commands(page: Path) -> None:
    wrong = [f"{line.strip()}: {found}" for line in lines(page) for each in commands(line) if (found := problem(each))]
    assert wrong == []


@pytest.mark.parametrize("page", [pytest.param(each, id=pages.named(each)) for each in PAGES])
def test_targets_and_modules(page: Path) -> None:
    targets = {found[1] for line in lines(page) if (found := MAKE.match(line))}
    modules = {found for line in lines(page) for found in MODULE.findall(line)}
    assert targets - TARGETS == set()
    assert {each for each in modules if importlib.util.find_spec(each) is None} == set()


def test_there_are_commands() -> None:
    found = [words for page in PAGES for line in lines(page) for words in commands(line)]
    assert len(found) > 100
    assert {words[0] for words in found if words} >= main.commands.keys() - {"version", "completion"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("stowplan explain POD -n shop   # why", None, id="right"),
        pytest.param("kubectl stowplan explian POD", "stowplan has no command explian", id="no such command"),
        pytest.param("stowplan up --knobs 3", "stowplan up has no flag --knobs", id="no such flag"),
        pytest.param("stowplan config chekc a.yaml", "stowplan config has no command chekc", id="nested"),
        pytest.param("stowplan config check --rbac a.yaml | kubectl apply -f -", None, id="after a pipe: not ours"),
    ],
)
def test_what_is_wrong(line: str, expected: str | None) -> None:
    (words,) = commands(line)
    assert problem(words) == expected
