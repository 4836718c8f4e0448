"""Follows a page with two terminals, as a reader would: files are written, commands typed, what is printed is kept.

… `name`:                       the next block is the content of this file
```shell                        commands for the second terminal, which is the one that a reader works in
```shell title="first terminal" the last of these commands goes on running; what ran there before gets Ctrl-C
```text                         what the commands of the block before print; … stands for anything
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

from tests.documentation.pages import Block

WITHIN = 600.0  # seconds for one command; a machine may be busy
FILE = re.compile(r"`([\w.-]+)`[^`\n]*:\n\n```(?:python|yaml|csv)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ENDED = ""  # what no line is


@dataclass
class Step:
    """Commands, where they are typed, and what they print by the page."""

    commands: list[str]
    first_terminal: bool
    shown: str | None = None


def steps(blocks: Iterator[Block]) -> list[Step]:
    found: list[Step] = []
    for block in blocks:
        if block.language == "shell":
            found.append(Step(block.text.splitlines(), "first terminal" in block.title))
        elif block.language == "text":
            assert found and found[-1].shown is None, f"line {block.line} shows what no command prints"
            found[-1].shown = block.text
    return found


@dataclass
class Shell:
    """A bash that is fed through a pipe. What a command prints ends with a mark and its exit code."""

    folder: Path
    environment: Mapping[str, str]
    _lines: SimpleQueue[str] = field(default_factory=SimpleQueue)

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], cwd=self.folder, env=self.environment, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.interrupt()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(WITHIN)
        self._reader.join(WITHIN)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(ENDED)

    def type(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")

    def run(self, command: str) -> tuple[str, int]:
        """Return what the command printed, and its exit code."""
        self.type(f"{command}\nprintf '\\n<<%s>>\\n' $?")
        printed = self.until(re.compile(r"^<<\d+>>$"))
        return "".join(printed[:-1]).removesuffix("\n"), int(printed[-1].strip("<>\n"))

    def until(self, wanted: re.Pattern[str]) -> list[str]:
        """Return the lines up to one that is wanted."""
        lines: list[str] = []
        until = time.monotonic() + WITHIN
        while not lines or not wanted.match(lines[-1]):
            try:
                lines.append(self._lines.get(timeout=max(until - time.monotonic(), 0.0)))
            except Empty:
                raise AssertionError(f"{wanted.pattern} was never printed, but:\n{''.join(lines)}") from None
            assert lines[-1] != ENDED, f"the shell has ended, and printed:\n{''.join(lines)}"
        return lines

    def interrupt(self) -> None:
        """Press Ctrl-C: whatever the shell runs gets SIGINT, and the shell goes on."""
        for child in children(self.process.pid):
            os.kill(child, signal.SIGINT)


def children(parent: int) -> list[int]:
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    return [int(each) for each in done.stdout.split()]


def clean_environment(*folders: Path) -> dict[str, str]:
    """Return ours without what a reader does not have. The commands of `folders` come first."""
    left_out = ("KUBECONFIG", "VIRTUAL_ENV", "PYTHONPATH", "COLUMNS", "PIP_CONSTRAINT")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {"PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]), "PYTHONUNBUFFERED": "1"}


def files(page: str) -> dict[str, str]:
    return dict(FILE.findall(page))


def agrees(printed: str, shown: str) -> bool:
    """True if the page shows what was printed, apart from what differs from run to run."""
    expected = "".join(map(_pattern, plain(shown).splitlines()))
    return re.fullmatch(expected, f"{plain(printed)}\n") is not None


def _pattern(line: str) -> str:
    """A line that is an ellipsis stands for any lines, also none; elsewhere it stands for the rest of a line."""
    if line.strip() == "…":
        return r"(?:.*\n)*"
    return "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", line)) + r"\n"


VARYING = (
    (r"\b([a-z]+)-[a-z0-9]{10}-[a-z0-9]{5}\b", r"\1-POD"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\b\d+m\d+s\b|\b\d+ ?s\b(?= ago| +v1|:)", "AGE"),
    (r"[ \t]+", " "),
    (r"(?: ?\n)+", "\n"),
)


def plain(text: str) -> str:
    """Return the text with names of pods, ages and addresses replaced, and nodes numbered as they come."""
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text)
    order = list(dict.fromkeys(re.findall(r"\bnode-\d\b", text)))
    return re.sub(r"\bnode-\d\b", lambda found: f"NODE{order.index(found[0])}", text).strip()
