"""PriorityClasses: defaults of the value and the preemption policy."""

from __future__ import annotations

from stowplan.embedded.documents import Document


def defaults(document: Document) -> None:
    document.setdefault("preemptionPolicy", "PreemptLowerPriority")
    document.setdefault("value", 0)
