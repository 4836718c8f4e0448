"""PriorityClasses: defaults of the value and the preemption policy."""

from __future__ import annotations

from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]


def defaults(document: Document) -> None:
    document.setdefault("preemptionPolicy", "PreemptLowerPriority")
    document.setdefault("value", 0)
