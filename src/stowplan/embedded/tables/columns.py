"""Columns, and printers that turn a document into cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.api import selectors
from stowplan.embedded.documents import Document

Row: TypeAlias = list[Any]


class Column(msgspec.Struct, frozen=True):
    """`priority` 1: shown in wide output only. `description` is part of the API; the built-in columns have none."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class TablePrinter(msgspec.Struct, frozen=True):
    columns: tuple[Column, ...]
    cells: Callable[[Document, float], Row]


NAME = Column("Name", format="name")
AGE = Column("Age")


def columns(*names: str, wide: tuple[str, ...] = (), integers: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """The column Name, then columns of text, or of integers for the names in `integers`."""
    normal = [Column(name, "integer" if name in integers else "string") for name in names]
    return (NAME, *normal, *(Column(name, priority=1) for name in wide))


def selector_text(selector: Document | None) -> str:
    """A label selector as one cell."""
    return selectors.text_of(selector or {}) or "<none>"


def containers(document: Document) -> list[str]:
    """Two cells: the names and the images of the containers of a template."""
    found = document["spec"].get("template", {}).get("spec", {}).get("containers", ())
    return [",".join(each.get(name, "") for each in found) for name in ("name", "image")]
