"""The demo as it is seen: on a terminal of some size, or in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Sequence

COMMAND = [sys.executable, "-m", "stowplan.apps.cli", "demo"]
STYLE = re.compile(r"\x1b\[[0-9;]*m")  # colours and bold
WITHIN = 600.0  # seconds; a machine may be busy


def environment() -> dict[str, str]:
    """Return ours, without what says how wide a terminal is."""
    left_out = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    return {name: value for name, value in os.environ.items() if name not in left_out} | {"TERM": "xterm-256color"}


def piped(*arguments: str) -> str:
    """Return what the demo prints into a pipe. Its exit code must be 0."""
    command = [*COMMAND, *arguments]
    done = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    return done.stdout.decode()


def on_a_terminal(columns: int, rows: int, *arguments: str, keys: bytes = b"") -> str:
    """Return what the demo writes to a terminal of this size, with its control codes; `keys` are typed at the start."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    command = [*COMMAND, *arguments]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment())
    os.close(theirs)
    killer = threading.Timer(WITHIN, process.kill)
    killer.start()
    os.write(ours, keys)
    seen = b""
    try:
        while chunk := _read(ours):
            seen += chunk
    finally:
        code = process.wait()
        killer.cancel()
        os.close(ours)
    assert code == 0, seen.decode()
    return seen.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the demo has ended
        return b""


def lines_of(screen: str) -> list[str]:
    """Return the lines without colours. Other control codes fail: the demo writes line after line."""
    plain = STYLE.sub("", screen)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", plain), "no control codes but colours"
    return [line.rstrip() for line in plain.split("\n")]


def rows_of(line: str, columns: int) -> int:
    """Return how many rows of a terminal a line takes."""
    return max(-(-len(line) // columns), 1)


def scenes_of(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines of each scene, by its title; those after the last one are not in it."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in lines:
        start = re.fullmatch(r"(\d of \d  .+?) ─+", line)
        if start is not None:
            title = start[1]
        if line.startswith("What to try next"):
            break
        if title:
            found.setdefault(title, []).append(line)
    return found


def words_of(screen: str) -> list[str]:
    """Return all words, wherever lines end. Lines of tables are left out: they are as long as their table is wide."""
    return [word for line in lines_of(screen) for word in line.split() if set(word) != {"─"}]
