"""Nodes: allocatable resources default to the capacity."""

from __future__ import annotations

from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.documents import Document


def admit(document: Document, _context: AdmissionContext) -> None:
    """Set the allocatable resources to the capacity unless the node says otherwise."""
    status = document.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))
