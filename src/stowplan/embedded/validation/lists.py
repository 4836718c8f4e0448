"""Lists: how long they may be, and that nothing is in them twice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from stowplan.embedded.errors import StatusCause

ItemCheck = Callable[[Any, str], Iterable[StatusCause]]


def too_many(field: str, found: int, most: int) -> StatusCause:
    return StatusCause(field, f"Too many: {found}: must have at most {most} items", "FieldValueTooMany")


def check_list(
    items: Sequence[Any], most: int, field: str, check: ItemCheck, key: Callable[[Any], Hashable] | None = None
) -> Iterator[StatusCause]:
    """Check each item; with a `key` no two items may have the same. A list that is too long is not looked into."""
    if len(items) > most:
        yield too_many(field, len(items), most)
        return
    for index, item in enumerate(items):
        yield from check(item, f"{field}[{index}]")
    seen: set[Hashable] = set()
    for index, item in enumerate(items if key is not None else ()):
        found = key(item)  # type: ignore[misc]
        if found in seen:
            yield StatusCause(f"{field}[{index}]", f"Duplicate value: {_shown(found)}", "FieldValueDuplicate")
        seen.add(found)


def _shown(value: Hashable) -> str:
    return f'"{value}"' if isinstance(value, str) else '"' + "/".join(map(str, value)) + '"'  # type: ignore[call-overload]
