"""Namespaces: the name label, the `kubernetes` finalizer and the Active phase."""

from __future__ import annotations

from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.documents import Document

_LABEL = "kubernetes.io/metadata.name"


def defaults(document: Document) -> None:
    if name := document["metadata"].get("name"):
        document["metadata"].setdefault("labels", {})[_LABEL] = name


def admit(document: Document, _context: AdmissionContext) -> None:
    document["metadata"].setdefault("labels", {})[_LABEL] = document["metadata"]["name"]
    document["spec"] = {"finalizers": ["kubernetes"]}
    document["status"] = {"phase": "Active"}
