"""A judge of remedies for placements: the changes are applied to the objects, and another scheduler decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from stowplan.diagnosis import patches
from stowplan.diagnosis.remedy import ObjectChange, Operation, PatchObject, Remedy
from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.objects.placements import SATISFIED, Placement
from tests.placement.hub import Hub

BOUND = {("ManagedClusterSet", "default"), ("ManagedClusterSetBinding", "test/default")}


def documents(objects: Iterable[Object]) -> dict[tuple[str, str], Any]:
    return {
        (type(each).__name__, each.key): msgspec.json.decode(msgspec.json.encode(each, enc_hook=str))
        for each in objects
    }


def is_satisfied(objects: Sequence[Object], changes: Iterable[ObjectChange]) -> bool:
    """True if the placement among the objects gets all its clusters after the changes."""
    after = patches.apply(documents(objects), changes)
    found = [kinds.convert(kinds.KINDS[kind], document) for (kind, _), document in after.items()]
    hub = Hub()
    for kind, key in BOUND - after.keys():
        hub.gone(kind, key)
    for each in sorted(found, key=lambda each: isinstance(each, Placement)):
        hub.put(each)
    hub.settle()
    condition = hub.placement().condition(SATISFIED)
    misconfigured = hub.placement().condition("PlacementMisconfigured")
    assert misconfigured is not None
    return condition is not None and condition.status == "True" and misconfigured.status == "False"


def one_step_less(remedy: Remedy) -> Iterator[tuple[ObjectChange, ...]]:
    """Yield the remedy's changes, each time with one of them missing, or smaller by one step."""
    for place, change in enumerate(remedy.changes):
        others = remedy.changes[:place] + remedy.changes[place + 1 :]
        replaced = "bind-cluster-set" in remedy.code and len(remedy.changes) > 1  # deleted and created: one change
        if others and not replaced:
            yield others
        if isinstance(change, PatchObject):
            for operations in _less(change, remedy.code):
                smaller = PatchObject(change.kind, change.key, operations)
                yield (*remedy.changes[:place], smaller, *remedy.changes[place + 1 :])


def _less(change: PatchObject, code: str) -> Iterator[tuple[Operation, ...]]:
    operations = change.operations
    for at, operation in enumerate(operations):
        if operation.path.endswith("/maxSkew"):
            smaller = operation.value - 1
        elif operation.path.endswith("/numberOfClusters") and operation.value and "lower-number" in code:
            smaller = operation.value + 1
        else:
            smaller = None
        if smaller is not None:
            yield (*operations[:at], Operation(operation.op, operation.path, smaller), *operations[at + 1 :])
        if len(operations) > 1 and "predicate-key" not in code:
            yield operations[:at] + operations[at + 1 :]
