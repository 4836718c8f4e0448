"""Numbers, times and lists in sentences."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def ago(seconds: float) -> str:
    """Return a span of time in one unit: "12 min"."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(max(seconds, 0))} s"


def counted(number: int, noun: str) -> str:
    """Return "1 node", "3 nodes"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: Sequence[str], most: int = 3) -> str:
    """Return "a, b, c and 4 more"."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def wrapped(text: str, width: int, indent: int = 0, hang: int = 2) -> list[str]:
    """Return a text as lines of at most this width; those after the first are indented so many columns more."""
    first = " " * indent
    line, rest = " ".join(text.split()), " " * (indent + hang)
    return textwrap.wrap(line, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def screen_lines(text: str, width: int) -> int:
    """Return how many lines a terminal of this width needs for a text that it wraps itself."""
    return sum(max(-(-len(line) // width), 1) for line in text.splitlines())


def in_words(name: str) -> str:
    """Return a name of a plugin as lines of one word each: a narrow head of a column."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "\n", name)


def shortened(text: str, width: int) -> str:
    """Return the beginning of a text, in one line of this width."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}…"
