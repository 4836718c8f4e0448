"""The paths of a document, and those in which two documents differ."""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.embedded.ownership.field_paths import Path, Paths, keyed, valued
from stowplan.embedded.ownership.shapes import KEYED, OBJECT, SET, FieldShape

MISSING = msgspec.UNSET


class Comparison(msgspec.Struct, frozen=True):
    """What was added or has another value, and what is gone."""

    changed: Paths
    removed: Paths


def paths_of(document: Any, shape: FieldShape) -> Paths:
    """The fields that a configuration has."""
    found: set[Path] = set()
    _collect(document, shape, (), found)
    return frozenset(found)


def _collect(value: Any, shape: FieldShape, path: Path, found: set[Path]) -> None:
    parts = parts_of(value, shape)
    if parts is None:
        if path:
            found.add(path)
        return
    for element, (child, below) in parts.items():
        here = (*path, element)
        _collect(child, below, here, found)
        if child == {} or element[:2] != "f:" or not shape.declares(element[2:]):
            found.add(here)


def compared(old: Any, new: Any, shape: FieldShape) -> Comparison:
    changed: set[Path] = set()
    removed: set[Path] = set()
    _compare(old, new, shape, (), changed, removed)
    return Comparison(frozenset(changed), frozenset(removed))


def _compare(old: Any, new: Any, shape: FieldShape, path: Path, changed: set[Path], removed: set[Path]) -> None:
    before, after = parts_of(old, shape), parts_of(new, shape)
    divided = (before is not None or old is MISSING) and (after is not None or new is MISSING)
    if divided:
        for element, (_, below) in {**(before or {}), **(after or {})}.items():
            here = (*path, element)
            _compare(_part(before, element), _part(after, element), below, here, changed, removed)
    if not path:
        return
    if old is MISSING:
        changed.add(path)
    elif new is MISSING:
        removed.add(path)
    elif not divided and old != new:
        changed.add(path)


def _part(parts: dict[str, tuple[Any, FieldShape]] | None, element: str) -> Any:
    return parts[element][0] if parts and element in parts else MISSING


def parts_of(value: Any, shape: FieldShape) -> dict[str, tuple[Any, FieldShape]] | None:
    """The parts of a value that can have owners of their own; None if the value is owned as one."""
    if shape.kind == OBJECT and isinstance(value, dict):
        return {f"f:{name}": (child, shape.field(name)) for name, child in value.items()}
    if shape.kind == KEYED and isinstance(value, list):
        return {element_of(item, shape): (item, shape.item()) for item in value}
    if shape.kind == SET and isinstance(value, list):
        return {valued(item): (item, shape.item()) for item in value}
    return None


def element_of(item: Any, shape: FieldShape) -> str:
    """The element of an item of a list with keys; a key that is missing has its default."""
    if not isinstance(item, dict):
        return valued(item)
    found = {key: item.get(key, shape.default(key)) for key in shape.keys}
    return keyed({key: value for key, value in found.items() if value is not None})
