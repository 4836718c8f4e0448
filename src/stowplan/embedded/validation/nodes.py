"""Nodes: taints and amounts of resources."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value, unsupported
from stowplan.objects import quantity
from stowplan.objects.selectors import is_label_key

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check(node: Document) -> Iterator[StatusCause]:
    for index, taint in enumerate(node["spec"].get("taints", ())):
        field = f"spec.taints[{index}]"
        if not is_label_key(taint.get("key", "")):
            yield invalid_value(f"{field}.key", taint.get("key", ""), "name part must be non-empty")
        if taint.get("effect") not in _EFFECTS:
            yield unsupported(f"{field}.effect", taint.get("effect"), _EFFECTS)
    for part in ("capacity", "allocatable"):
        for name, amount in node.get("status", {}).get(part, {}).items():
            if quantity.nanos(amount) < 0:
                yield invalid_value(f"status.{part}.{name}", amount, "must be greater than or equal to 0")
