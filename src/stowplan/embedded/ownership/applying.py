"""A configuration merged into a document, and what is no longer applied removed from it. Both make new documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stowplan.embedded.documents import Document
from stowplan.embedded.ownership.comparison import MISSING, element_of, parts_of
from stowplan.embedded.ownership.field_paths import Path, Paths, valued
from stowplan.embedded.ownership.shapes import KEYED, SET, FieldShape


def merged(live: Any, config: Any, shape: FieldShape) -> Any:
    """The configuration over the document. Items of lists keep the order of the document; new ones follow."""
    before, after = parts_of(live, shape), parts_of(config, shape)
    if before is None or after is None:
        return config
    parts = {element: child for element, (child, _) in before.items()}
    for element, (child, below) in after.items():
        parts[element] = merged(parts[element], child, below) if element in parts else child
    if shape.kind in (KEYED, SET):
        return list(parts.values())
    return {element[2:]: child for element, child in parts.items()}


def pruned(document: Document, shape: FieldShape, dropped: Paths, kept: Iterable[Path]) -> Document:
    """The document without the dropped paths, unless something below them is kept."""
    needed = {path[:length] for path in kept for length in range(1, len(path) + 1)}
    result = document
    for path in sorted(dropped - needed, key=len):
        result = _without(result, shape, path, 0, needed)
    return result


def _without(value: Any, shape: FieldShape, path: Path, depth: int, needed: set[Path]) -> Any:
    """A copy of the value without a path. A container that becomes empty goes, too, unless it is needed."""
    element, parts = path[depth], parts_of(value, shape)
    if parts is None or element not in parts:
        return value
    last = depth + 1 == len(path)
    child, below = parts[element]
    if last and shape.kind not in (KEYED, SET) and path[:-1] and _is_key(value, path):
        return value
    left = MISSING if last else _without(child, below, path, depth + 1, needed)
    if left in ({}, []) and left != child and path[: depth + 1] not in needed:
        left = MISSING
    if isinstance(value, list):
        items = [item if _element(item, shape) != element else left for item in value]
        return [item for item in items if item is not MISSING]
    others = {name: found for name, found in value.items() if f"f:{name}" != element}
    return others if left is MISSING else {**others, element[2:]: left}


def _element(item: Any, shape: FieldShape) -> str:
    return element_of(item, shape) if shape.kind == KEYED else valued(item)


def _is_key(item: Any, path: Path) -> bool:
    """True if a path is the key of the list item that it is in, which the item cannot be without."""
    return path[-2].startswith("k:") and isinstance(item, dict) and f'"{path[-1][2:]}":' in path[-2]
