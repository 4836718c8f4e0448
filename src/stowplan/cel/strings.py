"""Functions of strings whose results may be far larger than their arguments: `replace`, `split`, `join`.

They are Python's own: what the result takes is known before it is made, and a search is linear in the text.
"""

from __future__ import annotations

from typing import Any

from stowplan.cel import sizes
from stowplan.cel.sizes import Take
from stowplan.cel.values import CelError, as_string, as_type


def replace(take: Take, text: Any, old: Any, new: Any, limit: Any = -1) -> str:
    most = _limit(limit)
    take(sizes.of_replacement(as_string(text), as_string(old), as_string(new), most))
    return str(text.replace(old, new, most))


def split(take: Take, text: Any, separator: Any, limit: Any = -1) -> list[str]:
    most = _limit(limit)
    take(sizes.of_parts(as_string(text), as_string(separator), most))
    if most == 0:
        return []
    if separator:
        return list(text.split(separator, most - 1 if most > 0 else -1))
    whole = most < 0 or most >= len(text)
    return list(text) if whole else [*text[: most - 1], text[most - 1 :]]


def join(take: Take, parts: Any, separator: Any = "") -> str:
    if not all(isinstance(each, str) for each in as_type(parts, list)):
        raise CelError("no such overload")
    take(sizes.of_joined(parts, as_string(separator)))
    return str(separator.join(parts))


def _limit(limit: Any) -> int:
    if isinstance(limit, bool):
        raise CelError("no such overload")
    return int(as_type(limit, int))
