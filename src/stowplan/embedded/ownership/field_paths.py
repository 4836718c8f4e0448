"""Paths of fields: tuples of elements as FieldsV1 spells them.

    ("f:spec", "f:containers", 'k:{"name":"c"}', "f:image")     .spec.containers[name="c"].image
    ("f:metadata", "f:finalizers", 'v:"x"')                     .metadata.finalizers[="x"]

FieldsV1 is the tree of a set of paths; "." marks an object that is in the set itself and has fields in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str, ...]
Paths: TypeAlias = frozenset[Path]

_SELF = "."
_DEEPEST = 100


def as_tree(paths: Iterable[Path]) -> dict[str, Any]:
    """A set of paths as FieldsV1."""
    tree: dict[str, Any] = {}
    inner: list[tuple[Path, dict[str, Any]]] = []
    for path in sorted(paths):
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        inner.append((path, node))
    for _, node in inner:
        if node:
            node[_SELF] = {}
    return tree


def from_tree(tree: Any) -> Paths:
    """FieldsV1 as a set of paths. Raises ValueError for what is no FieldsV1."""
    return frozenset(_walk(tree, ()))


def _walk(tree: Any, path: Path) -> Iterator[Path]:
    if not isinstance(tree, dict) or len(path) > _DEEPEST:
        raise ValueError("not FieldsV1")
    if path and (not tree or _SELF in tree):
        yield path
    for element, below in tree.items():
        if element != _SELF:
            if element[:2] not in ("f:", "k:", "v:", "i:"):
                raise ValueError(f"not an element of FieldsV1: {element}")
            yield from _walk(below, (*path, element))


def shown(path: Path) -> str:
    """A path as messages of the API server show it."""
    return "".join(map(_shown, path))


def _shown(element: str) -> str:
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "v:":
        return f"[={rest}]"
    if kind == "i:":
        return f"[{rest}]"
    keys: dict[str, Any] = json.loads(rest)
    return f"[{','.join(f'{key}={_json(value)}' for key, value in sorted(keys.items()))}]"


def keyed(values: dict[str, Any]) -> str:
    """The element of an item of a list with keys."""
    return f"k:{_json(values)}"


def valued(value: Any) -> str:
    """The element of an item of a set."""
    return f"v:{_json(value)}"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
