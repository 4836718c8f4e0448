"""What `kubectl get` prints: columns and cells by kind, as the server gives them to whoever asks for a Table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.tables import cluster, custom, pods, storage, workloads
from stowplan.embedded.tables.columns import NAME, Column, Row, Sheet

Document: TypeAlias = dict[str, Any]

_CREATED = Sheet((NAME, Column("Created At", "date")), lambda document, _: [_name(document), _created(document)])
_AGED = Sheet((NAME, Column("Age")), lambda document, now: [_name(document), cluster.age(document, now)])

SHEETS: dict[str, Sheet] = {
    **pods.SHEETS, **workloads.SHEETS, **storage.SHEETS, **cluster.SHEETS,
    "serviceaccounts": _AGED,
    "deviceclasses.resource.k8s.io": _AGED,
    "resourceclaimtemplates.resource.k8s.io": _AGED,
}  # fmt: skip


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def _created(document: Document) -> str:
    return str(document["metadata"].get("creationTimestamp", ""))


def sheet(collection: str, columns: list[Document] | None = None) -> Sheet:
    """Of a collection; custom resources bring their own columns."""
    if columns is not None:
        return custom.sheet(columns) if columns else _AGED
    return SHEETS.get(collection, _CREATED)


def table(
    found: Sheet, documents: list[Document], now: float, include: str, shown: Callable[[Document], Document],
    metadata: Document, *, headed: bool = True,
) -> Document:  # fmt: skip
    """The API's Table; `include` says how much of each object goes with its row."""
    rows = []
    for document in documents:
        row: Document = {"cells": found.cells(document, now)}
        if include == "Object":
            row["object"] = shown(document)
        elif include != "None":
            row["object"] = {
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": document["metadata"],
            }  # fmt: skip
        rows.append(row)
    headings = [msgspec.structs.asdict(column) for column in found.columns] if headed else None
    return {
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": headings,
        "rows": rows,
    }  # fmt: skip


__all__ = ["SHEETS", "Column", "Row", "Sheet", "sheet", "table"]
