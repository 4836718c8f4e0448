"""What systemd makes of a unit file, as far as tests need it: its settings, and the command that it starts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path


def settings(text: str, section: str = "Service") -> dict[str, list[str]]:
    """The values of each setting in a section; lines that end with a backslash go on."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^[#;].*\n", "", text, flags=re.MULTILINE))
    found: dict[str, list[str]] = {}
    (body,) = re.findall(rf"^\[{section}\]\n(.*?)(?=^\[|\Z)", joined, flags=re.MULTILINE | re.DOTALL)
    for line in filter(None, map(str.strip, body.splitlines())):
        name, _, value = line.partition("=")
        found.setdefault(name, []).append(value)
    return found


def environment(text: str) -> dict[str, str]:
    """What a file of an EnvironmentFile= holds."""
    pairs = (shlex.split(line, comments=True) for line in text.splitlines())
    return dict(pair[0].split("=", 1) for pair in pairs if pair)


def command(text: str, variables: Mapping[str, str]) -> list[str]:
    """The words of ExecStart=. A word `$NAME` stands for the words in that variable, or for none."""
    (line,) = settings(text)["ExecStart"]
    words: list[str] = []
    for word in shlex.split(line):
        words += shlex.split(variables.get(word[1:], "")) if re.fullmatch(r"\$\w+", word) else [word]
    return words


def started(unit: str, root: Path) -> list[str]:
    """The command of a unit whose absolute paths are below `root`, with the variables of its files there."""
    variables: dict[str, str] = {}
    for path in settings(unit).get("EnvironmentFile", []):
        file = root / path.removeprefix("-").lstrip("/")
        if file.exists() or not path.startswith("-"):
            variables |= environment(file.read_text(encoding="utf-8"))
    program, *arguments = command(unit, variables)
    return [str(root / program.lstrip("/")), *(re.sub(r"=/", f"={root}/", each) for each in arguments)]
