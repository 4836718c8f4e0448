"""Changes applied to documents: JSON patches (RFC 6902), objects that are created or deleted, nodes that are added.

`apply` is what a remedy means; whoever judges a remedy or shows it applies it with this. `completed` makes operations
whose parents are missing in a document add the whole parent, as a patch must.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from stowplan.diagnosis.remedy import AddNodes, CreateObject, DeleteObject, ObjectChange, Operation, PatchObject

Documents: TypeAlias = Mapping[tuple[str, str], Mapping[str, Any]]  # by kind and key

HOSTNAME = "kubernetes.io/hostname"


class DocumentLookup(Protocol):
    """Documents by kind and key, made when they are asked for."""

    def __getitem__(self, name: tuple[str, str], /) -> Mapping[str, Any]: ...


def apply(documents: Documents, changes: Iterable[ObjectChange]) -> dict[tuple[str, str], Any]:
    """Return the documents as they would be after the changes. Nothing is changed in place; order is kept."""
    after: dict[tuple[str, str], Any] = dict(documents)
    for change in changes:
        match change:
            case PatchObject(kind, key, operations):
                after[kind, key] = patched(after[kind, key], operations)
            case CreateObject(document):
                after[str(document["kind"]), key_of(document)] = document
            case DeleteObject(kind, key):
                del after[kind, key]
            case AddNodes():
                taken = {key for kind, key in after if kind == "Node"}
                for node in added_nodes(change, taken):
                    after["Node", node["metadata"]["name"]] = node
    return after


def key_of(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata") or {}
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def added_nodes(change: AddNodes, taken: Iterable[str]) -> list[dict[str, Any]]:
    """Return the documents of nodes that are added, each with a name and a hostname of its own."""
    found: list[dict[str, Any]] = []
    used, number = set(taken), 0
    while len(found) < change.number:
        number += 1
        name = f"{change.like}-new-{number}"
        if name in used:
            continue
        node: dict[str, Any] = copied(change.document)
        node["metadata"] = {**node.get("metadata", {}), "name": name}
        labels = node["metadata"].get("labels") or {}
        if HOSTNAME in labels:
            node["metadata"]["labels"] = {**labels, HOSTNAME: name}
        found.append(node)
    return found


# -- JSON patches


def patched(document: Mapping[str, Any], operations: Iterable[Operation]) -> dict[str, Any]:
    """Return a copy of the document with the operations applied, in order."""
    after: dict[str, Any] = copied(document)
    for operation in operations:
        _change(after, operation)
    return after


def copied(value: Any) -> Any:
    """Return a copy of a JSON value; `copy.deepcopy` takes several times as long."""
    if isinstance(value, Mapping):
        return {key: copied(each) for key, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value


def _change(document: dict[str, Any], operation: Operation) -> None:
    *parents, last = segments(operation.path)
    holder: Any = document
    for segment in parents:
        holder = holder[int(segment)] if isinstance(holder, list) else holder[segment]
    if isinstance(holder, list):
        _change_list(holder, last, operation)
    elif operation.op == "remove":
        del holder[last]
    else:  # a member with its default value may be missing where a typed object was made into a document
        holder[last] = copied(operation.value)


def _change_list(holder: list[Any], last: str, operation: Operation) -> None:
    match operation.op:
        case "remove":
            del holder[int(last)]
        case "replace":
            holder[int(last)] = copied(operation.value)
        case _ if last == "-":
            holder.append(copied(operation.value))
        case _:
            holder.insert(int(last), copied(operation.value))


def segments(path: str) -> list[str]:
    """Return the parts of a JSON pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def pointer(*parts: str | int) -> str:
    """Return the JSON pointer of these parts: pointer("metadata", "labels", "a/b") == "/metadata/labels/a~1b"."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


# -- patches made of several


def merged(changes: Iterable[ObjectChange], documents: DocumentLookup) -> tuple[ObjectChange, ...]:
    """Return the changes with one patch per object, which applies to the object as it is stored.

    Values come before removals, and removals from a list go from its end, so that indices stay right.
    """
    patches: dict[tuple[str, str], list[Operation]] = {}
    others: list[ObjectChange] = []
    deleted: set[DeleteObject] = set()  # of a large group they may be all pods of a cluster
    for change in changes:
        if isinstance(change, PatchObject):
            known = patches.setdefault((change.kind, change.key), [])
            known += [operation for operation in change.operations if operation not in known]
        elif isinstance(change, DeleteObject):
            if change not in deleted:
                deleted.add(change)
                others.append(change)
        elif change not in others:
            others.append(change)
    return (
        *(
            PatchObject(kind, key, completed(_ordered(operations), documents[kind, key]))
            for (kind, key), operations in patches.items()
        ),
        *others,
    )


def _ordered(operations: Sequence[Operation]) -> list[Operation]:
    removed = [operation for operation in operations if operation.op == "remove"]
    wider = {operation.path for operation in removed}
    inner = [operation for operation in removed if not any(operation.path.startswith(path + "/") for path in wider)]
    inner.sort(key=lambda operation: [_place(part) for part in segments(operation.path)], reverse=True)
    return [operation for operation in operations if operation.op != "remove"] + inner


def _place(segment: str) -> tuple[int, str]:
    return (int(segment), "") if segment.isdigit() else (-1, segment)


def completed(operations: Iterable[Operation], document: Mapping[str, Any]) -> tuple[Operation, ...]:
    """Return the operations with those that add to a missing parent adding the whole parent instead."""
    done: list[Operation] = []
    after: dict[str, Any] = copied(document)
    for operation in operations:
        whole = with_parents(operation, after, typed=True) if operation.op == "add" else operation
        _change(after, whole)
        done.append(whole)
    return tuple(done)


def with_parents(operation: Operation, document: Mapping[str, Any], *, typed: bool = False) -> Operation:
    """Return the operation; if it adds below a part that is missing: one that adds this part as a whole.

    typed   the document is that of a typed object: a part that is empty there may be missing in the stored document
    """
    parts = segments(operation.path)
    for end in range(1, len(parts)):
        found = found_at(document, parts[:end])
        if found is None or (typed and not found):
            return Operation("add", pointer(*parts[:end]), _nested(parts[end:], operation.value))
    return operation


def found_at(document: Any, path: Iterable[str]) -> Any:
    """Return the value at a path, given by its parts; None if there is none."""
    for each in path:
        if isinstance(document, Mapping):
            document = document.get(each)
        elif isinstance(document, list | tuple) and each.isdecimal() and int(each) < len(document):
            document = document[int(each)]
        else:
            return None
    return document


def _nested(parts: Sequence[str], value: Any) -> Any:
    for part in reversed(parts):
        value = [value] if part in ("-", "0") else {part: value}
    return value
