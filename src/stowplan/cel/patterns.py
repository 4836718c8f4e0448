"""Regular expressions, by RE2: its time is linear in the text, and the time of Python's own has no bound.

A short pattern may stand for a large program (`\\pL{300}`), and RE2's worst case is the text's length times the size of
the program. So programs are small (`MOST_MEMORY`), which bounds what the cache of programs holds, too, and a search
counts by that product.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from stowplan.cel.sizes import Take, flat
from stowplan.cel.values import CelError, as_string, as_type

MOST_MEMORY = 1 << 18  # bytes of a program
LONGEST = 1 << 14  # characters of a pattern
_COMPILING = 1 << 16  # what a pattern counts that is refused
_PER_MATCH = 256  # what a string counts that is found: to find it takes as long as many operators
_PER_INSTRUCTION, _STEPS = 8, 16  # bytes counted per instruction; steps of a search that count as a byte


def _program(take: Take, pattern: Any, text: Any) -> Any:
    """Return the program of a pattern; what it takes to make and to run it on the text is counted."""
    import re2

    if len(as_string(pattern)) > LONGEST:
        raise CelError(f"illegal regex: {len(pattern)} characters; {LONGEST} are the most")
    options = re2.Options()
    options.log_errors, options.max_mem = False, MOST_MEMORY
    try:
        program = re2.compile(pattern, options=options)
    except (re2.error, UnicodeEncodeError) as error:
        take(_COMPILING)
        raise CelError(f"illegal regex: {str(error)[:200]}") from None
    size = program.programsize
    take(size * _PER_INSTRUCTION + flat(as_string(text)) + len(text) * size // _STEPS)
    return program


def matches(take: Take, text: Any, pattern: Any) -> bool:
    return _program(take, pattern, text).search(_encodable(text)) is not None


def find(take: Take, text: Any, pattern: Any) -> str:
    found = _program(take, pattern, text).search(_encodable(text))
    return found.group(0) if found is not None else ""


def find_all(take: Take, text: Any, pattern: Any, limit: Any = -1) -> list[str]:
    found = _program(take, pattern, text).finditer(_encodable(text))
    if as_type(limit, int) >= 0:
        found = islice(found, limit)
    parts = list[str]()
    for match in found:
        part = match.group(0)
        take(flat(part) + _PER_MATCH)
        parts.append(part)
    return parts


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CelError("a string with half of a character") from None
    return text
