"""Columns, and how a document becomes cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

Document: TypeAlias = dict[str, Any]
Row: TypeAlias = list[Any]


class Column(msgspec.Struct, frozen=True):
    """`priority` 1: only in wide output. `description` is for tools that show it; ours says nothing new."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Sheet(msgspec.Struct, frozen=True):
    columns: tuple[Column, ...]
    cells: Callable[[Document, float], Row]


NAME = Column("Name", format="name")
AGE = Column("Age")


def columns(*names: str, wide: tuple[str, ...] = (), whole: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Columns of text, or of whole numbers where named so; Name is put before them."""
    normal = [Column(name, "integer" if name in whole else "string") for name in names]
    return (NAME, *normal, *(Column(name, priority=1) for name in wide))


def selector_text(selector: Document | None) -> str:
    """A selector in one word."""
    if not selector:
        return "<none>"
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [f"{key}={value}" for key, value in sorted(selector.get("matchLabels", {}).items())]
    words = {"In": "in", "NotIn": "notin", "Exists": "", "DoesNotExist": "!"}
    for each in selector.get("matchExpressions", ()):
        word, values = words.get(each.get("operator", ""), ""), ",".join(each.get("values", ()))
        parts.append(f"!{each['key']}" if word == "!" else f"{each['key']} {word} ({values})" if word else each["key"])
    return ",".join(parts)


def containers(document: Document) -> list[str]:
    """Names and images of a template's containers, as two cells."""
    found = document["spec"].get("template", {}).get("spec", {}).get("containers", ())
    return [",".join(each.get(name, "") for each in found) for name in ("name", "image")]
