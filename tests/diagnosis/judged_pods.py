"""A judge of remedies for pods: the changes are applied to the objects, and a World of their own decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from stowplan.diagnosis import patches
from stowplan.diagnosis.remedy import AddNodes, CreateObject, DeleteObject, ObjectChange, Operation, PatchObject
from stowplan.framework.profile import Profile
from stowplan.objects import kinds, quantity, spark
from stowplan.objects.meta import Object
from stowplan.testing.world import World

Changes = tuple[ObjectChange, ...]
STEPS = {"cpu": 1, "memory": 1024}
LOWERED, RAISED = ("minMember", "minCount"), ("replicas",)  # amounts that a remedy lowers or raises


def documents(objects: Iterable[Object]) -> dict[tuple[str, str], Any]:
    return {
        (type(each).__name__, each.key): msgspec.json.decode(msgspec.json.encode(each, enc_hook=str))
        for each in objects
    }


def a_judged_world(
    objects: Sequence[Object], changes: Iterable[ObjectChange], profiles: Mapping[str, Profile], **more: Any
) -> World:
    """Return a World in which the changes were made before it started, after it has run for a while."""
    world = World(profiles=profiles, checks=False, **more)
    for (kind, _), document in patches.apply(documents(objects), changes).items():
        name = kinds.name_of(document) if "kind" in document else kind
        found = kinds.convert(kinds.KINDS[name], document)
        if not found.uid:
            metadata = msgspec.structs.replace(found.metadata, uid=f"uid/{kind}/{found.key}")
            found = msgspec.structs.replace(found, metadata=metadata)
        world.submit(found)
    world.advance(120)
    return world


# -- one step less


def one_step_less(changes: Changes, objects: Sequence[Object]) -> Iterator[Changes]:
    """Yield the changes, each time with one of them missing, or smaller by one step.

    A patch that all members of a group get alike is one change.
    """
    before = documents(objects)
    for change in changes:
        others = tuple(each for each in changes if each is not change)
        match change:
            case AddNodes(number, like, document):
                yield (*others, AddNodes(number - 1, like, document)) if number > 1 else others
            case DeleteObject() | PatchObject("Node"):
                yield others
            case CreateObject({"kind": "Pod"}):
                yield others
            case PatchObject("PodDisruptionBudget"):
                continue  # it allows an eviction; a deletion, which is what follows here, does not ask it
            case PatchObject(kind, key, operations) if kind != "Pod":
                for at, operation in enumerate(operations):
                    yield (*others, PatchObject(kind, key, _with(operations, at, _less(operation, before[kind, key]))))
    yield from _of_all_pods(changes, before)
    yield from _lower_priority(changes)


def _with(operations: tuple[Operation, ...], at: int, instead: Operation | None) -> tuple[Operation, ...]:
    return operations[:at] + (() if instead is None else (instead,)) + operations[at + 1 :]


def _less(operation: Operation, document: Mapping[str, Any]) -> Operation | None:
    """Return the operation that changes less by a step; None: none at all."""
    *_, above, last = patches.segments(operation.path)
    if last in LOWERED:
        return Operation(operation.op, operation.path, operation.value + 1)
    if last in RAISED and operation.op == "replace":
        return Operation(operation.op, operation.path, _smaller(operation.value))
    if isinstance(operation.value, dict) and isinstance(operation.value.get("replicas"), int):
        return Operation(operation.op, operation.path, {**operation.value, "replicas": operation.value["replicas"] - 1})
    if above == "minResources":
        return Operation(operation.op, operation.path, _more(last, operation.value))
    return None


def _more(resource: str, text: str) -> str:
    amount = quantity.of(resource, text) + STEPS.get(resource, 1)
    return f"{amount}m" if resource == "cpu" else str(amount)


def _smaller(number: int | str) -> int | str:
    return number - 1 if isinstance(number, int) else f"{(round(float(number[:-1]) * 100) - 1) / 100:g}%"


def _of_all_pods(changes: Changes, before: Mapping[tuple[str, str], Any]) -> Iterator[Changes]:
    """Each sort of operation that pods get: less of it for all of them."""
    sorts = dict.fromkeys(
        _sort(operation)
        for change in changes
        if isinstance(change, PatchObject) and change.kind == "Pod"
        for operation in change.operations
    )
    for sort in sorts:
        if sort[1].startswith("/spec/priority"):
            continue
        yield tuple(_reduced(changes, sort, before, _lowering(changes, sort, before)))


def _sort(operation: Operation) -> tuple[str, str, str]:
    value = "" if "/requests/" in operation.path or "min-available" in operation.path else str(operation.value)
    path = operation.path
    for number in "0123456789":
        path = path.replace(f"/{number}/", "/0/") if "/requests/" in path else path
    return operation.op, path, value


def _lowering(changes: Changes, sort: tuple[str, str, str], before: Mapping[tuple[str, str], Any]) -> int:
    """By how much the request of the pod that loses most is lowered; 0 if this is about something else."""
    if "/requests/" not in sort[1]:
        return 0
    lost = [0]
    for change in changes:
        if isinstance(change, PatchObject) and change.kind == "Pod":
            for operation in change.operations:
                if _sort(operation) == sort:
                    resource = patches.segments(operation.path)[-1]
                    old = quantity.of(resource, _at(before[change.kind, change.key], operation.path))
                    lost.append(old - quantity.of(resource, operation.value))
    return max(lost)


def _at(document: Any, path: str) -> Any:
    for part in patches.segments(path):
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _reduced(
    changes: Changes, sort: tuple[str, str, str], before: Mapping[tuple[str, str], Any], lowering: int
) -> Iterator[ObjectChange]:
    for change in changes:
        if not isinstance(change, PatchObject) or change.kind != "Pod":
            yield change
            continue
        kept: list[Operation] = []
        for operation in change.operations:
            if _sort(operation) != sort:
                kept.append(operation)
            elif lowering:
                resource = patches.segments(operation.path)[-1]
                old = quantity.of(resource, _at(before[change.kind, change.key], operation.path))
                amount = max(old - (lowering - STEPS.get(resource, 1)), 0)
                text = f"{amount}m" if resource == "cpu" else str(amount)
                kept.append(Operation(operation.op, operation.path, text))
            elif (less := _less_annotated(operation, before[change.kind, change.key])) is not None:
                kept.append(less)
            elif "min-available" in operation.path:
                kept.append(Operation(operation.op, operation.path, str(int(operation.value) + 1)))
        if kept:
            yield PatchObject(change.kind, change.key, tuple(kept))


def _less_annotated(operation: Operation, document: Any) -> Operation | None:
    """Return the operation with one executor more, or a larger one; None if there was no number before."""
    *_, last = patches.segments(operation.path)
    text, old = str(operation.value), str((document["metadata"].get("annotations") or {}).get(last, ""))
    if last in (*spark.COUNT, *spark.LEAST) and old.isdecimal():
        return Operation(operation.op, operation.path, str(int(text) + 1))
    for resource, keys in (("cpu", spark.CPU), ("memory", spark.MEMORY)):
        if last in keys:
            return Operation(operation.op, operation.path, _more(resource, text))
    return None


def _lower_priority(changes: Changes) -> Iterator[Changes]:
    """A priority of one less, of a class that is created."""
    classes = [each for each in changes if isinstance(each, CreateObject) and each.document["kind"] == "PriorityClass"]
    for each in classes:
        value = each.document["value"] - 1

        def lowered(operation: Operation, value: int = value) -> Operation:
            is_it = operation.path == "/spec/priority"
            return Operation(operation.op, operation.path, value) if is_it else operation

        yield (
            *(_mapped(change, lowered) for change in changes if change is not each),
            CreateObject({**each.document, "value": value}),
        )


def _mapped(change: ObjectChange, function: Callable[[Operation], Operation]) -> ObjectChange:
    if not isinstance(change, PatchObject):
        return change
    return PatchObject(change.kind, change.key, tuple(map(function, change.operations)))
