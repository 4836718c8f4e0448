"""How many bytes a value takes, about, and how many a result will take: known before the result is made.

An evaluation has a limit for what all its values take (`CelEvaluation.take`), beside the limit of its cost. The cost of
cel-go bounds the time of an expression, but not its memory: a call of `replace` costs by the length of its input, and
its result may be a thousand times as long. A value that is part of others in many places counts as often as it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from stowplan.cel.values import CelError, CostError, Optional

Take: TypeAlias = Callable[[int], None]  # told how many bytes are about to be taken; raises CostError beyond the limit
Size: TypeAlias = Callable[[Sequence[Any]], int]  # of a call's result, from its arguments
MOST = 1 << 22  # bytes that all values of an evaluation may take
DEEPEST = 100  # levels of lists and maps
SLOT, LIST, MAP, ENTRY, STRING = 8, 64, 64, 100, 56
_LONGEST_NUMBER = 350  # characters of a double without an exponent
_PRECISION = re.compile(r"%\.([0-9]+)")


def too_large() -> CostError:
    return CostError(f"operation cancelled: its values would take more than {MOST} bytes")


def flat(value: Any) -> int:
    """Return what the characters or elements of a value take, without what is inside the elements."""
    if isinstance(value, str):
        return len(value) if value.isascii() else 4 * len(value)
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, list):
        return SLOT * len(value)
    return ENTRY * len(value) if isinstance(value, dict) else 0


def whole(value: Any, scalar: int = 0) -> int:
    """Return what a value takes if everything inside it is copied; `scalar` for each number, time and the like.

    The walk ends at the limit, however large the value is.
    """
    if not isinstance(value, list | dict | Optional):
        return flat(value) or scalar
    total, level = 0, [value]
    for _ in range(DEEPEST):
        below = list[Any]()
        for each in level:
            total += flat(each) or scalar
            if total > MOST:
                raise too_large()
            if isinstance(each, Optional):
                below.append(each.value)
            elif isinstance(each, list):
                below.extend(each)
            elif isinstance(each, dict):
                below.extend(each)
                below.extend(each.values())
        if not below:
            return total
        level = below
    raise CelError(f"a value with more than {DEEPEST} levels of lists and maps")


# -- of results


def of_sum(values: Sequence[Any]) -> int:
    return flat(values[0]) + flat(values[1])


def of_replacement(text: str, old: str, new: str, limit: int) -> int:
    found = text.count(old) if limit < 0 else min(text.count(old), limit)
    width = 1 if text.isascii() and new.isascii() else 4
    return width * (len(text) + found * max(len(new) - len(old), 0))


def of_parts(text: str, separator: str, limit: int) -> int:
    """Of `split`."""
    parts = text.count(separator) + 1 if separator else len(text)
    return flat(text) + (parts if limit < 0 else min(parts, limit)) * (SLOT + STRING)


def of_joined(parts: list[str], separator: str) -> int:
    return sum(map(flat, parts)) + len(parts) * flat(separator)


def of_format(values: Sequence[Any]) -> int:
    """Of `format`: each argument is written once; a string may be escaped, or written as hexadecimal digits."""
    pattern, arguments = values
    if not isinstance(pattern, str):
        return 0
    precision = sum(int(digits[:9]) for digits in _PRECISION.findall(pattern))
    return flat(pattern) + 4 * whole(arguments, _LONGEST_NUMBER // 4) + precision


def of_query(values: Sequence[Any]) -> int:
    """Of the map that a URL's query becomes."""
    query = getattr(values[0], "query", "")
    return 2 * flat(query) + (query.count("&") + 1) * (ENTRY + LIST + 2 * STRING)


def of_escaped(values: Sequence[Any]) -> int:
    return 3 * flat(getattr(values[0], "path", ""))


def of_json(values: Sequence[Any]) -> int:
    """Of the value that JSON text becomes."""
    if not isinstance(text := values[0], str):
        return 0
    return flat(text) + text.count(",") * ENTRY + text.count("[") * (LIST + SLOT) + text.count("{") * (MAP + 2 * ENTRY)


def of_copies(values: Sequence[Any]) -> int:
    """Of a call that copies its arguments, and whose result is no longer than they are."""
    return 2 * sum(map(flat, values))


# -- of texts in messages


def shown(value: Any) -> str:
    """Return a value as an error names it: not longer than a line, whatever the value is."""
    if isinstance(value, str | bytes):
        return repr(value[:60]) + "…" * (len(value) > 60)
    if isinstance(value, bool | int | float | datetime | timedelta) or value is None:
        return str(value)[:60]
    return f"a {type(value).__name__}"
