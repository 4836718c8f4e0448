"""Changes of a remedy with one of them made smaller by one step: with these the pod must not fit any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from stowplan.apps.parity import node_records
from stowplan.diagnosis import patches
from stowplan.diagnosis.remedy import AddNodes, CreateObject, DeleteObject, ObjectChange, Operation, PatchObject
from stowplan.objects import kinds, quantity, selectors
from stowplan.objects.workloads import PodDisruptionBudget

LIST_OF = {kind: name for name, kind in node_records.LISTS.items()}


def smaller(
    changes: Sequence[ObjectChange], documents: dict[tuple[str, str], Any]
) -> Iterator[tuple[str, list[ObjectChange]]]:
    """Yield the changes with one of them made smaller by one step, in every way."""
    for place, change in enumerate(changes):
        before, after = list(changes[:place]), list(changes[place + 1 :])
        match change:
            case PatchObject("PodDisruptionBudget", key):
                yield from _with_budget(key, documents["PodDisruptionBudget", key], changes, documents)
            case PatchObject(kind, key, operations):
                document = documents[kind, key]
                for what, fewer in smaller_patches(operations, document):
                    patch = PatchObject(kind, key, patches.completed(fewer, document))
                    yield f"{what} of {kind} {key}", [*before, patch, *after]
            case AddNodes() if change.number > 1:
                yield "one node less", [*before, replace(change, number=change.number - 1), *after]
            case AddNodes():
                yield "no node added", [*before, *after]
            case CreateObject(document):
                if str(document["kind"]) in LIST_OF:
                    yield f"no {document['kind']} created", [*before, *after]
            case DeleteObject(_, key):
                yield f"{key} not deleted", [*before, *after]


def _with_budget(
    key: str, budget: dict[str, Any], changes: Sequence[ObjectChange], documents: dict[tuple[str, str], Any]
) -> Iterator[tuple[str, list[ObjectChange]]]:
    """Yield the changes if a budget allows one eviction less: one of the pods that it selects stays."""
    selector = kinds.convert(PodDisruptionBudget, budget).spec.selector
    namespace = key.partition("/")[0]
    for change in changes:
        if isinstance(change, DeleteObject) and change.key.partition("/")[0] == namespace:
            labels = documents["Pod", change.key]["metadata"].get("labels") or {}
            if selectors.matches(selectors.compile_selector(selector), labels):
                yield f"{change.key} kept by {key}", [each for each in changes if each is not change]


def smaller_patches(operations: Sequence[Operation], document: dict[str, Any]) -> Iterator[tuple[str, list[Operation]]]:
    for place, operation in enumerate(operations):
        others = [*operations[:place], *operations[place + 1 :]]
        if follows(operation, operations):
            continue
        path = patches.segments(operation.path)
        if "requests" in path and operation.op == "replace":
            yield smaller_request(operation, operations, document)
        elif path[-1] in ("maxSkew", "priority"):
            step = replace(operation, value=operation.value - 1)
            was = value_at(document, path)
            fewer = (
                others
                if was is not None and step.value <= was
                else [*operations[:place], step, *operations[place + 1 :]]
            )
            yield f"{path[-1]} {step.value}", fewer
        elif operation.op == "add" and isinstance(operation.value, list) and len(operation.value) > 1:
            for at in range(len(operation.value)):
                left = replace(operation, value=[*operation.value[:at], *operation.value[at + 1 :]])
                yield f"one less in {operation.path}", [*operations[:place], left, *operations[place + 1 :]]
        elif operation.op == "add" and isinstance(operation.value, dict) and path[-1] == "labels":
            for key in operation.value:
                labels = {name: value for name, value in operation.value.items() if name != key}
                yield (
                    f"no label {key}",
                    [*operations[:place], replace(operation, value=labels), *operations[place + 1 :]],
                )
        else:
            yield f"no change of {operation.path}", others


def follows(operation: Operation, operations: Sequence[Operation]) -> bool:
    """True for what must be changed along with something else, so that an API server accepts the object."""
    path = patches.segments(operation.path)
    if path[-1] in ("containerPort", "priorityClassName") or "limits" in path:
        return True
    pod_level = f"/spec/resources/requests/{patches.pointer(path[-1])[1:]}"
    return "requests" in path and operation.path != pod_level and any(each.path == pod_level for each in operations)


def smaller_request(
    operation: Operation, operations: Sequence[Operation], document: dict[str, Any]
) -> tuple[str, list[Operation]]:
    """Return the operations with one request lowered by a step less; its limit goes along."""
    path = patches.segments(operation.path)
    resource = path[-1]
    if resource == "cpu":
        value = f"{quantity.milli(operation.value) + 1}m"
    elif resource == "memory":
        value = str(quantity.value(operation.value) + 1024)
    elif resource.startswith("hugepages-"):
        value = str(quantity.value(operation.value) + quantity.value(resource.removeprefix("hugepages-")))
    else:
        value = str(quantity.value(operation.value) + 1)
    was = value_at(document, path)
    if quantity.nanos(value) > quantity.nanos(str(was)):
        value = str(was)
    limit = patches.pointer(*("limits" if part == "requests" else part for part in path))
    return f"{resource} {value}", [
        replace(each, value=value) if each.path in (operation.path, limit) else each for each in operations
    ]


def value_at(document: Any, path: Sequence[str]) -> Any:
    for part in path:
        document = document[int(part)] if isinstance(document, list) else (document or {}).get(part)
    return document
