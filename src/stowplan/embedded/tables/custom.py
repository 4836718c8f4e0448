"""Custom resources: columns by JSONPath, limited to the forms that definitions use.

.spec.size    .spec.list[0].name    .spec.list[*].name    .status.conditions[?(@.type=="Ready")].status
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from stowplan.embedded.documents import Document
from stowplan.embedded.numbers import natural
from stowplan.embedded.tables.columns import NAME, Column, Row, TablePrinter
from stowplan.embedded.timestamps import age

_STEP = re.compile(
    r"""\.(?P<key>(?:\\.|[^.\[\\])+) | \[(?P<index>-?\d+)\] | \[(?P<all>\*)\] | \[['"](?P<quoted>[^'"]+)['"]\]
    | \[\?\(@(?P<where>[^=!]+?)\s*(?P<sign>==|!=)\s*['"]?(?P<value>[^'")]*)['"]?\)\]""",
    re.VERBOSE,
)


def printer(definitions: list[Document]) -> TablePrinter:
    columns = (NAME, *(_column(each) for each in definitions))

    def cells(document: Document, now: float) -> Row:
        return [document["metadata"]["name"], *(_cell(each, document, now) for each in definitions)]

    return TablePrinter(columns, cells)


def _column(definition: Document) -> Column:
    return Column(
        definition.get("name", ""),
        definition.get("type", "string"),
        definition.get("format", ""),
        definition.get("description", ""),
        definition.get("priority", 0),
    )


def _cell(definition: Document, document: Document, now: float) -> Any:
    found = values(document, definition.get("jsonPath", ""))
    if not found:
        return None
    if definition.get("type") == "date":
        return age(found[0], now) if isinstance(found[0], str) else "<unknown>"
    return (
        _text(found[0]) if definition.get("type") == "string" else found[0]
    )  # of several values, the API server prints the first


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _steps(path: str) -> tuple[re.Match[str], ...]:
    return tuple(_STEP.finditer(path))


def values(document: Any, path: str) -> list[Any]:
    """All values that a path selects."""
    found = [document]
    for step in _steps(path if path.startswith((".", "[")) else f".{path}"):
        found = [below for value in found for below in _below(value, step)]
    return [value for value in found if value is not None]


def _below(value: Any, step: re.Match[str]) -> list[Any]:
    key = step["key"] or step["quoted"]
    if key is not None:
        return [value.get(key.replace("\\", ""))] if isinstance(value, dict) else []
    items = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    if step["all"]:
        return items
    if step["index"]:
        number = natural(step["index"].removeprefix("-"), len(items))  # too long for a number: beyond the end
        number = -number if step["index"].startswith("-") and number < len(items) else number
        return items[number : number + 1 or None]
    expected, equal = step["value"], step["sign"] == "=="
    return [item for item in items if (expected in map(_text, values(item, step["where"]))) == equal]
