"""Numbers, times and lists in sentences."""

from __future__ import annotations

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


def shortened(text: str, width: int) -> str:
    """Return the beginning of a text, in one line of this width."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}…"
