"""The columns and cells of `kubectl get`, by kind, for clients that request a Table."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stowplan.embedded.documents import Document
from stowplan.embedded.tables import cluster, custom, networking, pods, rbac, storage, workloads
from stowplan.embedded.tables.columns import NAME, Column, Row, TablePrinter

_CREATED = TablePrinter((NAME, Column("Created At", "date")), lambda document, _: [_name(document), _created(document)])
_AGED = TablePrinter((NAME, Column("Age")), lambda document, now: [_name(document), cluster.age(document, now)])

PRINTERS: dict[str, TablePrinter] = {
    **pods.PRINTERS, **workloads.PRINTERS, **storage.PRINTERS, **cluster.PRINTERS, **networking.PRINTERS,
    **rbac.PRINTERS,
    "serviceaccounts": _AGED,
    "deviceclasses.resource.k8s.io": _AGED,
    "resourceclaimtemplates.resource.k8s.io": _AGED,
}  # fmt: skip


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def _created(document: Document) -> str:
    return str(document["metadata"].get("creationTimestamp", ""))


def printer_for(collection: str, columns: list[Document] | None = None) -> TablePrinter:
    """The printer of a collection. Custom resources define their own columns."""
    if columns is not None:
        return custom.printer(columns) if columns else _AGED
    return PRINTERS.get(collection, _CREATED)


def table(
    found: TablePrinter, documents: list[Document], now: float, include: str, shown: Callable[[Document], Document],
    metadata: Document, *, headed: bool = True,
) -> Document:  # fmt: skip
    """A Table of the API. `include` says which part of each object is added to its row."""
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


__all__ = ["PRINTERS", "Column", "Row", "TablePrinter", "printer_for", "table"]
